// Rounding of one element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

namespace tcgemm::pack {

// To nearest even, once: double goes to the half formats directly, all narrower types through
// float, which holds them exactly.
template <class To, class From>
__device__ __forceinline__ To convert(From value) {
    if constexpr (std::is_same_v<To, From>)
        return value;
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
