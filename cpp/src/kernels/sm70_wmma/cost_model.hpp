// How long a row of the table would take, in microseconds: for choosing among the rows and splits.
#pragma once

#include "kernels/kernel_info.hpp"

namespace tcgemm::sm70_wmma {

// What the model knows of a row; see rows.hpp.
struct RowCost {
    TileConfig tile;
    int blocks_per_sm;
    double k_block_us, block_us;
};

// The split with the least cost.
Schedule schedule_row(const RowCost& row, const ValidProblem& problem,
                      const DeviceProperties& device);

}  // namespace tcgemm::sm70_wmma
