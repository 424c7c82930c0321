// What a kernel is compiled for: a row of the table and the layouts of its operands.
#pragma once

#include "kernels/kernel_info.hpp"

namespace tcgemm::sm80_mma {

// Which of an operand's dimensions is contiguous in memory: k, or the other one (m of A, n of B).
enum class Major { k, mn };

template <class Row, Major A, Major B>
struct Policy {
    using Element = typename Row::Element;
    using Accumulator = typename Row::Accumulator;
    static constexpr TileConfig tile = Row::tile;
    static constexpr int kStages = Row::stages;  // k-blocks in shared memory
    static constexpr int kBlocksPerSm = Row::blocks_per_sm;
    static constexpr bool kPromoted = Row::promoted;
    static constexpr Major a_major = A, b_major = B;
};

}  // namespace tcgemm::sm80_mma
