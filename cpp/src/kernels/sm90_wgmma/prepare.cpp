// From a product to the parameters of a launch: tensor maps, order of tiles, parts of K.
#include <algorithm>

#include "core/math.hpp"
#include "core/runtime.hpp"
#include "kernels/d_traffic.hpp"
#include "kernels/sm90_wgmma/launch.hpp"
#include "kernels/sm90_wgmma/store.hpp"
#include "kernels/split_k/epoch.hpp"

namespace tcgemm::sm90_wgmma {
namespace {

// One map dimension for each batch dimension; broadcast ones have extent 1 and a mask of 0.
void add_batch(const GemmArgs& args, const MatrixView& view, runtime::TensorMapShape& shape,
               int (&mask)[kBatchDims]) {
    const int item = size_of(view.dtype);
    for (int dim = 0; dim < kBatchDims; ++dim) {
        const bool present = dim < args.batch.rank && view.batch_stride[dim] != 0;
        mask[dim] = present ? ~0 : 0;
        shape.extent[2 + dim] = present ? args.batch.extent[dim] : 1;
        shape.stride_bytes[1 + dim] = present ? view.batch_stride[dim] * item : runtime::kLineBytes;
    }
}

// An operand whose outer dimension steps by `outer_stride` elements.
runtime::TensorMapShape matrix_shape(const MatrixView& view, std::int64_t inner, std::int64_t outer,
                                     std::int64_t outer_stride) {
    runtime::TensorMapShape shape;
    shape.address = view.data;
    shape.element_bytes = size_of(view.dtype);
    shape.extent[0] = inner;
    shape.extent[1] = outer;
    // Of a single row the stride means nothing, but the map asks for one.
    shape.stride_bytes[0] = outer == 1 ? round_up(inner * shape.element_bytes, runtime::kLineBytes)
                                       : outer_stride * shape.element_bytes;
    return shape;
}

// What a tile's boxes hold of rows or columns with contiguous k: no more than the matrix has, in
// the eights that are swizzled together.
int boxed(std::int64_t mn, int block, int shares) {
    return static_cast<int>(std::min<std::int64_t>(block, round_up(mn, kSwizzledRows * shares)));
}

// `mn`: rows of A or columns of B, of which a tile takes `block`; `shares` blocks load it together.
// `one_stage`: a tile's k is that of one.
void plan_loads(const GemmArgs& args, const MatrixView& view, Major major, std::int64_t mn,
                std::int64_t mn_stride, std::int64_t k_stride, int block, int block_k, int shares,
                bool one_stage, BoxPlan& plan, CUtensorMap& map, CUtensorMap& rest_map) {
    runtime::TensorMapShape shape = major == Major::k ? matrix_shape(view, args.k, mn, mn_stride)
                                                      : matrix_shape(view, mn, args.k, k_stride);
    shape.to_tf32 = view.dtype == DType::f32;
    add_batch(args, view, shape, plan.batch_mask);
    if (major == Major::k) {  // one box for each share, no longer than the matrix
        plan.boxes = shares;
        plan.extent = boxed(mn, block, shares) / shares;
        shape.box[0] = block_k;
        shape.box[1] = plan.extent;
    } else {  // a swizzled row holds no more
        plan.extent = box_mn(shape.element_bytes);
        plan.boxes = static_cast<int>(divide_up(block, plan.extent));
        shape.box[0] = plan.extent;
        shape.box[1] = block_k;
    }
    const auto is_broadcast = [](int mask) { return mask == 0; };
    plan.stays = one_stage && mn <= block &&
                 std::all_of(plan.batch_mask, plan.batch_mask + kBatchDims, is_broadcast);
    if (args.k == 0) return;
    runtime::encode_tensor_map(&map, shape);
    const std::int64_t last = mn - (divide_up(mn, block) - 1) * block;  // of the last tile
    const int unit = major == Major::k ? kSwizzledRows : kSwizzledBytes / shape.element_bytes;
    plan.rest = static_cast<int>(round_up(last, unit) % plan.extent);
    if (plan.rest > 0) {  // in shared memory it lies as a whole one does
        shape.box[major == Major::k ? 1 : 0] = plan.rest;
        runtime::encode_tensor_map(&rest_map, shape);
    }
}

// The map for boxes of a staging: so many rows, or columns where D is transposed, of 128 bytes.
// 64 rows of a D^T of floats are two boxes.
void plan_boxes(const GemmArgs& args, const MatrixView& view, bool is_transposed, int count,
                int (&batch_mask)[kBatchDims], CUtensorMap& map) {
    runtime::TensorMapShape shape = is_transposed
                                        ? matrix_shape(view, args.m, args.n, view.col_stride)
                                        : matrix_shape(view, args.n, args.m, view.row_stride);
    add_batch(args, view, shape, batch_mask);
    shape.box[0] = 128 / shape.element_bytes;
    shape.box[1] = count;
    runtime::encode_tensor_map(&map, shape);
}

// How D goes out and C comes in.
void plan_stores(const GemmArgs& args, bool is_transposed, Params& params) {
    const bool reads_c = params.epilogue.reads_c();
    // GridSplit and ClusterSplit store by themselves.
    if (params.split.count > 1 && params.split.whole == 0) return;
    const StoredMatrix d = stored_matrix(args.d, args.batch.rank);
    const StoredMatrix c = stored_matrix(args.c, args.batch.rank);
    params.store =
        store_of(d, reads_c ? &c : nullptr, args.m, args.n, params.n_step, is_transposed);
    if (!params.stores_boxes()) return;
    int all[kBatchDims];  // D has all dimensions
    const int count = is_transposed ? kRowBytes / size_of(args.d.dtype) : kMmaM;
    plan_boxes(args, args.d, is_transposed, count, all, params.d);
    const int rest = params.n_step % count;
    if (is_transposed && rest > 0) plan_boxes(args, args.d, true, rest, all, params.d_rest);
    if (reads_c) plan_boxes(args, args.c, is_transposed, count, params.batch_mask_c, params.c);
}

// Blocks that can be at work at once.
std::int64_t slots(const RowInfo& row, const Arrangement& arrangement, int sm_count) {
    const int cluster = arrangement.cluster();
    return std::max<std::int64_t>(std::int64_t{sm_count} * row.blocks_per_sm / cluster, 1) *
           cluster;
}

}  // namespace

Arrangement arrange(const RowInfo& row, std::int64_t m, std::int64_t n, std::int64_t k,
                    std::int64_t batches, bool has_block_scales, const Schedule& schedule,
                    int sm_count) {
    const TileConfig& tile = row.tile;
    const std::int64_t tiles_m = divide_up(m, tile.block_m);
    Arrangement result;
    result.k_blocks = divide_up(k, tile.block_k);
    const int block_n = widest(tile.block_n, has_block_scales);
    result.n_step = schedule.tile_n > 0 ? schedule.tile_n : block_n;
    std::int64_t tiles_n = divide_up(n, result.n_step);
    const std::int64_t tiles = tiles_m * tiles_n * batches;
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
    if (m <= kMmaM && batches == 1 && schedule.split_k == 1 && schedule.tile_n == 0) {
        // Up to half a tile: the more stages and partial sums of a block alone on its SM.
        const bool alone = row.fits_ring && n <= std::int64_t{sm_count} * (block_n / 2);
        const std::int64_t slots =
            std::max<std::int64_t>(std::int64_t{sm_count} * (alone ? 1 : row.blocks_per_sm), 1);
        const int step = has_block_scales ? scaled_step(tile.block_n) : 8;
        const std::int64_t even = divide_up(n, divide_up(tiles, slots) * slots);
        const std::int64_t columns = round_up(std::max(even, divide_up(m, 2)), step);
        result.n_step = static_cast<int>(std::min<std::int64_t>(block_n, columns));
        tiles_n = divide_up(n, result.n_step);
    }
    if (schedule.shares_a && schedule.split_k == 1 && tiles_n % 2 == 0) result.cluster_n = 2;
    result.clusters_m = divide_up(tiles_m, result.cluster_m);
    result.clusters_n = divide_up(tiles_n, result.cluster_n);
    return result;
}

std::int64_t split_tiles(const RowInfo& row, const Arrangement& arrangement, std::int64_t batches,
                         const Schedule& schedule, int sm_count) {
    const std::int64_t tiles = arrangement.tiles() * batches;
    return schedule.splits_rest ? tiles % slots(row, arrangement, sm_count) : tiles;
}

std::int64_t launched_blocks(const RowInfo& row, const Arrangement& arrangement,
                             std::int64_t batches, const Schedule& schedule, int sm_count) {
    const std::int64_t tiles = arrangement.tiles() * batches;
    const std::int64_t parts =
        tiles + split_tiles(row, arrangement, batches, schedule, sm_count) * (schedule.split_k - 1);
    if (schedule.in_cluster) return parts;
    return std::min(parts, slots(row, arrangement, sm_count));
}

Ring ring_of(const RowInfo& row, const Arrangement& arrangement, const Schedule& schedule,
             std::int64_t m, std::int64_t n, Major a_major, Major b_major, bool has_block_scales,
             std::int64_t blocks, int sm_count) {
    int rows = row.tile.block_m, columns = row.tile.block_n, on_sm = row.blocks_per_sm;
    if (row.fits_ring && !schedule.in_cluster) {
        // A of 16-bit elements comes in whole tiles, others and B in whole boxes.
        if (!row.any_major()) {
            rows = a_major == Major::k
                       ? boxed(m, rows, 1)
                       : static_cast<int>(std::min<std::int64_t>(
                             rows, round_up(m, std::int64_t{box_mn(row.element_bytes())})));
        }
        columns = b_major == Major::mn ? static_cast<int>(round_up(arrangement.n_step, kBoxMn))
                                       : boxed(n, arrangement.n_step, arrangement.cluster_m);
        if (blocks <= sm_count) on_sm = 1;
    }
    Ring ring;
    ring.bytes_a = rows * kRowBytes;
    ring.bytes_b = columns * kRowBytes;
    ring.stage_bytes = row.stage_blocks * (ring.bytes_a + ring.bytes_b);
    // Beside stages of whole tiles there is always room for scales.
    const int scales = has_block_scales || (row.block_scales && !row.fits_ring)
                           ? scale_bytes(row.tile.block_m, row.tile.block_n)
                           : 0;
    ring.stages =
        std::min(ring_bytes(row.consumers, on_sm) / (ring.stage_bytes + scales), kMaxStages);
    ring.bytes = all_bytes(ring.stages, ring.stage_bytes, scales);
    return ring;
}

SplitLayout split_layout(const RowInfo& row, std::int64_t tiles, int columns,
                         const Schedule& schedule, std::int64_t blocks) {
    const int split_k = schedule.split_k;
    if (split_k == 1 || schedule.in_cluster || tiles == 0) return {};
    const std::int64_t slots = tiles * split_k;
    const std::int64_t tile_bytes = std::int64_t{row.tile.block_m} *
                                    summed_columns(row.tile.block_n, columns) *
                                    static_cast<int>(sizeof(float));
    const std::int64_t pieces = tile_bytes / kPieceBytes;
    std::int64_t share = divide_up(pieces, std::clamp<std::int64_t>(blocks / tiles, 1, pieces));
    if (adds_by_quads(round_up(share, 4), split_k, row.consumers)) share = round_up(share, 4);
    SplitLayout layout;
    layout.share_pieces = static_cast<int>(share);
    layout.shares = static_cast<int>(divide_up(pieces, share));
    layout.flag_bytes = static_cast<std::size_t>(flag_bytes(slots * layout.shares));
    layout.bytes = layout.flag_bytes + static_cast<std::size_t>(slots * tile_bytes);
    return layout;
}

Prepared prepare(const RowInfo& row, const GemmArgs& args, const Schedule& schedule, Major a_major,
                 Major b_major, int sm_count) {
    const TileConfig& tile = row.tile;
    const int parts = schedule.split_k;
    Prepared prepared{Params(args), 0};
    Params& params = prepared.params;
    const Arrangement arrangement = arrange(row, args.m, args.n, args.k, args.batch.count,
                                            params.has_block_scales, schedule, sm_count);
    params.cluster_log2 = arrangement.cluster() == 2 ? 1 : 0;
    params.shares_a = arrangement.cluster_n == 2;
    params.k_blocks = static_cast<int>(arrangement.k_blocks);
    params.n_step = arrangement.n_step;
    params.width = static_cast<int>(std::min<std::int64_t>(args.n, params.n_step));
    const bool one_stage = arrangement.k_blocks <= row.stage_blocks;
    plan_loads(args, args.a, a_major, args.m, args.a.row_stride, args.a.col_stride, tile.block_m,
               tile.block_k, arrangement.cluster_n, one_stage, params.load_a, params.a,
               params.a_rest);
    plan_loads(args, args.b, b_major, args.n, args.b.col_stride, args.b.row_stride, params.n_step,
               tile.block_k, arrangement.cluster_m, one_stage, params.load_b, params.b,
               params.b_rest);
    const std::int64_t tiles = split_tiles(row, arrangement, args.batch.count, schedule, sm_count);
    const std::int64_t blocks =
        launched_blocks(row, arrangement, args.batch.count, schedule, sm_count);
    prepared.blocks = static_cast<unsigned>(blocks);
    // The order of tiles must not choose which of them have parts of K: it follows addresses.
    const bool along_rows = parts == 1 && walks_along_rows(args);
    params.scheduler = {arrangement.clusters_m, arrangement.clusters_n, args.batch.count,
                        along_rows ? 1 : arrangement.band()};
    KSplit& split = params.split;
    split.count = parts;
    split.rest = static_cast<unsigned>(tiles / arrangement.cluster());
    split.whole = static_cast<unsigned>(params.scheduler.count()) - split.rest;
    split.by_rest = device::FastDivisor(std::max(split.rest, 1u));
    const auto stages = static_cast<int>(divide_up(params.k_blocks, row.stage_blocks));
    split.stages = stages / parts;
    split.longer = stages % parts;
    split.in_cluster = schedule.in_cluster;
    params.work_count = split.whole + split.rest * static_cast<unsigned>(parts);
    for (int dim = 0; dim < args.batch.rank; ++dim) {
        params.by_batch[dim] = device::FastDivisor(args.batch.extent[dim]);
    }
    plan_stores(args, schedule.transposed, params);
    params.ring = ring_of(row, arrangement, schedule, args.m, args.n, a_major, b_major,
                          params.has_block_scales, blocks, sm_count);
    split.eights = summed_columns(tile.block_n, params.width) / 8;
    split.by_eights = device::FastDivisor(split.eights);
    const SplitLayout layout = split_layout(row, tiles, params.width, schedule, blocks);
    if (layout.shares > 0) {
        split.shares = layout.shares;
        split.share_pieces = layout.share_pieces;
        split.by_shares = device::FastDivisor(layout.shares);
        split.epoch = next_epoch();
        split.flags = static_cast<std::uint64_t*>(args.workspace);
        split.partials =
            reinterpret_cast<float4*>(static_cast<char*>(args.workspace) + layout.flag_bytes);
    }
    return prepared;
}

}  // namespace tcgemm::sm90_wgmma
