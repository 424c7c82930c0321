// Host entry points between the translation units of this family.
#pragma once

#include "kernels/device/tile_scheduler.cuh"
#include "kernels/kernel_info.hpp"
#include "kernels/sm70_wmma/policy.hpp"

namespace tcgemm::sm70_wmma {

// The K range of a block: one of `split_k` parts of `k_per_split` elements, the last one shorter.
// Part p of the result lies p * d_stride elements behind D.
struct KSplit {
    int split_k = 1;
    std::int64_t k_per_split = 0;  // a multiple of block_k
    std::int64_t d_stride = 0;
};

// Launches Row's kernel for one pair of layouts. Instantiated in layout_*.cu.
template <class Row, Major A, Major B>
void launch_layout(const GemmArgs& args, const device::TileScheduler& scheduler,
                   const KSplit& split, StreamView stream);

// Partial results of a split product: float, split_k x batches x m x ld, rows padded to 16 bytes.
struct Partials {
    std::int64_t ld, d_stride;  // elements; d_stride from one part to the next
    Partials(const GemmArgs& args)
        : ld((args.n + 3) / 4 * 4), d_stride(args.batch.count * args.m * ld) {}
    // `args` with D replaced by the partial results: what the first launch computes.
    GemmArgs target(const GemmArgs& args) const;
};

// D = epilogue(sum of the parts), added in order: the result does not depend on timing.
void reduce_splits(const GemmArgs& args, const Partials& partials, int split_k, StreamView stream,
                   const char* kernel_name);

}  // namespace tcgemm::sm70_wmma
