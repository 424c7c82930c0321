// How the tiles of a product are dealt out to blocks: for launches and for what they cost.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/halves.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/major.hpp"
#include "kernels/sm90_wgmma/params.hpp"
#include "kernels/sm90_wgmma/policy.hpp"

namespace tcgemm::sm90_wgmma {

// What the host knows of a row.
struct RowInfo {
    TileConfig tile;
    int consumers;  // warpgroups
    bool ping_pong;
    int blocks_per_sm;
    int least_n;       // columns that an instruction works on at least; see Policy
    int stage_blocks;  // k-blocks of a stage
    bool by_steps;     // see narrower()
    bool fits_ring, more_stagings;
    bool few_rows;
    bool splits_in_cluster;  // K over the two blocks of one
    bool halves;
    bool any_major_a;                      // A may have contiguous m
    bool block_scales;                     // can multiply by them
    double start_us, k_block_us, tile_us;  // see rows.hpp

    constexpr int element_bytes() const { return kRowBytes / tile.block_k; }
    constexpr bool any_major() const { return element_bytes() == 2 && !halves; }
    constexpr int stagings() const { return sm90_wgmma::stagings(block_scales, consumers); }
    constexpr int warpgroups_per_tile() const { return ping_pong ? 1 : consumers; }
    // Of the operands as they come to the kernel.
    std::int64_t k(std::int64_t of_problem) const {
        return halves ? halves::packed_k(of_problem, kHalvesBlock) : of_problem;
    }
};
template <class Row>
constexpr RowInfo row_info() {
    RowInfo info = {};
    info.tile = Row::tile;
    info.consumers = Row::consumers;
    info.ping_pong = Row::ping_pong;
    info.blocks_per_sm = Row::blocks_per_sm;
    info.least_n = Row::least_n;
    info.stage_blocks = Row::stage_blocks;
    info.by_steps = Row::by_steps;
    info.fits_ring = Row::fits_ring;
    info.more_stagings = Row::more_stagings;
    info.few_rows = Row::few_rows;
    info.splits_in_cluster = Row::splits_in_cluster;
    info.halves = Row::halves;
    info.any_major_a = Row::any_major_a;
    info.block_scales = Row::block_scales;
    info.start_us = Row::start_us;
    info.k_block_us = Row::k_block_us;
    info.tile_us = Row::tile_us;
    return info;
}

// From so many tiles on blocks go through many; and the columns of tiles that pairs of blocks load.
inline constexpr int kManyTiles = 512, kLeastPairedN = 128;
// With the parts of K: indices of work have 31 bits.
inline constexpr std::int64_t kMaxTiles = 0x7fffffff;

// Blocks that can be at work at once, `on_sm` of them on an SM.
std::int64_t slots(int sm_count, int on_sm, int cluster = 1);

// A product as it comes to the kernel.
struct ProductSize {
    std::int64_t m, n, k;  // k: see RowInfo
    std::int64_t batches;
    int d_bytes;  // of an element of D
    bool has_block_scales;
};

// Which dimensions of A and B are contiguous.
struct Majors {
    Major a, b;
};

// How the tiles of a product are dealt out.
struct Arrangement {
    int cluster_m = 1, cluster_n = 1;     // blocks that share B; or A
    std::int64_t clusters_m, clusters_n;  // of a matrix
    int n_step;                           // columns from tile to tile
    std::int64_t k_blocks;
    // Tiles that have parts of K, where any has: all, or those behind the last whole wave.
    std::int64_t split_tiles;
    std::int64_t blocks;  // of the launch: no more than can be at work at once
    bool alone_on_sm;     // each of them has an SM for itself

    int cluster() const { return cluster_m * cluster_n; }
    // Of a matrix; some may lie behind it.
    std::int64_t tiles_m() const { return clusters_m * cluster_m; }
    std::int64_t tiles_n() const { return clusters_n * cluster_n; }
    std::int64_t tiles() const { return tiles_m() * tiles_n(); }
    // Rows of clusters that blocks walk together (TileScheduler). Where there are few columns, one:
    // L2 is asked for a tile of A by blocks side by side then, as otherwise for one of B, and
    // serves them at once.
    std::int64_t band() const {
        constexpr int kBand = 8;
        return clusters_n <= kBand && clusters_m > clusters_n ? 1 : kBand;
    }
};
// A pure function of what is given. Of `schedule`, what was chosen counts: the parts of K, the
// columns of tiles and what clusters share.
Arrangement arrange(const RowInfo& row, const ProductSize& size, const Schedule& schedule,
                    int sm_count);

// What a tile's boxes hold of `mn` rows or columns with contiguous k, which `shares` blocks load
// together: no more than the matrix has, in the eights that are swizzled together.
int boxed(std::int64_t mn, int block, int shares);

// The ring of each block: of whole tiles, or where the row fits it of the rows of A and columns of
// B that there are, in all of an SM's shared memory where each block has an SM.
// With room for scales of blocks where the product has such, and where whole tiles may have them.
// The blocks of a cluster that split K meet in whole tiles.
Ring ring_of(const RowInfo& row, const ProductSize& size, const Majors& majors,
             const Schedule& schedule, const Arrangement& arrangement);

// How the parts of a product whose K is split over the grid are added up (see KSplit), and its
// workspace: flags, then partial sums of so many columns. Otherwise all 0.
struct SplitLayout {
    int shares = 0, share_pieces = 0;  // of a tile
    std::size_t flag_bytes = 0, bytes = 0;
};
SplitLayout split_layout(const RowInfo& row, const Schedule& schedule,
                         const Arrangement& arrangement, int columns);

}  // namespace tcgemm::sm90_wgmma
