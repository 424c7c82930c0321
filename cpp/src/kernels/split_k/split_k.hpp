// A product whose K is split over blocks: a first launch leaves partial results in the workspace, a
// second one adds them up in a fixed order and applies the epilogue.
#pragma once

#include <algorithm>

#include "core/math.hpp"
#include "kernels/kernel_info.hpp"

namespace tcgemm {

// The K range of a block: one of `split_k` parts of `k_per_split` elements, the last one shorter.
// Part p of the result lies p * d_stride elements behind D.
struct KRange {
    int split_k = 1;
    std::int64_t k_per_split = 0;  // a multiple of block_k
    std::int64_t d_stride = 0;
    std::uint64_t epoch = 0;  // of a launch that adds up the parts itself

    KRange() = default;
    KRange(std::int64_t k, int parts, int block_k)
        : split_k(parts), k_per_split(divide_up(divide_up(k, block_k), parts) * block_k) {}
};

// What the sums of operands of a dtype are kept in.
constexpr DType sum_dtype(DType operand) {
    return operand == DType::i8 ? DType::i32 : operand == DType::f64 ? DType::f64 : DType::f32;
}

// Rows of partial results are padded to so many elements, the vector that a thread adds up.
inline constexpr int kPartialColumns = 4;
constexpr std::int64_t partial_ld(std::int64_t n) { return round_up(n, kPartialColumns); }

// Partial results of a split product: split_k x batches x m x ld.
struct Partials {
    DType dtype;                // f32, f64 or i32, as the sums
    std::int64_t ld, d_stride;  // elements; d_stride from one part to the next
    Partials(const GemmArgs& args, DType sums)
        : dtype(sums), ld(partial_ld(args.n)), d_stride(args.batch.count * args.m * ld) {}
    // `args` with D replaced by the partial results: what the first launch computes.
    GemmArgs target(const GemmArgs& args) const;
};

// D = epilogue(sum of the parts), added in order: the result does not depend on timing.
void reduce_splits(const GemmArgs& args, const Partials& partials, int split_k, StreamView stream,
                   const char* kernel_name);

// Both launches, or the one of a whole K: `launch(what, split)` computes `what`, which is `args` or
// its partial results, in k-blocks of `block_k`.
template <class Launch>
void launch_split(const GemmArgs& args, const Schedule& schedule, int block_k, DType sums,
                  StreamView stream, const char* kernel_name, const Launch& launch) {
    KRange split(args.k, schedule.split_k, std::max(block_k, schedule.part_step));
    if (split.split_k == 1) return launch(args, split);
    const Partials partials(args, sums);
    split.d_stride = partials.d_stride;
    launch(partials.target(args), split);
    reduce_splits(args, partials, split.split_k, stream, kernel_name);
}

}  // namespace tcgemm
