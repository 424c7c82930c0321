// Sums of products of halves: the powers of two that their rows and columns were divided by.
#pragma once

#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// 2^exponent, which is normal.
__device__ __forceinline__ float power_of_two(int exponent) {
    return __int_as_float((exponent + 127) << 23);
}

// sums[row][col] *= 2^(exponent of row + exponent of col), rounded once: a power of two may lie
// beyond FP32 where the result does not, so that it comes in two factors, and of these the first is
// exact. `row`: the warpgroup's first, within the tile.
template <class Policy>
__device__ __forceinline__ void apply_exponents(const Params& params, const Work& work, int row,
                                                typename Policy::Sums& sums) {
    const GemmArgs& args = params.args;
    if (args.exponents_a == nullptr) return;  // the sums are 0: A and B are not read
    const int* const of_a =
        args.exponents_a +
        batch_offset(args.batch, args.a.batch_stride, work.batch) / args.a.row_stride;
    const int* const of_b =
        args.exponents_b +
        batch_offset(args.batch, args.b.batch_stride, work.batch) / args.b.col_stride;
    const int thread = thread_in_warpgroup();
    const int first_row = work.m + row + thread / 32 * 16 + thread % 32 / 4;
    const int first_col = work.n + thread % 4 * 2;
    // Behind the matrix there are no exponents.
    const auto last_row = static_cast<int>(args.m - 1), last_col = work.n_end - 1;
    int rows[2 * Policy::kSubtiles];
#pragma unroll
    for (int i = 0; i < 2 * Policy::kSubtiles; ++i) {
        rows[i] = of_a[min(first_row + i / 2 * kMmaM + i % 2 * 8, last_row)];
    }
#pragma unroll
    for (int eight = 0; eight < Policy::kBlockN / 8; ++eight) {
        // Few at a time: there are no registers for all columns' exponents.
        if (eight % 4 == 0) asm volatile("" ::: "memory");
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int col = of_b[min(first_col + eight * 8 + e, last_col)];
#pragma unroll
            for (int i = 0; i < 2 * Policy::kSubtiles; ++i) {
                // Beyond 2^250 every sum but 0 overflows, and below 2^-250 every one vanishes.
                const int both = min(max(rows[i] + col, -250), 250), half = both / 2;
                float& sum = sums[i / 2][eight * 4 + i % 2 * 2 + e];
                sum = sum * power_of_two(half) * power_of_two(both - half);
            }
        }
    }
}

}  // namespace tcgemm::sm90_wgmma
