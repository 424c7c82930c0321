// From a product to the parameters of a launch: tensor maps, order of tiles, parts of K.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/runtime.hpp"
#include "kernels/sm90_wgmma/launch.hpp"

namespace tcgemm::sm90_wgmma {
namespace {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

// Clusters in a band of tiles that blocks walk together (TileScheduler).
constexpr int kBandClusters = 8;
// From so many parts on, a block that added them all one after the other would take too long.
constexpr int kMaxPartsOfOneSum = 8;
constexpr std::size_t kFlagsAlignment = 256;

// Differs from launch to launch, and from what a workspace may hold otherwise.
std::uint64_t next_epoch() {
    static std::atomic<std::uint64_t> counter{
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
    std::uint64_t x = counter.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 27)) | 1;
}

// One map dimension for each batch dimension; broadcast ones have extent 1 and a mask of 0.
void add_batch(const GemmArgs& args, const MatrixView& view, runtime::TensorMapShape& shape,
               int (&mask)[kBatchDims]) {
    const int item = size_of(view.dtype);
    for (int dim = 0; dim < kBatchDims; ++dim) {
        const bool present = dim < args.batch.rank && view.batch_stride[dim] != 0;
        mask[dim] = present ? ~0 : 0;
        shape.extent[2 + dim] = present ? args.batch.extent[dim] : 1;
        shape.stride_bytes[1 + dim] = present ? view.batch_stride[dim] * item : 16;
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
    // Of a single row the stride means nothing, but the map asks for a multiple of 16 bytes.
    shape.stride_bytes[0] =
        outer == 1 ? round_up(inner * shape.element_bytes, 16) : outer_stride * shape.element_bytes;
    return shape;
}

// `mn`: rows of A or columns of B, of which a tile takes `block`, in at least `shares` boxes.
void plan_loads(const GemmArgs& args, const MatrixView& view, Major major, std::int64_t mn,
                std::int64_t mn_stride, std::int64_t k_stride, int block, int shares, BoxPlan& plan,
                CUtensorMap& map) {
    const bool k_major = major == Major::k;
    runtime::TensorMapShape shape = k_major ? matrix_shape(view, args.k, mn, mn_stride)
                                            : matrix_shape(view, mn, args.k, k_stride);
    add_batch(args, view, shape, plan.batch_mask);
    constexpr int kSlab = 64;  // m or n of a swizzled row
    const int needed = static_cast<int>(std::min<std::int64_t>(block, round_up(mn, 8)));
    if (k_major) {
        plan.boxes = shares;
        plan.extent = shares > 1 ? block / shares : needed;
        shape.box[0] = kBlockK;
        shape.box[1] = plan.extent;
    } else {
        plan.boxes = shares > 1 ? block / kSlab : static_cast<int>(divide_up(needed, kSlab));
        plan.extent = kSlab;
        shape.box[0] = kSlab;
        shape.box[1] = kBlockK;
    }
    plan.bytes = shape.box[0] * shape.box[1] * shape.element_bytes;
    if (args.k > 0) runtime::encode_tensor_map(&map, shape);
}

// Whether the copy engine can store D, and its map.
bool plan_stores(const GemmArgs& args, CUtensorMap& map) {
    const MatrixView& d = args.d;
    const int item = size_of(d.dtype);
    const auto steps = [&](std::int64_t extent, std::int64_t stride) {
        return extent == 1 || (stride > 0 && stride * item % 16 == 0);
    };
    bool can = args.beta == 0 && d.dtype != DType::f64 && (d.col_stride == 1 || args.n == 1) &&
               reinterpret_cast<std::uintptr_t>(d.data) % 16 == 0 && steps(args.m, d.row_stride);
    for (int dim = 0; dim < args.batch.rank; ++dim) {
        can = can && steps(args.batch.extent[dim], d.batch_stride[dim]);
    }
    if (!can) return false;
    runtime::TensorMapShape shape = matrix_shape(d, args.n, args.m, d.row_stride);
    int mask[kBatchDims];
    add_batch(args, d, shape, mask);
    shape.box[0] = 128 / item;
    shape.box[1] = kMmaM;
    runtime::encode_tensor_map(&map, shape);
    return true;
}

}  // namespace

Arrangement arrange(const TileConfig& tile, std::int64_t m, std::int64_t n, std::int64_t k,
                    int split_k) {
    Arrangement result;
    result.tiles_m = divide_up(m, tile.block_m);
    result.tiles_n = divide_up(n, tile.block_n);
    result.k_blocks = divide_up(k, kBlockK);
    // Sharing B halves what L2 has to deliver of it. An odd row of tiles costs an idle half.
    constexpr int kFewRows = 16;
    const bool pairs = result.tiles_m % 2 == 0 || result.tiles_m > kFewRows;
    result.cluster = tile.block_n >= 128 && tile.block_m >= 128 && split_k == 1 && pairs ? 2 : 1;
    return result;
}

std::size_t split_workspace_bytes(const TileConfig& tile, const Arrangement& arrangement,
                                  std::int64_t batches, int split_k) {
    if (split_k == 1) return 0;
    const auto slots = static_cast<std::size_t>(arrangement.slots(batches, split_k));
    const std::size_t flags = slots * kConsumers * sizeof(std::uint64_t);
    return (flags + kFlagsAlignment - 1) / kFlagsAlignment * kFlagsAlignment +
           slots * static_cast<std::size_t>(tile.block_m) * tile.block_n * sizeof(float);
}

Prepared prepare(const TileConfig& tile, const GemmArgs& args, const Schedule& schedule,
                 Major a_major, Major b_major, int sm_count) {
    const int parts = schedule.split_k;
    const Arrangement arrangement = arrange(tile, args.m, args.n, args.k, parts);
    Prepared prepared{
        {{}, {}, {}, {}, {}, args, epilogue::Linear<float>(args), {}, {}, 0, 1, false}, 0};
    Params& params = prepared.params;
    params.cluster = arrangement.cluster;
    params.k_blocks = static_cast<int>(arrangement.k_blocks);
    plan_loads(args, args.a, a_major, args.m, args.a.row_stride, args.a.col_stride, tile.block_m, 1,
               params.load_a, params.a);
    plan_loads(args, args.b, b_major, args.n, args.b.col_stride, args.b.row_stride, tile.block_n,
               params.cluster, params.load_b, params.b);
    params.stores_by_tensor = plan_stores(args, params.d);

    params.scheduler.tiles_m = static_cast<int>(divide_up(arrangement.tiles_m, params.cluster));
    params.scheduler.tiles_n = static_cast<int>(arrangement.tiles_n);
    params.scheduler.slices = args.batch.count * parts;
    params.scheduler.band = std::min(params.scheduler.tiles_m, kBandClusters);

    const std::int64_t clusters = params.scheduler.count();
    if (parts > 1) {
        KSplit& split = params.split;
        split.count = parts;
        split.group = parts;
        if (parts > kMaxPartsOfOneSum) {
            for (split.group = 2; split.group * split.group < parts;) ++split.group;
        }
        split.epoch = next_epoch();
        const std::size_t bytes = split_workspace_bytes(tile, arrangement, args.batch.count, parts);
        const auto slots = static_cast<std::size_t>(arrangement.slots(args.batch.count, parts));
        const std::size_t sums =
            slots * static_cast<std::size_t>(tile.block_m) * tile.block_n * sizeof(float);
        split.flags = static_cast<std::uint64_t*>(args.workspace);
        split.partials =
            reinterpret_cast<float*>(static_cast<char*>(args.workspace) + bytes - sums);
        prepared.blocks = static_cast<unsigned>(clusters);  // a block must not wait for itself
    } else {
        prepared.blocks = static_cast<unsigned>(
            std::min<std::int64_t>(clusters, sm_count / params.cluster) * params.cluster);
    }
    return prepared;
}

}  // namespace tcgemm::sm90_wgmma
