// The tiles of D of the kernel of a short K and many rows and columns, and the blocks they are for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/host_device.hpp"
#include "core/l2.hpp"
#include "core/math.hpp"

namespace tcgemm::simt {

// What launch and cost model know of a row; see Outer.
struct OuterTile {
    int rows, cols;
    int steps_k;  // values of k that are multiplied together
    int item;     // bytes of an element
    int blocks_per_sm;

    // A block has rows of A in shared memory, with the most k there can be, and rows of B, of a
    // tile's columns and some more: tiles may begin earlier. Neighbours begin in other banks.
    int most_k;
    constexpr int spare_cols() const { return static_cast<int>(kSectorBytes) / item; }
    constexpr int pitch_a() const { return most_k + steps_k; }
    constexpr int pitch_b() const { return (cols + spare_cols()) | 1; }
};

// Bytes of a block, of a K up to most_k. Rows of B: a power of two.
constexpr int outer_shared_bytes(OuterTile tile, std::int64_t k) {
    int rows_of_b = tile.steps_k;
    while (rows_of_b < k) rows_of_b *= 2;
    return (tile.rows * tile.pitch_a() + rows_of_b * tile.pitch_b()) * tile.item;
}

// A tile begins at columns of D whose addresses are multiples of so many elements, up to that many
// less one before those that it is counted for: what it stores is whole sectors. `places`: the
// address of D and the distances of its rows and batches, or'ed, in bytes. 1: at the very columns,
// where all rows begin at sectors, or where L2 puts the parts of sectors of a small D together and
// whole ones take notably more tiles.
TCGEMM_HOST_DEVICE int outer_column_step(OuterTile tile, std::int64_t places, std::int64_t m,
                                         std::int64_t n, std::int64_t batch) {
    constexpr std::int64_t kSmallBytes = 16 << 20, kFewTiles = 8;
    const int step = tile.spare_cols();
    if (places % kSectorBytes == 0) return 1;
    const std::int64_t tiles = (n + tile.cols - 1) / tile.cols;
    const bool is_small = tiles < kFewTiles && m * n * batch <= kSmallBytes / tile.item;
    return is_small && n + step - 1 > tiles * tile.cols ? 1 : step;
}

// How many tiles a block computes, one below the other: its columns of B are brought once for all
// of them, but all blocks are to end at the same time. `columns`: of tiles, in all batches.
inline std::int64_t outer_tiles_of_block(std::int64_t tiles_m, std::int64_t columns,
                                         std::int64_t resident_blocks) {
    constexpr std::int64_t kMost = 16;
    std::int64_t best = 1, least = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t tiles = 1; tiles <= std::min(tiles_m, kMost); ++tiles) {
        // A block's begin takes as long as half a tile.
        const std::int64_t waves = divide_up(divide_up(tiles_m, tiles) * columns, resident_blocks);
        const std::int64_t time = waves * (2 * tiles + 1);
        if (time < least) best = tiles, least = time;
    }
    return best;
}

// The blocks of a launch, for D of m x n in each of `batch` matrices. `step`: outer_column_step().
struct OuterGrid {
    std::int64_t tiles_n, tiles_of_block, blocks_m;
    std::int64_t blocks;    // in all batches
    std::int64_t resident;  // blocks that are at work at once

    OuterGrid(OuterTile tile, int step, std::int64_t m, std::int64_t n, std::int64_t batch, int sms)
        : tiles_n(divide_up(n + step - 1, tile.cols)),
          resident(std::int64_t{sms} * tile.blocks_per_sm) {
        const std::int64_t tiles_m = divide_up(m, tile.rows);
        tiles_of_block = outer_tiles_of_block(tiles_m, tiles_n * batch, resident);
        blocks_m = divide_up(tiles_m, tiles_of_block);
        blocks = blocks_m * tiles_n * batch;
    }
};

}  // namespace tcgemm::simt
