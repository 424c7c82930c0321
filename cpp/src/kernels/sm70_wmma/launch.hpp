// Host entry points between the translation units of this family.
#pragma once

#include "kernels/device/tile_scheduler.cuh"
#include "kernels/kernel_info.hpp"
#include "kernels/sm70_wmma/policy.hpp"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm::sm70_wmma {

// Launches Row's kernel for one pair of layouts. Instantiated in layout_*.cu and
// k_major.cu.
template <class Row, Major A, Major B>
void launch_layout(const GemmArgs& args, const device::TileScheduler& scheduler,
                   const KRange& split, StreamView stream);

}  // namespace tcgemm::sm70_wmma
