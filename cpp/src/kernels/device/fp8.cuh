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
    // pattern, positive, as on the CPU.
    static __device__ __forceinline__ Fp8 round(float value, bool saturate) {
        Fp8 result;
        result.bits = saturate ? __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kKind)
                               : __nv_cvt_float_to_fp8(value, __NV_NOSAT, kKind);
        constexpr std::uint8_t kNan = kFormat == DType::e4m3 ? 0x7f : 0x7e;
        if (value != value || (result.bits & 0x7f) == kNan) result.bits = kNan;
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
