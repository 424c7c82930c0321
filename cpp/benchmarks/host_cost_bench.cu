// What a call costs the calling thread, in microseconds: the launch of a kernel that does nothing,
// that of a product's kernel, each way to ask for a product, and the parts of one. Prints JSON.
//   host_cost_bench [rounds] [calls in a row]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/runtime.hpp"
#include "dispatch/select.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/sm90_wgmma/params.hpp"
#include "tcgemm/tcgemm.h"
#include "tcgemm/tcgemm.hpp"

using namespace tcgemm;

namespace {

constexpr int kSize = 64;  // a product that the GPU is done with before the next one is launched

struct Parameters {
    char bytes[sizeof(sm90_wgmma::Params)];
};
__global__ void empty_kernel(const __grid_constant__ Parameters) {}
__global__ void kernel_without_parameters() {}

struct Row {
    std::string name;
    std::function<void()> call;
    std::vector<double> us;  // a call, one figure a round
};

// `calls` in a row: fewer than a stream's queue holds, so that none waits for the GPU.
void measure(std::vector<Row>& rows, int rounds, int calls, StreamView stream) {
    for (int round = 0; round < rounds + 2; ++round) {  // the first two warm up
        for (Row& row : rows) {
            stream.synchronize();
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < calls; ++i) row.call();
            const std::chrono::duration<double, std::micro> time =
                std::chrono::steady_clock::now() - start;
            if (round >= 2) row.us.push_back(time.count() / calls);
        }
    }
    stream.synchronize();
}

GemmProblem problem_of(DType dtype, Precision precision) {
    GemmProblem problem;
    problem.m = problem.n = problem.k = kSize;
    problem.a = problem.b = Operand::row_major(dtype, kSize);
    problem.c = problem.d = Operand::row_major(DType::f32, kSize);
    problem.precision = precision;
    return problem;
}

MatrixView view(void* data, DType dtype) {
    MatrixView result;
    result.data = data;
    result.row_stride = kSize;
    result.col_stride = 1;
    result.dtype = dtype;
    return result;
}

tcgemm_problem c_problem() {
    tcgemm_problem problem;
    tcgemm_problem_init(&problem, kSize, kSize, kSize, TCGEMM_FLOAT16);
    problem.c.dtype = problem.d.dtype = TCGEMM_FLOAT32;
    return problem;
}

void check(tcgemm_status status) {
    if (status == TCGEMM_OK) return;
    std::fprintf(stderr, "host_cost_bench: %s\n", tcgemm_last_error());
    std::exit(1);
}

