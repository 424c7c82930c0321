// The second launch of a product whose K was split: adds the parts and applies the epilogue.
#include <algorithm>

#include "core/runtime.hpp"
#include "kernels/device/arch_guard.cuh"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm70_wmma/launch.hpp"

namespace tcgemm::sm70_wmma {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;  // columns a thread: 16 bytes of each part

template <class Epilogue>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const GemmArgs args, const Epilogue epilogue, const Partials partials,
                  const int split_k) {
    const std::int64_t stride = partials.d_stride;  // from one part to the next
    const std::int64_t chunks = stride / kVector;
    const std::int64_t row_chunks = partials.ld / kVector;
    const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
    for (std::int64_t chunk = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; chunk < chunks;
         chunk += threads) {
        const std::int64_t row = chunk / row_chunks;
        const std::int64_t col = (chunk - row * row_chunks) * kVector;
        const auto count = static_cast<int>(min(args.n - col, std::int64_t{kVector}));
        const auto* part = static_cast<const float*>(args.workspace) + chunk * kVector;
        float sum[kVector] = {};
        if (count == kVector) {
#pragma unroll 8  // loads of eight parts in flight
            for (int p = 0; p < split_k; ++p) {
                const float4 value = __ldg(reinterpret_cast<const float4*>(part + p * stride));
                sum[0] += value.x;
                sum[1] += value.y;
                sum[2] += value.z;
                sum[3] += value.w;
            }
        } else {  // nothing was written behind the last column
            for (int p = 0; p < split_k; ++p) {
#pragma unroll
                for (int i = 0; i < kVector; ++i) {
                    if (i < count) sum[i] += __ldg(part + p * stride + i);
                }
            }
        }
        const std::int64_t batch = args.batch.count == 1 ? 0 : row / args.m;
        const epilogue::Output<Epilogue> output(epilogue, args, batch);
        output.template store<kVector>(row - batch * args.m, col, sum, count);
    }
}

}  // namespace

GemmArgs Partials::target(const GemmArgs& args) const {
    GemmArgs target = args;
    target.alpha = 1.0;
    target.beta = 0.0;
    target.d = {};
    target.d.data = args.workspace;
    target.d.dtype = DType::f32;
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
    constexpr std::int64_t kMaxGrid = 0x7fffffff;
    reduce_kernel<<<static_cast<unsigned>(std::min(blocks, kMaxGrid)), kThreads, 0, stream.get()>>>(
        args, epilogue::Linear<float>(args), partials, split_k);
    runtime::check_launch(kernel_name);
}

}  // namespace tcgemm::sm70_wmma
