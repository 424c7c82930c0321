// Launches the kernel of one policy; included by the file that instantiates it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/device/launch.cuh"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/simt/gemm_kernel.cuh"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm::simt {

inline constexpr int kBand = 16;  // rows of tiles that are walked column by column, for L2

// Whether vectors of kVector elements can be read: they are contiguous and whole, and address and
// strides keep them aligned.
template <class Element>
bool in_vectors(const MatrixView& view, std::int64_t rows, std::int64_t cols,
                const BatchShape& batch) {
    if (view.row_stride != 1 && view.col_stride != 1) return false;
    const bool along_row = view.col_stride == 1;
    bool aligned =
        reinterpret_cast<std::uintptr_t>(view.data) % alignof(Vector<Element, kVector>) == 0 &&
        (along_row ? cols : rows) % kVector == 0 &&
        (along_row ? view.row_stride : view.col_stride) % kVector == 0;
    for (int dim = 0; dim < batch.rank; ++dim) {
        aligned = aligned && view.batch_stride[dim] % kVector == 0;
    }
    return aligned;
}

template <class Policy>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    using Numbers = typename Policy::Numbers;
    using Element = typename Numbers::Element;
    using Epilogue = std::conditional_t<kIsScaled<Numbers>, epilogue::Scaled,
                                        epilogue::Linear<typename Numbers::Result>>;
    const device::TileScheduler tiles(divide_up(args.m, Policy::kBlockM),
                                      divide_up(args.n, Policy::kBlockN),
                                      args.batch.count * schedule.split_k, kBand);
    const OperandPath a = RegisterLoader<Policy, Policy::kBlockM>::path(
        args.a.row_stride, args.a.col_stride,
        in_vectors<Element>(args.a, args.m, args.k, args.batch));
    const OperandPath b = RegisterLoader<Policy, Policy::kBlockN>::path(
        args.b.col_stride, args.b.row_stride,
        in_vectors<Element>(args.b, args.k, args.n, args.batch));
    launch_split(args, schedule, Policy::kStepK, sum_dtype(Numbers::kDType), stream,
                 "simt reduce_kernel", [&](const GemmArgs& what, const KRange& split) {
                     device::LaunchConfig config;
                     config.blocks =
                         static_cast<unsigned>(std::min(tiles.count(), device::kMaxGrid));
                     config.threads = Policy::kThreads;
                     config.stream = stream;
                     config.overlaps_predecessor = true;
                     device::launch("simt gemm_kernel", gemm_kernel<Policy, Epilogue>, config, what,
                                    {tiles, split, a, b}, Epilogue(what));
                 });
}

}  // namespace tcgemm::simt