void run(int rounds, int calls) {
    const Device device = Device::cuda(0);
    const DeviceGuard guard(device);
    const Stream stream(device);
    const std::size_t bytes = kSize * kSize * sizeof(float);
    const DeviceBuffer a(bytes, device, stream), b(bytes, device, stream), d(bytes, device, stream);
    const GemmPointers pointers = {a.data(), b.data(), nullptr, d.data()};

    const GemmProblem problem = problem_of(DType::f16, Precision::automatic);
    const Plan plan(problem, device);
    const Choice choice =
        select(ValidProblem::check(problem), properties(device), forced_by_environment());
    const DeviceBuffer workspace(plan.workspace_bytes(), device, stream);
    GemmArgs args;
    args.m = args.n = args.k = kSize;
    args.a = view(a.data(), DType::f16);
    args.b = view(b.data(), DType::f16);
    args.c = args.d = view(d.data(), DType::f32);
    args.workspace = workspace.data();

    // FP32 operands in FP16: packed first, so that there is a workspace.
    const Plan packing(problem_of(DType::f32, Precision::fp16), device);
    const DeviceBuffer packed(packing.workspace_bytes(), device, stream);

    const tcgemm_problem raw = c_problem();
    tcgemm_plan* c_plan = nullptr;
    check(tcgemm_plan_create(&raw, 0, &c_plan));
    tcgemm_pointers c_pointers = {};
    c_pointers.a = a.data();
    c_pointers.b = b.data();
    c_pointers.d = d.data();
    Event event(device);

    device::LaunchConfig config;
    config.threads = 128;
    config.shared_bytes = 200 << 10;
    config.stream = stream;
    device::LaunchConfig overlapping = config;
    overlapping.overlaps_predecessor = true;
    const auto launch_empty = [](const device::LaunchConfig& how) {
        device::launch("empty_kernel", empty_kernel, how, Parameters());
    };
    runtime::TensorMapShape shape = {};
    shape.address = a.data();
    shape.element_bytes = 2;
    shape.extent[0] = shape.extent[1] = kSize;
    for (int dim = 2; dim < 5; ++dim) shape.extent[dim] = 1;
    for (auto& stride : shape.stride_bytes) stride = kSize * 2;
    shape.box[0] = shape.box[1] = kSize;
    alignas(64) char map[128];

    std::vector<Row> rows = {
        {"empty kernel without parameters by <<<>>>",
         [&] { kernel_without_parameters<<<1, 128, 0, stream.view().get()>>>(); },
         {}},
        {"empty kernel by <<<>>>",
         [&] { empty_kernel<<<1, 128, 0, stream.view().get()>>>(Parameters()); },
         {}},
        {"empty kernel by device::launch", [&] { launch_empty(config); }, {}},
        {"empty kernel that overlaps its predecessor", [&] { launch_empty(overlapping); }, {}},
        {"launch of " + plan.kernel() + " alone",
         [&] { launch_kernel(*choice.kernel, args, choice.schedule, stream); },
         {}},
        {"Plan::run",
         [&] { plan.run(pointers, {}, stream, workspace.data(), workspace.bytes()); },
         {}},
        {"tcgemm_plan_run",
         [&] {
             check(tcgemm_plan_run(c_plan, &c_pointers, 1, 0, stream.view().get(), workspace.data(),
                                   workspace.bytes()));
         },
         {}},
        {"gemm", [&] { gemm(problem, device, pointers, {}, stream); }, {}},
        {"tcgemm_gemm",
         [&] { check(tcgemm_gemm(&raw, 0, &c_pointers, 1, 0, stream.view().get())); },
         {}},
        {"Plan::run that packs",
         [&] { packing.run(pointers, {}, stream, packed.data(), packed.bytes()); },
         {}},
        {"Plan::run that packs, workspace of the pool",
         [&] { packing.run(pointers, {}, stream); },
         {}},
        {"part: cached_plan", [&] { cached_plan(problem, device); }, {}},
        {"part: forced_by_environment", [] { forced_by_environment(); }, {}},
        {"part: DeviceGuard", [&] { const DeviceGuard same(device); }, {}},
        {"part: is_capturing", [&] { stream.view().is_capturing(); }, {}},
        {"part: Event::record", [&] { event.record(stream); }, {}},
        {"part: Event::wait_on", [&] { event.wait_on(stream); }, {}},
        {"part: a tensor map", [&] { runtime::encode_tensor_map(map, shape); }, {}},
        {"part: DeviceBuffer of 1 MB",
         [&] { const DeviceBuffer other(1 << 20, device, stream); },
         {}},
    };
    measure(rows, rounds, calls, stream);
    tcgemm_plan_destroy(c_plan);

    std::printf(
        "{\"gpu\": \"%s\", \"commit\": \"%s\", \"cuda\": \"%s\", \"unit\": \"us a call\", "
        "\"calls\": %d, \"rows\": [\n",
        properties(device).name.c_str(), build_info().commit.c_str(),
        build_info().cuda_version.c_str(), calls);
    for (Row& row : rows) {
        std::sort(row.us.begin(), row.us.end());
        std::printf("  {\"case\": \"%s\", \"median\": %.3f, \"min\": %.3f}%s\n", row.name.c_str(),
                    row.us[row.us.size() / 2], row.us.front(), &row == &rows.back() ? "" : ",");
    }
    std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const auto argument = [&](int i, int otherwise) {
            return argc > i ? std::max(1, std::atoi(argv[i])) : otherwise;
        };
        run(argument(1, 50), argument(2, 256));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "host_cost_bench: %s\n", error.what());
        return 1;
    }
    return 0;
}
