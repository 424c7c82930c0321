// What a kernel is compiled for: a row of the table and the layouts of its operands.
#pragma once

#include "kernels/kernel_info.hpp"

namespace tcgemm::sm70_wmma {

// Which of an operand's dimensions is contiguous: its columns (a row-major matrix) or its rows.
enum class Major { row, col };

template <class Row, Major A, Major B>
struct Policy {
    using Accumulator = typename Row::Accumulator;  // float or __half
    static constexpr TileConfig tile = Row::tile;
    static constexpr int blocks_per_sm = Row::blocks_per_sm;
    static constexpr Major a_major = A, b_major = B;
};

}  // namespace tcgemm::sm70_wmma
