// What a kernel is compiled for: a row of the table and the layouts of its operands.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/kernel_info.hpp"
#include "kernels/major.hpp"

namespace tcgemm::sm70_wmma {

// The tensor cores of Turing have it, those of Volta do not.
template <class Element>
inline constexpr bool kIsInt8 = std::is_same_v<Element, std::int8_t>;

template <class Row, Major A, Major B>
struct Policy {
    using Element = typename Row::Element;          // __half or std::int8_t
    using Accumulator = typename Row::Accumulator;  // float, __half or std::int32_t
    static constexpr TileConfig tile = Row::tile;
    static constexpr int blocks_per_sm = Row::blocks_per_sm;
    static constexpr Major a_major = A, b_major = B;
};

}  // namespace tcgemm::sm70_wmma
