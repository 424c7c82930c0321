// What the rows of a tensor core family's table say in the terms of a problem.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/fp8.cuh"
#include "problem/valid_problem.hpp"

namespace tcgemm {

// Of elements in memory; float is rounded to TF32, or in halves.
template <class Element>
constexpr DType dtype_of() {
    if (sizeof(Element) == 8) return DType::f64;  // at any address, too
    if (std::is_same_v<Element, std::int8_t>) return DType::i8;
    if (std::is_same_v<Element, __half>) return DType::f16;
    if (std::is_same_v<Element, __nv_bfloat16>) return DType::bf16;
    if (std::is_same_v<Element, device::E4M3>) return DType::e4m3;
    if (std::is_same_v<Element, device::E5M2>) return DType::e5m2;
    return DType::f32;
}

template <class Element, class Accumulator>
constexpr Accumulate accumulate_of() {
    if (is_fp8(dtype_of<Element>())) return Accumulate::fast;
    if (std::is_same_v<Accumulator, double>) return Accumulate::fp64;
    if (std::is_same_v<Accumulator, std::int32_t>) return Accumulate::int32;
    return std::is_same_v<Accumulator, __half> ? Accumulate::fp16 : Accumulate::fp32;
}
template <class Row>
constexpr Accumulate accumulate_of() {
    if (Row::promoted) return Accumulate::promoted;
    return accumulate_of<typename Row::ElementA, typename Row::Accumulator>();
}

}  // namespace tcgemm
