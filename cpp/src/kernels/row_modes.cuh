// What the rows of a tensor core family's table say in the terms of a problem.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/dtype_of.cuh"
#include "problem/valid_problem.hpp"

namespace tcgemm {

using device::dtype_of;

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
