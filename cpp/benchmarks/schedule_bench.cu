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

#include "core/math.hpp"
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

// use(T*) of memory with elements of a dtype.
template <class Use>
void with_type(DType dtype, void* data, const Use& use) {
    switch (dtype) {
        case DType::bf16: return use(static_cast<__nv_bfloat16*>(data));
        case DType::f32: return use(static_cast<float*>(data));
        case DType::f64: return use(static_cast<double*>(data));
        case DType::e4m3: return use(static_cast<__nv_fp8_e4m3*>(data));
        case DType::i8: return use(static_cast<std::int8_t*>(data));
        case DType::i32: return use(static_cast<std::int32_t*>(data));
        default: return use(static_cast<__half*>(data));
    }
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

// What the command line asks for, but the shapes.
struct Request {
    std::string family, layout;
    DType dtype, result;
    Accumulate accumulate = Accumulate::automatic;
    bool is_tf32;

    explicit Request(char** argv) : family(argv[1]), layout(argv[3]) {
        const std::string dtypes = argv[2];
        const auto has = [&](const char* text) { return dtypes.find(text) != std::string::npos; };
        dtype = dtype_named(dtypes.substr(0, dtypes.find_first_of(":+")));
        result = has(":f32")            ? DType::f32
                 : dtype == DType::e4m3 ? DType::bf16
                 : dtype == DType::i8   ? DType::i32
                                        : dtype;
        if (has("+promoted")) accumulate = Accumulate::promoted;
        if (has("+fast")) accumulate = Accumulate::fast;
        is_tf32 = dtypes.rfind("tf32", 0) == 0;
    }
    int item() const { return size_of(dtype); }
    bool is_sm90() const { return family == "sm90_wgmma"; }
};

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

bool same(const Schedule& a, const Schedule& b) {
    return a.split_k == b.split_k && a.in_cluster == b.in_cluster &&
           a.splits_rest == b.splits_rest && a.tile_n == b.tile_n && a.shares_b == b.shares_b &&
           a.shares_a == b.shares_a && a.transposed == b.transposed;
}

constexpr std::size_t kPool = 3ull << 30, kWorkspace = 1ull << 30, kOutput = 4ull << 30;

// Memory for all products, operands filled in, and a stream to time them in.
struct Gpu {
    char *pool = nullptr, *workspace = nullptr, *output = nullptr, *reference = nullptr;
    Difference* difference = nullptr;
    cudaStream_t stream;

    explicit Gpu(DType dtype) {
        CHECK(cudaMalloc(&pool, kPool));
        CHECK(cudaMalloc(&workspace, kWorkspace));
        CHECK(cudaMalloc(&output, kOutput));
        CHECK(cudaMalloc(&reference, kOutput));
        CHECK(cudaMallocManaged(&difference, sizeof(Difference)));
        with_type(dtype, pool,
                  [&](auto* data) { fill<<<1024, 256>>>(data, kPool / sizeof(*data)); });
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&start_));
        CHECK(cudaEventCreate(&stop_));
        CHECK(cudaDeviceSynchronize());
    }

    // Microseconds of one of the `times` launches of a graph.
    double timed(cudaGraphExec_t graph, int times) const {
        CHECK(cudaEventRecord(start_, stream));
        CHECK(cudaGraphLaunch(graph, stream));
        CHECK(cudaEventRecord(stop_, stream));
        CHECK(cudaEventSynchronize(stop_));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start_, stop_));
        return 1e3 * ms / times;
    }

    // The error of an output of `count` elements. The first output, where there is no reference
    // yet, becomes it.
    float error(DType dtype, std::int64_t count, bool& has_reference) const {
        if (!has_reference) {
            CHECK(cudaMemcpyAsync(reference, output, count * size_of(dtype),
                                  cudaMemcpyDeviceToDevice, stream));
            has_reference = true;
        }
        *difference = {};
        with_type(dtype, output, [&](auto* value) {
            compare<<<1024, 256, 0, stream>>>(value, reinterpret_cast<decltype(value)>(reference),
                                              count, difference);
        });
        CHECK(cudaStreamSynchronize(stream));
        float error = 0, size = 0;
        std::memcpy(&error, &difference->error, sizeof(error));
        std::memcpy(&size, &difference->size, sizeof(size));
        return error / size;
    }

   private:
    cudaEvent_t start_, stop_;
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

// A product, in as many sets of operands as keep them out of L2.
struct Product {
    Shape shape;
    GemmProblem problem;
    GemmArgs args;                    // of the first set
    std::int64_t b_bytes, set_bytes;  // where B lies in a set, and the next one
    int sets;

