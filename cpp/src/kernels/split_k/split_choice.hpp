// Into how many parts a product's K is split: as many as cost the least, or as N and K say.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm {

struct SplitLimits {
    std::int64_t steps = 1;      // of K, which a part holds whole
    std::int64_t min_steps = 1;  // of a part
    int max_parts = 1;
    int sum_bytes = 4;  // of an element of the partial results
    int invariant_parts = 1;
};

inline constexpr double kMaxPartialBytes = 256.0 * (1 << 20);

// Of batch-invariant products: a K from `least_k` on is split, into parts of some `part_k` or more,
// of which the columns of D fill a GPU with tiles of so many.
struct InvariantSplit {
    std::int64_t least_k, part_k, columns;
};

// Whatever M and the batch are. Parts hold kInvariantStep of k whole, in every kernel, and have
// half as many sums of a row of D as A has elements in it, at most.
inline constexpr int kInvariantStep = 128;
inline int invariant_parts(const ValidProblem& problem, const InvariantSplit& split) {
    constexpr std::int64_t kBlocks = 132;                         // SMs of the measurements
    const std::int64_t n = problem.as_given().n, k = problem->k;  // as the user sees D
    if (!problem.batch_invariant() || k < split.least_k) return 1;
    const std::int64_t most =
        std::min({k / split.part_k, kBlocks / divide_up(n, split.columns), k / (2 * n)});
    if (most <= 1) return 1;
    const std::int64_t steps = divide_up(k, kInvariantStep);
    return static_cast<int>(divide_up(steps, divide_up(steps, most)));
}

// `problem`: as the kernel computes it. `cost_us(parts)`: microseconds of the whole product.
template <class CostUs>
Schedule cheapest_split(const ValidProblem& problem, const SplitLimits& limits,
                        const CostUs& cost_us) {
    const double part_bytes = static_cast<double>(problem->m) *
                              static_cast<double>(partial_ld(problem->n)) *
                              static_cast<double>(problem.batch_count()) * limits.sum_bytes;
    Schedule best;
    const auto take = [&](int parts, double cost) {
        best.split_k = parts;
        best.workspace_bytes =
            parts > 1 ? static_cast<std::size_t>(part_bytes) * static_cast<std::size_t>(parts) : 0;
        best.cost_us = cost;
    };
    if (problem.batch_invariant()) {
        best.part_step = kInvariantStep;
        take(limits.invariant_parts, cost_us(limits.invariant_parts));
        return best;
    }
    take(1, cost_us(1));
    for (int split = 2; split <= limits.max_parts && split * limits.min_steps <= limits.steps &&
                        part_bytes * split <= kMaxPartialBytes;
         split += std::max(1, split / 4)) {
        // Where the steps do not come out even, fewer parts hold them.
        const auto parts =
            static_cast<int>(divide_up(limits.steps, divide_up(limits.steps, split)));
        const double cost = cost_us(parts);
        if (cost < best.cost_us) take(parts, cost);
    }
    return best;
}

}  // namespace tcgemm
