// Which tile of D a block computes. Blocks that run at the same time get tiles that share rows of A
// and columns of B, so that L2 serves most of their loads.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"

namespace tcgemm::device {

struct Tile {
    int m, n;            // in tiles
    std::int64_t slice;  // index of the matrix: a batch, or a batch of a K split
};

// tiles_m x tiles_n tiles in each of `slices` matrices, walked in bands of `band` tile rows, column
// by column: W blocks at work together touch about `band` rows and W / band columns of tiles.
struct TileScheduler {
    int tiles_m = 0, tiles_n = 0;  // their product fits 31 bits
    std::int64_t slices = 0;
    int band = 1;

    TCGEMM_HOST_DEVICE std::int64_t count() const {
        return slices * (static_cast<std::int64_t>(tiles_m) * tiles_n);
    }

    // Index: unsigned where count() fits, for a division of 64 bits is long code; else
    // std::int64_t.
    template <class Index>
    TCGEMM_HOST_DEVICE Tile tile(Index index) const {
        const Index per_slice = static_cast<Index>(tiles_m) * static_cast<Index>(tiles_n);
        const Index slice = slices == 1 ? 0 : index / per_slice;
        const auto in_slice = static_cast<unsigned>(index - slice * per_slice);
        const unsigned first_row = in_slice / (static_cast<unsigned>(band) * tiles_n) * band;
        const unsigned in_band = in_slice - first_row * tiles_n;
        const unsigned rows_left = tiles_m - first_row;
        const unsigned rows = rows_left < static_cast<unsigned>(band) ? rows_left : band;
        const unsigned n = in_band / rows;
        return {static_cast<int>(first_row + in_band - n * rows), static_cast<int>(n), slice};
    }
};

}  // namespace tcgemm::device
