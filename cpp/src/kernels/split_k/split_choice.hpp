// Into how many parts a product's K is split: as many as cost the least.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/kernel_info.hpp"

namespace tcgemm {

struct SplitLimits {
    std::int64_t steps = 1;      // of K, which a part holds whole
    std::int64_t min_steps = 1;  // of a part
    int max_parts = 1;
    int sum_bytes = 4;  // of an element of the partial results
};

inline constexpr double kMaxPartialBytes = 256.0 * (1 << 20);

// `problem`: as the kernel computes it. `cost_us(parts)`: microseconds of the whole product.
template <class CostUs>
Schedule cheapest_split(const ValidProblem& problem, const SplitLimits& limits,
                        const CostUs& cost_us) {
    const double part_bytes = static_cast<double>(problem->m) *
                              static_cast<double>(round_up(problem->n, 4)) *  // see Partials
                              static_cast<double>(problem.batch_count()) * limits.sum_bytes;
    Schedule best;
    best.cost_us = cost_us(1);
    for (int split = 2; split <= limits.max_parts && split * limits.min_steps <= limits.steps &&
                        part_bytes * split <= kMaxPartialBytes;
         split += std::max(1, split / 4)) {
        // Where the steps do not come out even, fewer parts hold them.
        const auto parts =
            static_cast<int>(divide_up(limits.steps, divide_up(limits.steps, split)));
        const double cost = cost_us(parts);
        if (cost < best.cost_us) {
            best.split_k = parts;
            best.workspace_bytes =
                static_cast<std::size_t>(part_bytes) * static_cast<std::size_t>(parts);
            best.cost_us = cost;
        }
    }
    return best;
}

}  // namespace tcgemm
