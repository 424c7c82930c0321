// Measures every kernel of a GPU family, with every split of K: the data that a cost model is
// fitted to. A table on stdout, tab separated. model_us is what the model says of the schedule that
// it chooses (`chosen` is 1), repeated in the kernel's other rows.
//
//   schedule_bench sm90_wgmma f16 nn 4096x4096x4096 16x8192x8192/4 ...
//
// A split of c2: two blocks of a cluster; of r3: of the tiles behind the last whole wave. Behind
// the columns of a tile p: pairs of blocks share B, t: tiles lie across D. The error: the largest
// difference from what the first row computes unsplit, over the largest element. A shape is MxNxK,
// "/B" behind it: B batches. The dtypes are f16, bf16, f32, f64, e4m3 (to BF16, layout nt), i8 (nt)
// and tf32 (not tn, which is packed); f16:f32 is FP32 output, f16+promoted and e4m3+fast are other
// ways to sum.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "dispatch/select.hpp"
#include "tcgemm/tcgemm.hpp"

namespace {

using namespace tcgemm;

std::string at_work;  // the shape, kernel and schedule, for the message of an error

#define CHECK(call)                                                      \
    do {                                                                 \
        const cudaError_t status_ = (call);                              \
        if (status_ != cudaSuccess) {                                    \
            std::fprintf(stderr, "%s: %s: %s\n", at_work.c_str(), #call, \
                         cudaGetErrorString(status_));                   \
            std::exit(1);                                                \
        }                                                                \
    } while (0)

// N(0, 1) of a hash of the index: zeros run faster and prove nothing.
__device__ float normal(std::uint64_t x) {
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    const float u = (static_cast<float>(x & 0xffffff) + 1.0f) / 16777217.0f;
    const float v = static_cast<float>(x >> 40) / 16777216.0f;
    return sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
}
template <class T>
__global__ void fill(T* data, std::int64_t count) {
    for (std::int64_t i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
        data[i] = static_cast<T>(normal(static_cast<std::uint64_t>(i)));
    }
}

// The largest |value - reference|, and the largest |reference|, as bits of non-negative floats.
struct Difference {
    int error = 0, size = 0;
};
template <class T>
__global__ void compare(const T* value, const T* reference, std::int64_t count, Difference* most) {
    float error = 0, size = 0;
    for (std::int64_t i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
        const auto is = static_cast<float>(value[i]), should = static_cast<float>(reference[i]);
        error = is == is ? fmaxf(error, fabsf(is - should)) : INFINITY;
        size = fmaxf(size, fabsf(should));
    }
    atomicMax(&most->error, __float_as_int(error));
    atomicMax(&most->size, __float_as_int(size));
}

DType dtype_named(const std::string& name) {
    if (name == "f16") return DType::f16;
    if (name == "bf16") return DType::bf16;
    if (name == "f64") return DType::f64;
    if (name == "e4m3") return DType::e4m3;
    if (name == "i8") return DType::i8;
    if (name == "f32" || name == "tf32") return DType::f32;
    std::fprintf(stderr,
                 "schedule_bench: DTYPE is %s; it must be f16, bf16, f32, f64, e4m3, i8 or tf32, "
                 "with :f32 behind it for FP32 output, +promoted or +fast for other sums\n",
                 name.c_str());
    std::exit(1);
}

struct Shape {
    std::int64_t m = 0, n = 0, k = 0, batch = 1;
};

Shape parse(const char* text) {
    Shape shape;
    char* end = nullptr;
    shape.m = std::strtoll(text, &end, 10);
    shape.n = std::strtoll(end + 1, &end, 10);
    shape.k = std::strtoll(end + 1, &end, 10);
    if (*end == '/') shape.batch = std::strtoll(end + 1, &end, 10);
    return shape;
}

// As the table names it: the split of K, and the columns of a tile.
std::string name_of(const Schedule& schedule) {
    const std::string split = (schedule.in_cluster    ? "c"
                               : schedule.splits_rest ? "r"
                                                      : "") +
                              std::to_string(schedule.split_k);
    const std::string pairs = schedule.shares_b ? "p" : schedule.shares_a ? "a" : "";
    return split + "\t" + std::to_string(schedule.tile_n) + pairs +
           (schedule.transposed ? "t" : "");
}

// A kernel with a schedule, and how long it took in each round.
struct Candidate {
    const char* kernel;
    Schedule schedule;
    bool is_chosen;
    double model_us;
    float error;
    int times;  // launches of the graph
    cudaGraphExec_t graph;
    std::vector<double> us;
};

MatrixView view(void* data, DType dtype, char layout, std::int64_t rows, std::int64_t cols) {
    MatrixView result;
    result.data = data;
    result.dtype = dtype;
    result.row_stride = layout == 'n' ? cols : 1;
    result.col_stride = layout == 'n' ? 1 : rows;
    result.batch_stride[0] = rows * cols;
    return result;
}

Operand operand(const MatrixView& v) {
    Operand result;
    result.dtype = v.dtype;
    result.row_stride = v.row_stride;
    result.col_stride = v.col_stride;
    result.batch_stride[0] = v.batch_stride[0];
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5)
        return std::fprintf(stderr, "usage: schedule_bench FAMILY DTYPE LAYOUT SHAPE...\n"), 2;
    const std::string family = argv[1], dtypes = argv[2], layout = argv[3];
    const bool to_f32 = dtypes.find(":f32") != std::string::npos;
    const bool promoted = dtypes.find("+promoted") != std::string::npos;
    const bool fast = dtypes.find("+fast") != std::string::npos;
    const DType dtype = dtype_named(dtypes.substr(0, dtypes.find_first_of(":+")));
    const DType result = to_f32                 ? DType::f32
                         : dtype == DType::e4m3 ? DType::bf16
                         : dtype == DType::i8   ? DType::i32
                                                : dtype;
    const bool is_tf32 = dtypes.rfind("tf32", 0) == 0;
    const int item = size_of(dtype);
    const DeviceProperties& device = properties(Device::cuda(0));
    constexpr std::size_t kPool = 3ull << 30, kWorkspace = 1ull << 30, kOutput = 4ull << 30;
    char *pool = nullptr, *workspace = nullptr, *output = nullptr, *reference = nullptr;
    Difference* difference = nullptr;
    CHECK(cudaMalloc(&pool, kPool));
    CHECK(cudaMalloc(&workspace, kWorkspace));
    CHECK(cudaMalloc(&output, kOutput));
    CHECK(cudaMalloc(&reference, kOutput));
    CHECK(cudaMallocManaged(&difference, sizeof(Difference)));
    if (dtype == DType::bf16) {
        fill<<<1024, 256>>>(reinterpret_cast<__nv_bfloat16*>(pool), kPool / item);
    } else if (dtype == DType::f64) {
        fill<<<1024, 256>>>(reinterpret_cast<double*>(pool), kPool / item);
    } else if (dtype == DType::f32) {
        fill<<<1024, 256>>>(reinterpret_cast<float*>(pool), kPool / item);
    } else if (dtype == DType::i8) {
        fill<<<1024, 256>>>(reinterpret_cast<std::int8_t*>(pool), kPool / item);
    } else if (dtype == DType::e4m3) {
        fill<<<1024, 256>>>(reinterpret_cast<__nv_fp8_e4m3*>(pool), kPool / item);
    } else {
        fill<<<1024, 256>>>(reinterpret_cast<__half*>(pool), kPool / item);
    }
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaDeviceSynchronize());

    std::printf("shape\tkernel\tsplit\ttile_n\tchosen\tmodel_us\tus\ttflops\terror\n");
    for (int arg = 4; arg < argc; ++arg) {
        const Shape shape = parse(argv[arg]);
        GemmProblem problem;
        problem.m = shape.m;
        problem.n = shape.n;
        problem.k = shape.k;
        if (promoted) problem.accumulate = Accumulate::promoted;
        if (fast) problem.accumulate = Accumulate::fast;
        if (is_tf32) problem.precision = Precision::tf32;
        problem.batch_rank = 1;
        problem.batch_shape[0] = shape.batch;
        const std::int64_t size_a = shape.m * shape.k * shape.batch,
                           size_b = shape.k * shape.n * shape.batch;
        const std::int64_t set = (size_a + size_b + 511) / 256 * 256;  // elements
        const int sets = static_cast<int>(std::clamp<std::int64_t>(
            std::min<std::int64_t>(kPool / item / set, (128ll << 20) / (set * item) + 1), 1, 64));
        GemmArgs args;
        args.m = shape.m;
        args.n = shape.n;
        args.k = shape.k;
        args.batch.rank = shape.batch > 1 ? 1 : 0;
        args.batch.count = args.batch.extent[0] = shape.batch;
        args.a = view(pool, dtype, layout[0], shape.m, shape.k);
        args.b = view(pool, dtype, layout[1], shape.k, shape.n);
        args.d = args.c = view(output, result, 'n', shape.m, shape.n);
        args.workspace = workspace;
        problem.a = operand(args.a);
        problem.b = operand(args.b);
        problem.c = problem.d = operand(args.d);
        const ValidProblem valid = ValidProblem::check(problem);
        // Of the first operands: what the first row computes, unsplit, and whether others agree.
        const std::int64_t d_count = shape.m * shape.n * shape.batch;
        bool has_reference = false;
        const auto error = [&] {
            if (!has_reference) {
                CHECK(cudaMemcpyAsync(reference, output, d_count * size_of(result),
                                      cudaMemcpyDeviceToDevice, stream));
                has_reference = true;
            }
            *difference = {};
            const auto compare_as = [&](auto* type) {
                using T = std::remove_pointer_t<decltype(type)>;
                compare<<<1024, 256, 0, stream>>>(reinterpret_cast<const T*>(output),
                                                  reinterpret_cast<const T*>(reference), d_count,
                                                  difference);
            };
            if (result == DType::f32) {
                compare_as(static_cast<float*>(nullptr));
            } else if (result == DType::bf16) {
                compare_as(static_cast<__nv_bfloat16*>(nullptr));
            } else if (result == DType::i32) {
                compare_as(static_cast<std::int32_t*>(nullptr));
            } else if (result == DType::f64) {
                compare_as(static_cast<double*>(nullptr));
            } else {
                compare_as(static_cast<__half*>(nullptr));
            }
            CHECK(cudaStreamSynchronize(stream));
            float error = 0, size = 0;
            std::memcpy(&error, &difference->error, sizeof(error));
            std::memcpy(&size, &difference->size, sizeof(size));
            return error / size;
        };
        const auto timed = [&](cudaGraphExec_t graph, int times) {
            CHECK(cudaEventRecord(start, stream));
            CHECK(cudaGraphLaunch(graph, stream));
            CHECK(cudaEventRecord(stop, stream));
            CHECK(cudaEventSynchronize(stop));
            float ms = 0;
            CHECK(cudaEventElapsedTime(&ms, start, stop));
            return 1e3 * ms / times;
        };
        std::vector<Candidate> candidates;
        for (const RegisteredFamily& entry : registered_families()) {
            if (family != entry.name || !runs_on(entry.architectures, device.cc())) continue;
            for (int row = 0; row < entry.family->kernel_count; ++row) {
                const KernelInfo& kernel = entry.family->kernels[row];
                if (!rejection(kernel, valid, device).empty()) continue;
                if (kernel.needs.halves()) continue;  // a plan packs for it
                const Schedule chosen = kernel.schedule(valid, device);
                const bool is_sm90 = family == "sm90_wgmma";
                // Whether the kernel takes the operands as they lie: on tensor cores TF32 any A,
                // but a B with contiguous k.
                const auto can = [&](bool transposed) {
                    if (is_tf32 && family != "simt")
                        return transposed ? layout == "nn" : layout[1] == 't';
                    return !transposed || chosen.transposed ||
                           (is_sm90 && item == 2 && size_of(result) == 2);
                };
                std::vector<Schedule> schedules;
                if (can(false)) schedules.push_back({});
                const auto add = [&](int split, bool in_cluster, bool transposed) {
                    Schedule schedule;
                    schedule.split_k = split;
                    schedule.in_cluster = in_cluster;
                    schedule.transposed = transposed;
                    schedules.push_back(schedule);
                };
                for (const bool transposed : {false, true}) {
                    if (!can(transposed)) continue;
                    if (transposed && !is_sm90) add(1, false, true);
                    const std::int64_t m = transposed ? shape.n : shape.m,
                                       n = transposed ? shape.m : shape.n;
                    const int width = kernel.tile.block_n;
                    for (int tile_n = width; is_sm90 && tile_n >= 64; tile_n -= 16) {
                        Schedule schedule;
                        schedule.transposed = transposed;
                        schedule.tile_n = tile_n < width ? tile_n : 0;
                        if (n > tile_n || (transposed && schedule.tile_n == 0)) {
                            schedules.push_back(schedule);
                        }
                        schedule.shares_b = true;
                        if (m > kernel.tile.block_m) schedules.push_back(schedule);
                        schedule.shares_b = false;
                        schedule.shares_a = true;
                        if ((n + tile_n - 1) / tile_n % 2 == 0) schedules.push_back(schedule);
                        schedule.shares_a = false;
                        schedule.splits_rest = true;
                        const std::int64_t tiles = (m + kernel.tile.block_m - 1) /
                                                   kernel.tile.block_m *
                                                   ((n + tile_n - 1) / tile_n) * shape.batch;
                        const std::int64_t rest = tiles % device.sm_count;
                        for (int s : {2, 3, 4, 6, 8, 11, 16, 33}) {
                            schedule.split_k = s;
                            const bool fits = rest * s <= device.sm_count && s * 128 <= shape.k;
                            if (item <= 2 && rest > 0 && tiles > rest && fits) {
                                schedules.push_back(schedule);
                            }
                        }
                    }
                    for (int s : {2, 3, 4, 6, 8, 12, 16, 24, 33, 44, 66, 128}) {
                        const double bytes = 4.3 * s * ((m + 255) / 256 * 256.0) *
                                             ((n + 255) / 256 * 256.0) * shape.batch;
                        const std::int64_t blocks =
                            (m + kernel.tile.block_m - 1) / kernel.tile.block_m *
                            ((n + kernel.tile.block_n - 1) / kernel.tile.block_n) * s;
                        if (s * 128 <= shape.k && bytes < kWorkspace &&
                            blocks <= (is_sm90 ? 2 : 8) * device.sm_count)
                            add(s, false, transposed);
                    }
                    // Other kernels have no parts in a cluster.
                    const bool pairs = is_sm90 && std::strstr(kernel.name, "64x64_pp") != nullptr;
                    if (pairs && shape.k >= 256) add(2, true, transposed);
                }
                const auto is_chosen = [&](const Schedule& schedule) {
                    return schedule.split_k == chosen.split_k &&
                           schedule.in_cluster == chosen.in_cluster &&
                           schedule.splits_rest == chosen.splits_rest &&
                           schedule.tile_n == chosen.tile_n &&
                           schedule.shares_b == chosen.shares_b &&
                           schedule.shares_a == chosen.shares_a &&
                           schedule.transposed == chosen.transposed;
                };
                if (can(chosen.transposed) &&
                    std::none_of(schedules.begin(), schedules.end(), is_chosen)) {
                    schedules.push_back(chosen);
                }
                for (const Schedule& schedule : schedules) {
                    at_work = std::string(argv[arg]) + " " + kernel.name + " " + name_of(schedule);
                    int next = 0;
                    const auto run = [&](int times) {
                        for (int i = 0; i < times; ++i) {
                            args.a.data = pool + next * set * item;
                            args.b.data = pool + (next * set + (size_a + 255) / 256 * 256) * item;
                            next = (next + 1) % sets;
                            launch_kernel(kernel, args, schedule, stream);
                        }
                    };
                    // In a graph, so that the host is no part of the time.
                    const auto captured = [&](int times) {
                        cudaGraph_t graph;
                        cudaGraphExec_t executable;
                        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
                        run(times);
                        CHECK(cudaStreamEndCapture(stream, &graph));
                        CHECK(cudaGraphInstantiate(&executable, graph, 0));
                        CHECK(cudaGraphDestroy(graph));
                        return executable;
                    };
                    CHECK(cudaMemsetAsync(output, 0xff, d_count * size_of(result), stream));
                    run(1);
                    const float its_error = error();
                    cudaGraphExec_t graph = captured(3);
                    timed(graph, 3);
                    const double guess = timed(graph, 3);
                    CHECK(cudaGraphExecDestroy(graph));
                    const int times = static_cast<int>(std::clamp(3000.0 / guess, 3.0, 400.0));
                    candidates.push_back({kernel.name,
                                          schedule,
                                          is_chosen(schedule),
                                          chosen.cost_us,
                                          its_error,
                                          times,
                                          captured(times),
                                          {}});
                }
            }
        }
        // In turns: the clock follows what ran before.
        for (int round = 0; round < 5; ++round) {
            for (Candidate& its : candidates) its.us.push_back(timed(its.graph, its.times));
        }
        for (Candidate& its : candidates) {
            CHECK(cudaGraphExecDestroy(its.graph));
            std::sort(its.us.begin(), its.us.end());
            const double us = its.us[its.us.size() / 2];
            const double flop = 2.0 * shape.m * shape.n * shape.k * shape.batch;
            std::printf("%s\t%s\t%s\t%d\t%.2f\t%.2f\t%.1f\t%.1e\n", argv[arg], its.kernel,
                        name_of(its.schedule).c_str(), its.is_chosen, its.model_us, us,
                        flop / us * 1e-6, its.error);
        }
        std::fflush(stdout);
    }
    return 0;
}
