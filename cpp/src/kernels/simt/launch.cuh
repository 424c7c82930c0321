// Launches the kernel of one policy; included by the file that instantiates it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/runtime.hpp"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/simt/cost_model.hpp"
#include "kernels/simt/gemm_kernel.cuh"

namespace tcgemm::simt {

inline constexpr std::int64_t kMaxGrid = (std::int64_t{1} << 31) - 1;
inline constexpr int kBand = 16;  // rows of tiles that are walked column by column, for L2

// Whether vectors of four elements can be read: one stride is 1, and address, the other stride and
// the batch strides keep them aligned.
template <class Element>
bool vectorized(const MatrixView& view, const BatchShape& batch) {
    if (view.row_stride != 1 && view.col_stride != 1) return false;
    const std::int64_t other = view.col_stride == 1 ? view.row_stride : view.col_stride;
    bool aligned =
        reinterpret_cast<std::uintptr_t>(view.data) % alignof(Vector<Element, kVector>) == 0 &&
        other % kVector == 0;
    for (int dim = 0; dim < batch.rank; ++dim) {
        aligned = aligned && view.batch_stride[dim] % kVector == 0;
    }
    return aligned;
}

template <class Policy>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    using Numbers = typename Policy::Numbers;
    using Epilogue = std::conditional_t<kIsScaled<Numbers>, epilogue::Scaled,
                                        epilogue::Linear<typename Numbers::Result>>;
    const Epilogue epilogue(args);

    Work work;
    // The plan's k may have become 0 (alpha = 0): then there is nothing to split.
    // Promoted sums are over the same k whatever the split: scales of k-blocks act on them.
    constexpr bool kPromotes = Numbers::kAccumulate == Accumulate::promoted;
    constexpr int kStep = kPromotes ? kPromotedK : Policy::kBlockK;
    const std::int64_t steps = divide_up(args.k, kStep);
    work.split_length = std::max<std::int64_t>(divide_up(steps, schedule.split_k), 1) * kStep;
    work.splits = static_cast<int>(std::max<std::int64_t>(divide_up(args.k, work.split_length), 1));
    work.tiles = {divide_up(args.m, Policy::kBlock), divide_up(args.n, Policy::kBlock),
                  args.batch.count * work.splits, kBand};
    using Loader = typename SharedMemory<Policy>::Loader;
    work.a = Loader::path(args.a.row_stride, args.a.col_stride,
                          vectorized<typename Numbers::Element>(args.a, args.batch));
    work.b = Loader::path(args.b.col_stride, args.b.row_stride,
                          vectorized<typename Numbers::Element>(args.b, args.batch));

    const auto blocks = static_cast<unsigned>(std::min(work.tiles.count(), kMaxGrid));
    gemm_kernel<Policy, Epilogue>
        <<<blocks, Policy::kThreads, 0, stream.get()>>>(args, work, epilogue);
    runtime::check_launch("simt gemm_kernel");

    if constexpr (!kIsScaled<Numbers>) {  // whose K is never split: see family.cu
        if (work.splits == 1) return;
        const std::int64_t outputs = args.m * args.n * args.batch.count;
        const auto reduce_blocks =
            static_cast<unsigned>(std::min(divide_up(outputs, 256), kMaxGrid));
        reduce_kernel<typename Numbers::Acc, Epilogue>
            <<<reduce_blocks, 256, 0, stream.get()>>>(args, work.splits, epilogue);
        runtime::check_launch("simt reduce_kernel");
    }
}

}  // namespace tcgemm::simt
