// Launches of kernels whose blocks have a tile each, or tiles below each other, and leave split
// products to split_k/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/d_traffic.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/tile_scheduler.cuh"
#include "kernels/kernel_info.hpp"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm {

// A row's launcher for one pair of layouts.
using LaunchLayout = void (*)(const GemmArgs&, const device::TileScheduler&, const KRange&,
                              StreamView);

// A product in tiles of Row, by the launcher for the layouts that it has. `operand`: dtype of A and
// B; `band_rows`: rows of D in a band of tiles that blocks walk together (TileScheduler).
template <class Row>
void launch_tiles(const GemmArgs& args, const Schedule& schedule, StreamView stream, DType operand,
                  int band_rows, LaunchLayout launch) {
    constexpr TileConfig tile = Row::tile;
    const device::TileScheduler scheduler(
        divide_up(args.m, tile.block_m), divide_up(args.n, tile.block_n),
        args.batch.count * schedule.split_k, walks_along_rows(args) ? 1 : band_rows / tile.block_m);
    launch_split(
        args, schedule, tile.block_k, sum_dtype(operand), stream, Row::name,
        [&](const GemmArgs& what, const KRange& split) { launch(what, scheduler, split, stream); });
}

// A block for each tile, in as many launches as the grid needs. `work`: what else a block is told
// of its work, a part of K or how many rows. `overlaps_predecessor`: see device::LaunchConfig.
template <class Row, class Epilogue, class Work>
void launch_blocks(void (*kernel)(GemmArgs, Epilogue, device::TileScheduler, Work, std::int64_t),
                   std::size_t shared_bytes, const GemmArgs& args, const Epilogue& epilogue,
                   const device::TileScheduler& scheduler, const Work& work, StreamView stream,
                   bool overlaps_predecessor = false) {
    for (std::int64_t tile = 0; tile < scheduler.count(); tile += device::kMaxGrid) {
        device::LaunchConfig config;
        config.blocks = static_cast<unsigned>(std::min(scheduler.count() - tile, device::kMaxGrid));
        config.threads = Row::tile.threads;
        config.shared_bytes = shared_bytes;
        config.stream = stream;
        config.overlaps_predecessor = overlaps_predecessor;
        device::launch(Row::name, kernel, config, args, epilogue, scheduler, work, tile);
    }
}

}  // namespace tcgemm
