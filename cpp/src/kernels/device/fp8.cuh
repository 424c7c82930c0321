// Elements of FP8. A type of our own: its bytes can be moved like any other element's, and only
// what is used here is compiled.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "tcgemm/dtype.hpp"

namespace tcgemm::device {

template <DType kFormat>
struct Fp8 {
    static_assert(is_fp8(kFormat));
    static constexpr bool kIsE4m3 = kFormat == DType::e4m3;
    static constexpr __nv_fp8_interpretation_t kKind = kIsE4m3 ? __NV_E4M3 : __NV_E5M2;
    std::uint8_t bits;

    Fp8() = default;
    __device__ explicit Fp8(int zero) : bits(static_cast<std::uint8_t>(zero)) {}
    // To nearest even. Beyond the range: the largest number, or NaN (e5m2: Inf). NaN: one bit
    // pattern, positive, as on the CPU. The instruction knows the first kind only; what CUDA's
    // header has for the other goes through double, 150 instructions.
    static __device__ __forceinline__ Fp8 round(float value, bool saturate) {
        constexpr int kMantissa = kIsE4m3 ? 3 : 2, kBias = kIsE4m3 ? 7 : 15;
        constexpr float kLargest = kIsE4m3 ? 448.0f : 57344.0f;
        constexpr unsigned kNan = kIsE4m3 ? 0x7f : 0x7e, kBeyond = kIsE4m3 ? 0x7f : 0x7c;
        const float magnitude = fabsf(value), inside = fminf(magnitude, kLargest);
        // The sum with 2^(23 - kMantissa) times its power of two has no bits for what FP8 has not;
        // below the smallest normal number they all share its power.
        constexpr unsigned kExponent = 0x7f800000, kLeast = (128 - kBias) << 23;
        const float shift = __uint_as_float(max(__float_as_uint(inside) & kExponent, kLeast) +
                                            ((23 - kMantissa) << 23));
        const float rounded = __fsub_rn(__fadd_rn(inside, shift), shift);
        // FP32's bits with the bias of FP8: subnormal numbers become such.
        constexpr float kBiased = 1.0f / (1ull << 60) / (1ull << (127 - 60 - kBias));
        unsigned its = __float_as_uint(rounded * kBiased) >> (23 - kMantissa);
        // From half a step behind the largest on; there nearest even is kLargest for e4m3 only.
        const bool is_beyond = kIsE4m3 ? magnitude > 464.0f : magnitude >= 61440.0f;
        if (is_beyond && !saturate) its = kBeyond;
        its |= __float_as_uint(value) >> 24 & 0x80;
        if (value != value || (its & 0x7f) == kNan) its = kNan;
        Fp8 result;
        result.bits = static_cast<std::uint8_t>(its);
        return result;
    }
    // Exact.
    __device__ __forceinline__ __half half() const {
        return __half(__nv_cvt_fp8_to_halfraw(bits, kKind));
    }
};
using E4M3 = Fp8<DType::e4m3>;
using E5M2 = Fp8<DType::e5m2>;

template <class T>
inline constexpr bool kIsFp8 = false;
template <DType kFormat>
inline constexpr bool kIsFp8<Fp8<kFormat>> = true;

}  // namespace tcgemm::device
