// The dtype of elements in memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/device/fp8.cuh"

namespace tcgemm::device {

// float may be rounded to TF32, or come in halves.
template <class Element>
constexpr DType dtype_of() {
    if (sizeof(Element) == 8) return DType::f64;  // at any address, too
    if (std::is_same_v<Element, std::int8_t>) return DType::i8;
    if (std::is_same_v<Element, __half>) return DType::f16;
    if (std::is_same_v<Element, __nv_bfloat16>) return DType::bf16;
    if (std::is_same_v<Element, E4M3>) return DType::e4m3;
    if (std::is_same_v<Element, E5M2>) return DType::e5m2;
    return DType::f32;
}

// use(T()), of the one of `Elements` that is `dtype`. It is one of them: validation lets no other
// through.
template <class... Elements, class Use>
__device__ __forceinline__ void with_dtype(DType dtype, const Use& use) {
    if (!((dtype == dtype_of<Elements>() && (use(Elements()), true)) || ...)) __trap();
}

}  // namespace tcgemm::device
