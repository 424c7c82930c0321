// The powers of two of a tile of products of halves.
#pragma once

#include "kernels/device/exponents.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// sums[row][col] *= 2^(exponent of row + exponent of col). `row`: the warpgroup's first, within the
// tile.
template <class Policy>
__device__ __forceinline__ void apply_exponents(const Params& params, const Work& work, int row,
                                                typename Policy::Sums& sums) {
    const device::Exponents exponents(params.args, work.batch_index);
    if (exponents.of_a == nullptr) return;
    using Place = ThreadPlace<Policy>;
    const Place at(params, work, row);
    int rows[Place::kRows];
#pragma unroll
    for (int i = 0; i < Place::kRows; ++i) rows[i] = exponents.of_a[at.row_at(i)];
#pragma unroll
    for (int eight = 0; eight < Place::kEights; ++eight) {
        // Few at a time: there are no registers for all columns' exponents.
        if (eight % 4 == 0) asm volatile("" ::: "memory");
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int col = exponents.of_b[at.col_at(eight, e)];
#pragma unroll
            for (int i = 0; i < Place::kRows; ++i) {
                float& sum = sums[i / 2][eight * 4 + i % 2 * 2 + e];
                sum = halves::times_power_of_two(sum, rows[i] + col);
            }
        }
    }
}

}  // namespace tcgemm::sm90_wgmma
