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
    static constexpr __nv_fp8_interpretation_t kKind =
        kFormat == DType::e4m3 ? __NV_E4M3 : __NV_E5M2;
    std::uint8_t bits;

    Fp8() = default;
    __device__ explicit Fp8(int zero) : bits(static_cast<std::uint8_t>(zero)) {}
    // To nearest even. Beyond the range: the largest number, or NaN (e5m2: Inf). NaN: one bit
    // pattern, positive, as on the CPU. (CUDA's conversion without saturation is a hundred
    // instructions in double precision.)
    static __device__ __forceinline__ Fp8 round(float value, bool saturate) {
        Fp8 result;
        result.bits = static_cast<std::uint8_t>(round_pair(value, 0.0f, saturate));
        return result;
    }
    // Two, the first in the lower byte: one instruction converts both.
    static __device__ __forceinline__ std::uint16_t round_pair(float first, float second,
                                                               bool saturate) {
        const auto convert = [&] {
            return __nv_cvt_float2_to_fp8x2({first, second}, __NV_SATFINITE, kKind);
        };
        if constexpr (kFormat == DType::e4m3) {
            // Amid 448 and 480, which is NaN: the tie is 448.
            const float end = saturate ? INFINITY : 464.0f;
            if (fabsf(first) > end) first = NAN;
            if (fabsf(second) > end) second = NAN;
            return convert();
        } else {
            // Amid 57344 and 65536, which is Inf, as the tie is: what follows the largest number.
            // NaN is 0x7e, and 0x7f by the instruction.
            const float end = saturate ? NAN : 61440.0f;
            const auto next = [&](float value) { return (fabsf(value) >= end) - (value != value); };
            return static_cast<std::uint16_t>(convert() + next(first) + next(second) * 256);
        }
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
