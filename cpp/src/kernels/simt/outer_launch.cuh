// Launches the kernel of a short K and many rows and columns; included by the file that
// instantiates it.
#pragma once

#include "core/runtime.hpp"
#include "kernels/epilogue/linear.hpp"
#include "kernels/simt/outer_kernel.cuh"
#include "kernels/tile_launch.cuh"

namespace tcgemm::simt {

template <class Policy>
void launch_outer(const GemmArgs& given, const Schedule& schedule, StreamView stream) {
    using Epilogue = epilogue::Linear<typename Policy::Numbers::Result>;
    const GemmArgs args = schedule.transposed ? turned(given) : given;
    constexpr OuterTile kTile = Policy::kTile;
    const std::int64_t cols = args.n + outer_column_step<Policy>(args) - 1;
    const std::int64_t tiles_n = divide_up(cols, Policy::kCols);
    const DeviceProperties& device = properties(Device::cuda(runtime::current_device()));
    const std::int64_t resident = device.sm_count * Policy::kBlocksPerSm;
    const std::int64_t tiles_of_block = outer_tiles_of_block(divide_up(args.m, Policy::kRows),
                                                             tiles_n * args.batch.count, resident);
    const int block_rows = static_cast<int>(tiles_of_block) * Policy::kRows;
    const std::int64_t blocks_m = divide_up(args.m, block_rows);
    // Where all blocks are at work at once, those of the last, narrow column come second to an SM.
    const bool at_once = blocks_m * tiles_n * args.batch.count <= resident;
    const device::TileScheduler tiles(blocks_m, tiles_n, args.batch.count, at_once ? blocks_m : 8);
    launch_blocks<Policy>(outer_kernel<Policy, Epilogue>, outer_shared_bytes(kTile, args.k), args,
                          Epilogue(args), tiles, block_rows, stream, true);
}

}  // namespace tcgemm::simt