    Product(const Request& request, const Shape& of, const Gpu& gpu) : shape(of) {
        const int item = request.item();
        const std::int64_t size_a = shape.m * shape.k * shape.batch,
                           size_b = shape.k * shape.n * shape.batch;
        b_bytes = round_up(size_a, 256) * item;
        set_bytes = (size_a + size_b + 511) / 256 * 256 * item;
        sets = static_cast<int>(std::clamp<std::int64_t>(
            std::min<std::int64_t>(kPool / set_bytes, (128ll << 20) / set_bytes + 1), 1, 64));
        args.m = problem.m = shape.m;
        args.n = problem.n = shape.n;
        args.k = problem.k = shape.k;
        args.batch.rank = shape.batch > 1 ? 1 : 0;
        args.batch.count = args.batch.extent[0] = shape.batch;
        args.a = view(gpu.pool, request.dtype, request.layout[0], shape.m, shape.k);
        args.b = view(gpu.pool, request.dtype, request.layout[1], shape.k, shape.n);
        args.d = args.c = view(gpu.output, request.result, 'n', shape.m, shape.n);
        args.workspace = gpu.workspace;
        problem.accumulate = request.accumulate;
        if (request.is_tf32) problem.precision = Precision::tf32;
        problem.batch_rank = 1;
        problem.batch_shape[0] = shape.batch;
        problem.a = operand(args.a);
        problem.b = operand(args.b);
        problem.c = problem.d = operand(args.d);
    }
    std::int64_t d_count() const { return shape.m * shape.n * shape.batch; }
    double flop() const { return 2.0 * shape.m * shape.n * shape.k * shape.batch; }
};

// The schedules of a kernel that are measured.
class Schedules {
   public:
    std::vector<Schedule> all;

    // `chosen`: by the kernel's cost model.
    Schedules(const Request& request, const Shape& shape, const KernelInfo& kernel,
              const Schedule& chosen, int sm_count)
        : request_(request), shape_(shape), kernel_(kernel), sm_count_(sm_count) {
        const bool takes_d = takes(false, chosen), takes_dt = takes(true, chosen);
        if (takes_d) {
            all.push_back({});
            add_for(false);
        }
        if (takes_dt) {
            if (!request.is_sm90()) add(1, false, true);
            add_for(true);
        }
        const auto is_chosen = [&](const Schedule& schedule) { return same(schedule, chosen); };
        if ((chosen.transposed ? takes_dt : takes_d) &&
            std::none_of(all.begin(), all.end(), is_chosen)) {
            all.push_back(chosen);
        }
    }

   private:
    // Whether the kernel takes the operands as they lie: on tensor cores TF32 any A, but a B with
    // contiguous k.
    bool takes(bool transposed, const Schedule& chosen) const {
        if (request_.is_tf32 && request_.family != "simt") {
            return transposed ? request_.layout == "nn" : request_.layout[1] == 't';
        }
        return !transposed || chosen.transposed ||
               (request_.is_sm90() && request_.item() == 2 && size_of(request_.result) == 2);
    }

    void add(int split, bool in_cluster, bool transposed) {
        Schedule schedule;
        schedule.split_k = split;
        schedule.in_cluster = in_cluster;
        schedule.transposed = transposed;
        all.push_back(schedule);
    }

    void add_for(bool transposed) {
        const std::int64_t m = transposed ? shape_.n : shape_.m,
                           n = transposed ? shape_.m : shape_.n;
        const int width = kernel_.tile.block_n;
        for (int tile_n = width; request_.is_sm90() && tile_n >= 64; tile_n -= 16) {
            Schedule schedule;
            schedule.transposed = transposed;
            schedule.tile_n = tile_n < width ? tile_n : 0;
            add_width(schedule, divide_up(m, kernel_.tile.block_m), divide_up(n, tile_n));
        }
        add_splits(m, n, transposed);
        // Other kernels have no parts in a cluster.
        const bool pairs = request_.is_sm90() && std::strstr(kernel_.name, "64x64_pp") != nullptr;
        if (pairs && shape_.k >= 256) add(2, true, transposed);
    }

    // A width of tiles, by itself, with operands shared, and with the K of the rest split.
    void add_width(Schedule schedule, std::int64_t tiles_m, std::int64_t tiles_n) {
        if (tiles_n > 1 || (schedule.transposed && schedule.tile_n == 0)) all.push_back(schedule);
        schedule.shares_b = true;
        if (tiles_m > 1) all.push_back(schedule);
        schedule.shares_b = false;
        schedule.shares_a = true;
        if (tiles_n % 2 == 0) all.push_back(schedule);
        schedule.shares_a = false;
        schedule.splits_rest = true;
        const std::int64_t tiles = tiles_m * tiles_n * shape_.batch, rest = tiles % sm_count_;
        for (int split : {2, 3, 4, 6, 8, 11, 16, 33}) {
            schedule.split_k = split;
            const bool fits = rest * split <= sm_count_ && split * 128 <= shape_.k;
            if (request_.item() <= 2 && rest > 0 && tiles > rest && fits) all.push_back(schedule);
        }
    }

    // Parts of every tile's K.
    void add_splits(std::int64_t m, std::int64_t n, bool transposed) {
        const std::int64_t tiles =
            divide_up(m, kernel_.tile.block_m) * divide_up(n, kernel_.tile.block_n);
        const int tiles_of_sm = request_.is_sm90() ? 2 : 8;
        for (int split : {2, 3, 4, 6, 8, 12, 16, 24, 33, 44, 66, 128}) {
            const double bytes = 4.3 * split * static_cast<double>(round_up(m, 256)) *
                                 static_cast<double>(round_up(n, 256)) *
                                 static_cast<double>(shape_.batch);
            if (split * 128 <= shape_.k && bytes < kWorkspace &&
                tiles * split <= tiles_of_sm * sm_count_) {
                add(split, false, transposed);
            }
        }
    }

