// Rounding of one element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/device/fp8.cuh"
#include "kernels/device/tf32.hpp"

namespace tcgemm::pack {

using device::Tf32;

__device__ __forceinline__ Tf32 to_tf32(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900  // one instruction there
    unsigned tf32;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(tf32) : "f"(value));
    return {__uint_as_float(tf32)};
#else
    const unsigned bits = __float_as_uint(value);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const unsigned rounded = nan ? bits | 0x00400000u : bits + 0xfffu + ((bits >> 13) & 1u);
    return {__uint_as_float(rounded & ~0x1fffu)};
#endif
}
// Through float, truncated to odd: an inexact value has an odd last bit, which is no tie.
__device__ __forceinline__ Tf32 to_tf32(double value) {
    const float truncated = __double2float_rz(value);
    const bool exact = static_cast<double>(truncated) == value || value != value;
    return to_tf32(exact ? truncated : __uint_as_float(__float_as_uint(truncated) | 1u));
}

// To nearest even, once: double goes to the half formats directly, all narrower types through
// float, which holds them exactly.
template <class To, class From>
__device__ __forceinline__ To convert(From value) {
    if constexpr (std::is_same_v<To, From>)
        return value;
    else if constexpr (std::is_same_v<To, Tf32>)
        return to_tf32(value);
    else if constexpr (device::kIsFp8<From>)
        return value.half();
    else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, __half>)
        return __double2half(value);
    else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, __nv_bfloat16>)
        return __double2bfloat16(value);
    else if constexpr (std::is_same_v<From, double>)
        return static_cast<To>(value);
    else if constexpr (std::is_same_v<To, __half>)
        return __float2half_rn(static_cast<float>(value));
    else if constexpr (std::is_same_v<To, __nv_bfloat16>)
        return __float2bfloat16_rn(static_cast<float>(value));
    else
        return static_cast<To>(static_cast<float>(value));
}

}  // namespace tcgemm::pack
