// Where the tile of a block lies in the product.
#pragma once

#include "kernels/device/tile_scheduler.cuh"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm::device {

// In elements. A slice of the scheduler is a batch of a part of K.
template <int kBlockM, int kBlockN>
struct TilePlace {
    int part;  // of K
    std::int64_t batch, m, n;
    int rows, cols;  // of the tile that exist

    TilePlace() = default;
    __device__ TilePlace(const Tile& tile, const GemmArgs& args, const KRange& split)
        : part(split.split_k == 1 ? 0 : static_cast<int>(tile.slice / args.batch.count)),
          batch(tile.slice - part * args.batch.count),
          m(static_cast<std::int64_t>(tile.m) * kBlockM),
          n(static_cast<std::int64_t>(tile.n) * kBlockN),
          rows(static_cast<int>(min(args.m - m, std::int64_t{kBlockM}))),
          cols(static_cast<int>(min(args.n - n, std::int64_t{kBlockN}))) {}
};

}  // namespace tcgemm::device