    const Request& request_;
    const Shape& shape_;
    const KernelInfo& kernel_;
    int sm_count_;
};

// Launches of a kernel, with the sets of operands in turn.
class Launches {
   public:
    Launches(const Gpu& gpu, const Product& product, const KernelInfo& kernel,
             const Schedule& schedule)
        : gpu_(gpu), product_(product), kernel_(kernel), schedule_(schedule) {}

    void run(int times) {
        GemmArgs args = product_.args;
        for (int i = 0; i < times; ++i) {
            char* const set = gpu_.pool + next_ * product_.set_bytes;
            args.a.data = set;
            args.b.data = set + product_.b_bytes;
            next_ = (next_ + 1) % product_.sets;
            launch_kernel(kernel_, args, schedule_, gpu_.stream);
        }
    }
    // In a graph, so that the host is no part of the time.
    cudaGraphExec_t captured(int times) {
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamBeginCapture(gpu_.stream, cudaStreamCaptureModeThreadLocal));
        run(times);
        CHECK(cudaStreamEndCapture(gpu_.stream, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        return executable;
    }

   private:
    const Gpu& gpu_;
    const Product& product_;
    const KernelInfo& kernel_;
    const Schedule& schedule_;
    int next_ = 0;
};

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

// Every kernel that takes the product, in all of its schedules.
std::vector<Candidate> candidates_of(const Request& request, const char* shape_text,
                                     const Product& product, const Gpu& gpu) {
    const DeviceProperties& device = properties(Device::cuda(0));
    const ValidProblem valid = ValidProblem::check(product.problem);
    bool has_reference = false;
    std::vector<Candidate> result;
    const auto add = [&](const KernelInfo& kernel, const Schedule& schedule,
                         const Schedule& chosen) {
        at_work = std::string(shape_text) + " " + kernel.name + " " + name_of(schedule);
        Launches launches(gpu, product, kernel, schedule);
        CHECK(cudaMemsetAsync(gpu.output, 0xff, product.d_count() * size_of(request.result),
                              gpu.stream));
        launches.run(1);
        const float error = gpu.error(request.result, product.d_count(), has_reference);
        cudaGraphExec_t graph = launches.captured(3);
        gpu.timed(graph, 3);
        const double guess = gpu.timed(graph, 3);
        CHECK(cudaGraphExecDestroy(graph));
        const int times = static_cast<int>(std::clamp(3000.0 / guess, 3.0, 400.0));
        result.push_back({kernel.name,
                          schedule,
                          same(schedule, chosen),
                          chosen.cost_us,
                          error,
                          times,
                          launches.captured(times),
                          {}});
    };
    for (const RegisteredFamily& entry : registered_families()) {
        if (request.family != entry.name || !runs_on(entry.architectures, device.cc())) continue;
        for (int row = 0; row < entry.family->kernel_count; ++row) {
            const KernelInfo& kernel = entry.family->kernels[row];
            if (!rejection(kernel, valid, device).empty()) continue;
            if (kernel.needs.halves()) continue;  // a plan packs for it
            const Schedule chosen = kernel.schedule(valid, device);
            const Schedules schedules(request, product.shape, kernel, chosen, device.sm_count);
            for (const Schedule& schedule : schedules.all) add(kernel, schedule, chosen);
        }
    }
    return result;
}

// In turns: the clock follows what ran before.
void measure(std::vector<Candidate>& candidates, const Gpu& gpu) {
    for (int round = 0; round < 5; ++round) {
        for (Candidate& its : candidates) its.us.push_back(gpu.timed(its.graph, its.times));
    }
    for (Candidate& its : candidates) {
        CHECK(cudaGraphExecDestroy(its.graph));
        std::sort(its.us.begin(), its.us.end());
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5)
        return std::fprintf(stderr, "usage: schedule_bench FAMILY DTYPE LAYOUT SHAPE...\n"), 2;
    const Request request(argv);
    (void)properties(Device::cuda(0));  // throws the reason where there is none
    const Gpu gpu(request.dtype);
    std::printf("shape\tkernel\tsplit\ttile_n\tchosen\tmodel_us\tus\ttflops\terror\n");
    for (int arg = 4; arg < argc; ++arg) {
        const Product product(request, parse(argv[arg]), gpu);
        std::vector<Candidate> candidates = candidates_of(request, argv[arg], product, gpu);
        measure(candidates, gpu);
        for (const Candidate& its : candidates) {
            const double us = its.us[its.us.size() / 2];
            std::printf("%s\t%s\t%s\t%d\t%.2f\t%.2f\t%.1f\t%.1e\n", argv[arg], its.kernel,
                        name_of(its.schedule).c_str(), its.is_chosen, its.model_us, us,
                        product.flop() / us * 1e-6, its.error);
        }
        std::fflush(stdout);
    }
    return 0;
}
