// Launches the kernel of a short K and many rows and columns; included by the file that
// instantiates it.
#pragma once

#include "core/runtime.hpp"
#include "kernels/epilogue/linear.hpp"
#include "kernels/simt/outer_kernel.cuh"
#include "kernels/tile_launch.cuh"

namespace tcgemm::simt {

template <class Policy>
void launch_outer(const GemmArgs& args, const Schedule&, StreamView stream) {
    using Epilogue = epilogue::Linear<typename Policy::Numbers::Result>;
    constexpr OuterTile kTile = Policy::kTile;
    const DeviceProperties& device = properties(Device::cuda(runtime::current_device()));
    const OuterGrid grid(kTile, outer_column_step<Policy>(args), args.m, args.n, args.batch.count,
                         device.sm_count);
    // Where all blocks are at work at once, those of the last, narrow column come second to an SM.
    const bool at_once = grid.blocks <= grid.resident;
    constexpr std::int64_t kBand = 8;  // rows of blocks
    const device::TileScheduler tiles(grid.blocks_m, grid.tiles_n, args.batch.count,
                                      at_once ? grid.blocks_m : kBand);
    const int block_rows = static_cast<int>(grid.tiles_of_block) * Policy::kRows;
    launch_blocks<Policy>(outer_kernel<Policy, Epilogue>, outer_shared_bytes(kTile, args.k), args,
                          Epilogue(args), tiles, block_rows, stream, true);
}

}  // namespace tcgemm::simt
