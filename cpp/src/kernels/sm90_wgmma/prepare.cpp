#include "kernels/sm90_wgmma/prepare.hpp"

#include <algorithm>

#include "core/l2.hpp"
#include "core/math.hpp"
#include "core/runtime.hpp"
#include "kernels/d_traffic.hpp"
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
        shape.stride_bytes[1 + dim] = present ? view.batch_stride[dim] * item : kLineBytes;
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
    shape.stride_bytes[0] = outer == 1 ? round_up(inner * shape.element_bytes, kLineBytes)
                                       : outer_stride * shape.element_bytes;
    return shape;
}

// A or B as tiles load it.
struct LoadedOperand {
    const MatrixView& view;
    Major major;
    std::int64_t mn;  // rows of A or columns of B
    std::int64_t mn_stride, k_stride;
    int block;   // of `mn`, that a tile takes
    int shares;  // blocks that load those together
};
struct LoadPlan {
    BoxPlan boxes;
    CUtensorMap map = {}, rest_map = {};  // see Params
};

// `one_stage`: a tile's k is that of one.
LoadPlan plan_loads(const GemmArgs& args, const LoadedOperand& operand, int block_k,
                    bool one_stage) {
    const auto& [view, major, mn, mn_stride, k_stride, block, shares] = operand;
    runtime::TensorMapShape shape = major == Major::k ? matrix_shape(view, args.k, mn, mn_stride)
                                                      : matrix_shape(view, mn, args.k, k_stride);
    shape.to_tf32 = view.dtype == DType::f32;
    LoadPlan plan;
    BoxPlan& boxes = plan.boxes;
    add_batch(args, view, shape, boxes.batch_mask);
    if (major == Major::k) {  // one box for each share, no longer than the matrix
        boxes.boxes = shares;
        boxes.extent = boxed(mn, block, shares) / shares;
        shape.box[0] = block_k;
        shape.box[1] = boxes.extent;
    } else {  // a swizzled row holds no more
        boxes.extent = box_mn(shape.element_bytes);
        boxes.boxes = static_cast<int>(divide_up(block, boxes.extent));
        shape.box[0] = boxes.extent;
        shape.box[1] = block_k;
    }
    const auto is_broadcast = [](int mask) { return mask == 0; };
    boxes.stays = one_stage && mn <= block &&
                  std::all_of(boxes.batch_mask, boxes.batch_mask + kBatchDims, is_broadcast);
    if (args.k == 0) return plan;
    runtime::encode_tensor_map(&plan.map, shape);
    const std::int64_t last = mn - (divide_up(mn, block) - 1) * block;  // of the last tile
    const int unit = major == Major::k ? kSwizzledRows : kTensorBytes / shape.element_bytes;
    boxes.rest = static_cast<int>(round_up(last, unit) % boxes.extent);
    if (boxes.rest > 0) {  // in shared memory it lies as a whole one does
        shape.box[major == Major::k ? 1 : 0] = boxes.rest;
        runtime::encode_tensor_map(&plan.rest_map, shape);
    }
    return plan;
}

// The map for boxes of a staging: of 64 rows and so many columns, which lie in 128 bytes of a row;
// or where D is transposed of as many of those and of 128 bytes of each. 64 rows of a D^T of floats
// are two boxes.
void plan_boxes(const GemmArgs& args, const MatrixView& view, bool is_transposed, int columns,
                int (&batch_mask)[kBatchDims], CUtensorMap& map) {
    runtime::TensorMapShape shape = is_transposed
                                        ? matrix_shape(view, args.m, args.n, view.col_stride)
                                        : matrix_shape(view, args.n, args.m, view.row_stride);
    add_batch(args, view, shape, batch_mask);
    shape.box[0] = is_transposed ? kRowBytes / shape.element_bytes : columns;
    shape.box[1] = is_transposed ? columns : kMmaM;
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
    const int columns = kRowBytes / size_of(args.d.dtype);
    plan_boxes(args, args.d, is_transposed, columns, all, params.d);
    const int rest = params.n_step < args.n ? params.n_step % columns : 0;
    if (rest > 0) plan_boxes(args, args.d, is_transposed, rest, all, params.d_rest);
    if (reads_c) plan_boxes(args, args.c, is_transposed, columns, params.batch_mask_c, params.c);
}

}  // namespace

Prepared prepare(const RowInfo& row, const GemmArgs& args, const Schedule& schedule,
                 const Majors& majors, int sm_count) {
    const TileConfig& tile = row.tile;
    const int parts = schedule.split_k;
    Prepared prepared{Params(args), 0};
    Params& params = prepared.params;
    const ProductSize size = {
        args.m, args.n, args.k, args.batch.count, size_of(args.d.dtype), params.has_block_scales};
    const Arrangement arrangement = arrange(row, size, schedule, sm_count);
    params.cluster_log2 = arrangement.cluster() == 2 ? 1 : 0;
    params.shares_a = arrangement.cluster_n == 2;
    params.k_blocks = static_cast<int>(arrangement.k_blocks);
    params.n_step = arrangement.n_step;
    params.width = static_cast<int>(std::min<std::int64_t>(args.n, params.n_step));
    const bool one_stage = arrangement.k_blocks <= row.stage_blocks;
    const LoadedOperand a = {args.a,
                             majors.a,
                             args.m,
                             args.a.row_stride,
                             args.a.col_stride,
                             tile.block_m,
                             arrangement.cluster_n};
    const LoadedOperand b = {args.b,
                             majors.b,
                             args.n,
                             args.b.col_stride,
                             args.b.row_stride,
                             params.n_step,
                             arrangement.cluster_m};
    const LoadPlan loads_a = plan_loads(args, a, tile.block_k, one_stage);
    const LoadPlan loads_b = plan_loads(args, b, tile.block_k, one_stage);
    params.load_a = loads_a.boxes;
    params.a = loads_a.map;
    params.a_rest = loads_a.rest_map;
    params.load_b = loads_b.boxes;
    params.b = loads_b.map;
    params.b_rest = loads_b.rest_map;
    prepared.blocks = static_cast<unsigned>(arrangement.blocks);
    // The order of tiles must not choose which of them have parts of K: it follows addresses.
    const bool along_rows = parts == 1 && walks_along_rows(args);
    params.scheduler = {arrangement.clusters_m, arrangement.clusters_n, args.batch.count,
                        along_rows ? 1 : arrangement.band()};
    KSplit& split = params.split;
    split.count = parts;
    split.rest = static_cast<unsigned>(arrangement.split_tiles / arrangement.cluster());
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
    params.ring = ring_of(row, size, majors, schedule, arrangement);
    split.eights = summed_columns(tile.block_n, params.width) / 8;
    split.by_eights = device::FastDivisor(split.eights);
    const SplitLayout layout = split_layout(row, schedule, arrangement, params.width);
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
