// float32 operands in halves: what the tensor cores of a product in FP32 multiply. Shared by the
// pass that packs them, the kernels that take them, and the launches that depend on what it found.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/gemm_args.hpp"

namespace tcgemm::halves {

// A number x of a row of A (or column of B) is (high + low / 2^kLowBits) 2^exponent, where high and
// low are float16 and the exponent, the row's own, brings its largest magnitude into
// [2^kTopBits, 2^(kTopBits + 1)). A packed row has the high halves of a block of k, then their low
// ones, and so on; behind K there are zeros. How long a block is the kernel says: 32 or 64.
inline constexpr int kTopBits = 14, kLowBits = 12;

inline std::int64_t packed_k(std::int64_t k, int block) { return 2 * round_up(k, block); }

// Of the largest number's exponent minus a number's own, `span`: from here on the number's high
// half is subnormal and holds fewer than 11 bits. (Normal ones reach down to 2^-14.)
inline constexpr int kFullSpan = kTopBits + 14;

// What the packing pass finds in the operands: each the largest over all rows of A (all columns
// of B). Device memory, 0 before the pass.
struct Report {
    int span[2];      // of nonzero numbers, where more than kFullSpan; kNoSpan: Inf or NaN
    int nonzeros[2];  // up to kMinNonzeros
};
inline constexpr int kNoSpan = 1 << 16;

// With fewer products an element has so few roundings in FP32 that halves can't keep up: a
// permutation copies its rows without one.
inline constexpr int kMinNonzeros = 32;

// Halves leave out low times low, and what low has no bits for. Of a product a b with spans s and
// t, both at least kFullSpan, the first is up to 2^(s + t - 78) |a b| and the others together no
// more: in a sum of K products an eighth of K 2^-24 |A||B| each. The tensor cores take up to two
// thirds of the promised K 2^-24 |A||B|, so that it holds whatever the numbers are.
inline int max_spans(std::int64_t k) { return 51 + std::min(log2_down(k), 32); }

#if defined(__CUDACC__)
// 2^exponent, which is normal.
__device__ __forceinline__ float power_of_two(int exponent) {
    return __int_as_float((exponent + 127) << 23);
}

// sum * 2^exponent, rounded once: the power may lie beyond FP32 where the result does not, so that
// it comes in two factors, and of these the first is exact.
__device__ __forceinline__ float times_power_of_two(float sum, int exponent) {
    // Beyond 2^250 every sum but 0 overflows, and below 2^-250 every one vanishes.
    const int both = min(max(exponent, -250), 250), half = both / 2;
    return sum * power_of_two(half) * power_of_two(both - half);
}

__device__ __forceinline__ bool wanted(const RunIf& run_if) {
    if (run_if.report == nullptr) return true;
    const Report& found = *run_if.report;
    const bool fits =
        max(found.span[0], kFullSpan) + max(found.span[1], kFullSpan) <= run_if.max_spans &&
        min(found.nonzeros[0], found.nonzeros[1]) >= kMinNonzeros;
    return fits == run_if.fits;
}
#endif

}  // namespace tcgemm::halves
