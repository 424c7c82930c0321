// The second launch of a product whose K was split: adds the parts and applies the epilogue.
#include <algorithm>
#include <type_traits>

#include "kernels/device/launch.cuh"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/epilogue/store.cuh"
#include "kernels/halves.hpp"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = kPartialColumns;  // a thread

// Part: float, double or std::int32_t, whose sums wrap around.
template <class Part, class Epilogue>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const GemmArgs args, const __grid_constant__ Epilogue epilogue,
                  const Partials partials, const int split_k) {
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;
    using Sum = std::conditional_t<std::is_integral_v<Part>, std::uint32_t, Part>;
    const std::int64_t stride = partials.d_stride;  // from one part to the next
    const std::int64_t chunks = stride / kVector;
    const std::int64_t row_chunks = partials.ld / kVector;
    const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
    for (std::int64_t chunk = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; chunk < chunks;
         chunk += threads) {
        const std::int64_t row = chunk / row_chunks;
        const std::int64_t col = (chunk - row * row_chunks) * kVector;
        const auto count = static_cast<int>(min(args.n - col, std::int64_t{kVector}));
        const auto* part = static_cast<const Part*>(args.workspace) + chunk * kVector;
        Sum sum[kVector] = {};
        if (count == kVector) {
#pragma unroll 8  // loads of eight parts in flight
            for (int p = 0; p < split_k; ++p) {
                const auto value =
                    *reinterpret_cast<const device::Vector<Part, kVector>*>(part + p * stride);
#pragma unroll
                for (int i = 0; i < kVector; ++i) sum[i] += value.element[i];
            }
        } else {  // nothing was written behind the last column
#pragma unroll 8
            for (int p = 0; p < split_k; ++p) {
#pragma unroll
                for (int i = 0; i < kVector; ++i) {
                    if (i < count) sum[i] += part[p * stride + i];
                }
            }
        }
        const std::int64_t batch = args.batch.count == 1 ? 0 : row / args.m;
        const epilogue::Output<Epilogue> output(epilogue, args, batch);
        using Value = typename Epilogue::Value;
        Value value[kVector];
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
            value[i] = epilogue::widen<Value>(static_cast<Part>(sum[i]));
        }
        output.template store<kVector>(row - batch * args.m, col, value, count);
    }
}

}  // namespace

GemmArgs Partials::target(const GemmArgs& args) const {
    GemmArgs target = args;
    target.alpha = 1.0;
    target.beta = 0.0;
    target.scales = nullptr;
    target.d = {};
    target.d.data = args.workspace;
    target.d.dtype = dtype;
    target.d.row_stride = ld;
    target.d.col_stride = 1;
    std::int64_t stride = args.m * ld;
    for (int dim = args.batch.rank - 1; dim >= 0; --dim) {
        target.d.batch_stride[dim] = stride;
        stride *= args.batch.extent[dim];
    }
    return target;
}

void reduce_splits(const GemmArgs& args, const Partials& partials, int split_k, StreamView stream,
                   const char* kernel_name) {
    const std::int64_t blocks = (partials.d_stride / kVector + kThreads - 1) / kThreads;
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(std::min(blocks, device::kMaxGrid));
    config.threads = kThreads;
    config.stream = stream;
    config.overlaps_predecessor = true;
    const auto launch = [&](auto part, const auto& epilogue) {
        using Epilogue = std::decay_t<decltype(epilogue)>;
        device::launch(kernel_name, reduce_kernel<decltype(part), Epilogue>, config, args, epilogue,
                       partials, split_k);
    };
    if (partials.dtype == DType::f64) {
        launch(double{}, epilogue::Linear<double>(args));
    } else if (partials.dtype == DType::f32) {
        if (args.scales == nullptr) {
            launch(float{}, epilogue::Linear<float>(args));
        } else {
            launch(float{}, epilogue::Scaled(args));
        }
    } else if (args.scales == nullptr) {
        launch(std::int32_t{}, epilogue::Linear<std::int32_t>(args));
    } else {
        launch(std::int32_t{}, epilogue::Scaled(args));
    }
}

}  // namespace tcgemm
