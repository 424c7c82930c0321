// How long a row of the table would take, in microseconds: for choosing among the rows and splits.
#pragma once

#include "kernels/kernel_info.hpp"

namespace tcgemm::sm70_wmma {

Schedule schedule_row(const TileConfig& tile, int blocks_per_sm, const ValidProblem& problem,
                      const DeviceProperties& device);

}  // namespace tcgemm::sm70_wmma
