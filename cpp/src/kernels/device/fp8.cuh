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
        if constexpr (kFormat == DType::e4m3) {
            // Amid 448 and 480, which is NaN: the tie is 448.
            const float end = saturate ? INFINITY : 464.0f;
            if (fabsf(value) > end) value = NAN;
            result.bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kKind);
        } else {
            // Amid 57344 and 65536, which is Inf, as the tie is: what follows the largest number.
            const float end = saturate ? NAN : 61440.0f;
            result.bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kKind);
            result.bits += fabsf(value) >= end ? 1 : 0;
            if (value != value) result.bits = 0x7e;
        }
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
