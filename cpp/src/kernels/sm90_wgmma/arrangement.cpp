#include "kernels/sm90_wgmma/arrangement.hpp"

#include <algorithm>

#include "core/math.hpp"
#include "kernels/split_k/epoch.hpp"

namespace tcgemm::sm90_wgmma {

std::int64_t slots(int sm_count, int on_sm, int cluster) {
    return std::max<std::int64_t>(std::int64_t{sm_count} * on_sm / cluster, 1) * cluster;
}

Arrangement arrange(const RowInfo& row, const ProductSize& size, const Schedule& schedule,
                    int sm_count) {
    const TileConfig& tile = row.tile;
    const std::int64_t tiles_m = divide_up(size.m, tile.block_m);
    Arrangement result;
    result.k_blocks = divide_up(size.k, tile.block_k);
    const int block_n = widest(tile.block_n, size.has_block_scales);
    result.n_step = schedule.tile_n > 0 ? schedule.tile_n : block_n;
    std::int64_t tiles_n = divide_up(size.n, result.n_step);
    const std::int64_t tiles = tiles_m * tiles_n * size.batches;
    // Sharing B halves what L2 has to deliver of it, and an odd row of tiles costs an idle half. On
    // an H200 it gains 1 to 18 % where blocks go through many tiles, and up to 15 % where two rows
    // of tiles wait for B from memory; elsewhere it loses up to 2 %, and up to 26 % where K is
    // split. `shares_b`: the cost model finds that it gains.
    const bool has_pairs = tiles_m % 2 == 0;
    const bool gains = schedule.splits_all() || schedule.shares_a ? false
                       : schedule.shares_b                        ? tiles_m > 1
                       : tiles >= kManyTiles ? has_pairs
                                             : tiles_m == 2 && tile.block_m == kMmaM;
    if (gains && tile.block_n >= kLeastPairedN) result.cluster_m = 2;
    // With few rows time goes by the bytes of B: tiles become narrower, so that all SMs read as
    // many. What the tensor cores do for the missing columns costs nothing there.
    if (size.m <= kMmaM && size.batches == 1 && schedule.split_k == 1 && schedule.tile_n == 0) {
        // Up to half a tile: the more stages and partial sums of a block alone on its SM.
        const bool alone = row.fits_ring && size.n <= std::int64_t{sm_count} * (block_n / 2);
        const std::int64_t at_once = slots(sm_count, alone ? 1 : row.blocks_per_sm);
        const int step = std::max(size.has_block_scales ? scaled_step(tile.block_n) : 8,
                                  kTensorBytes / size.d_bytes);
        const std::int64_t even = divide_up(size.n, divide_up(tiles, at_once) * at_once);
        const std::int64_t columns = round_up(std::max(even, divide_up(size.m, 2)), step);
        result.n_step = static_cast<int>(std::min<std::int64_t>(block_n, columns));
        tiles_n = divide_up(size.n, result.n_step);
    }
    if (schedule.shares_a && schedule.split_k == 1 && tiles_n % 2 == 0) result.cluster_n = 2;
    result.clusters_m = divide_up(tiles_m, result.cluster_m);
    result.clusters_n = divide_up(tiles_n, result.cluster_n);

    const std::int64_t at_once = slots(sm_count, row.blocks_per_sm, result.cluster());
    const std::int64_t all = result.tiles() * size.batches;
    result.split_tiles = schedule.splits_rest ? all % at_once : all;
    const std::int64_t parts = all + result.split_tiles * (schedule.split_k - 1);
    result.blocks = schedule.in_cluster ? parts : std::min(parts, at_once);
    result.alone_on_sm = result.blocks <= sm_count;
    return result;
}

int boxed(std::int64_t mn, int block, int shares) {
    return static_cast<int>(std::min<std::int64_t>(block, round_up(mn, kSwizzledRows * shares)));
}

Ring ring_of(const RowInfo& row, const ProductSize& size, const Majors& majors,
             const Schedule& schedule, const Arrangement& arrangement) {
    int rows = row.tile.block_m, columns = row.tile.block_n, on_sm = row.blocks_per_sm;
    if (row.fits_ring && !schedule.in_cluster) {
        // A of 16-bit elements comes in whole tiles, others and B in whole boxes.
        if (!row.any_major()) {
            rows = majors.a == Major::k
                       ? boxed(size.m, rows, 1)
                       : static_cast<int>(std::min<std::int64_t>(
                             rows, round_up(size.m, std::int64_t{box_mn(row.element_bytes())})));
        }
        columns = majors.b == Major::mn ? static_cast<int>(round_up(arrangement.n_step, kBoxMn))
                                        : boxed(size.n, arrangement.n_step, arrangement.cluster_m);
        if (arrangement.alone_on_sm) on_sm = 1;
    }
    Ring ring;
    ring.bytes_a = rows * kRowBytes;
    ring.bytes_b = columns * kRowBytes;
    ring.stage_bytes = row.stage_blocks * (ring.bytes_a + ring.bytes_b);
    // Beside stages of whole tiles there is always room for scales.
    const int scales = size.has_block_scales || (row.block_scales && !row.fits_ring)
                           ? scale_bytes(row.tile.block_m, row.tile.block_n)
                           : 0;
    const int all_for_stages = ring_bytes(row.consumers, row.stagings(), on_sm);
    const auto stages = [&](int further) {
        return std::min((all_for_stages - further) / (ring.stage_bytes + scales), kMaxStages);
    };
    ring.stagings = row.stagings();
    // As many again, in place of a stage or two, where blocks go through several tiles: in
    // ping-pong, and where the stages that are left hold all k-blocks of a tile. Other tiles that
    // both consumers share miss a stage more.
    const int further = row.consumers * ring.stagings * kStagingBytes;
    const bool has_next = arrangement.tiles() * size.batches > arrangement.blocks;
    const bool pays = row.ping_pong || arrangement.k_blocks <= stages(further);
    const bool adds = row.more_stagings && schedule.split_k == 1 && has_next && pays;
    if (adds) ring.stagings *= 2;
    ring.stages = stages(adds ? further : 0);
    ring.by_stages = device::FastDivisor(ring.stages);
    ring.first_staging = all_bytes(ring.stages, ring.stage_bytes, scales);
    ring.bytes = ring.first_staging + (adds ? further : 0);
    return ring;
}

SplitLayout split_layout(const RowInfo& row, const Schedule& schedule,
                         const Arrangement& arrangement, int columns) {
    const int split_k = schedule.split_k;
    const std::int64_t tiles = arrangement.split_tiles;
    if (split_k == 1 || schedule.in_cluster || tiles == 0) return {};
    const std::int64_t slots = tiles * split_k;
    const std::int64_t tile_bytes = std::int64_t{row.tile.block_m} *
                                    summed_columns(row.tile.block_n, columns) *
                                    static_cast<int>(sizeof(float));
    const std::int64_t pieces = tile_bytes / kPieceBytes;
    std::int64_t share =
        divide_up(pieces, std::clamp<std::int64_t>(arrangement.blocks / tiles, 1, pieces));
    if (adds_by_quads(round_up(share, 4), split_k, row.consumers)) share = round_up(share, 4);
    SplitLayout layout;
    layout.share_pieces = static_cast<int>(share);
    layout.shares = static_cast<int>(divide_up(pieces, share));
    layout.flag_bytes = static_cast<std::size_t>(flag_bytes(slots * layout.shares));
    layout.bytes = layout.flag_bytes + static_cast<std::size_t>(slots * tile_bytes);
    return layout;
}

}  // namespace tcgemm::sm90_wgmma
