// What a launch hands to the kernel, and what the host must prepare for it.
#pragma once

#include <cuda.h>
#include <vector_types.h>

#include <cstdint>

#include "core/host_device.hpp"
#include "core/math.hpp"
#include "kernels/device/fast_divisor.hpp"
#include "kernels/device/tile_scheduler.cuh"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/gemm_args.hpp"

namespace tcgemm::sm90_wgmma {

using Scheduler = device::BasicTileScheduler<device::FastDivisor>;
inline constexpr int kBatchDims = 3;  // that a tensor map has room for

// How a block's tile of A or B comes into shared memory: in boxes side by side along m or n. What
// lies behind the matrix is hardly loaded, for rows that are not there, or not whole, take the copy
// engine longer than others: rows of A or columns of B that nobody stores may hold anything.
struct BoxPlan {
    int boxes = 0;                    // at most
    int extent = 0;                   // of a box along m or n
    int rest = 0;                     // of the last box of the last tile, where that is less
    int batch_mask[kBatchDims] = {};  // 0: broadcast, ~0: the operand has this dimension
    // All tiles have the same boxes, of one stage: they stay in the ring, and are not fetched again
    // and again from the same few lines of L2.
    bool stays = false;
};

// The ring of stages of a block. What a k-block has of A and of B lies side by side; where the row
// fits the ring to the product instructions read beyond, what belongs to no row or column of D.
struct Ring {
    int stages = 0;
    device::FastDivisor by_stages;
    int bytes_a = 0, bytes_b = 0;  // of a k-block
    int stage_bytes = 0;
    int stagings = 0;       // of a consumer
    int first_staging = 0;  // bytes: all stages, and the scales behind them
    int bytes = 0;          // those, and stagings beyond those that every block has
};

// K in `count` parts, kMaxParts at most, computed by different blocks: those of a cluster, which
// add them up too, or any, at work all at once, which then add up a share of a tile each. The parts
// take turns along K, a stage of k-blocks each: what all blocks read at a time lies side by side,
// which memory delivers sooner than as many places far from each other. In the list of work `whole`
// clusters of tiles come first, whose K is not split; then the parts of `rest`, first parts before
// second ones.
struct KSplit {
    int count = 1;
    unsigned whole = 0, rest = 0;
    int stages = 0, longer = 0;  // of a part; the first so many parts have one more
    bool in_cluster = false;     // count is 2
    int eights = 0;              // units of the sums of 64 rows: see PartSums
    int shares = 0;              // of a tile; 0: in a cluster, or not split
    int share_pieces = 0;        // of kPieceBytes, see GridSplit; the last share may have fewer
    std::uint64_t epoch = 0;     // what a flag is set to; differs from launch to launch
    float4* partials = nullptr;
    std::uint64_t* flags = nullptr;
    device::FastDivisor by_shares, by_rest, by_eights;
};
inline constexpr int kMaxParts = 128;
// Columns that the partial sums of a tile with so many columns of D have room for: fours of eight.
// Tiles of 64 columns keep room for all, a constant (64 x 64 x 8192 takes 1 % less so).
constexpr bool narrows_sums(int block_n) { return block_n > 64; }
constexpr int summed_columns(int block_n, int columns) {
    return narrows_sums(block_n) ? static_cast<int>(round_up(columns, 4 * 8)) : block_n;
}
// Two columns of each of two rows of a thread, in all lanes of a warp.
inline constexpr int kPieceBytes = 32 * 4 * static_cast<int>(sizeof(float));

// Warps that add up a piece together, each some of the parts: one or four. Follows their number
// alone: it shows in the bits.
constexpr int team_log2(int parts) { return parts > 16 ? 2 : 0; }
// Whether four pieces are added up together: where each team of a block has as many, and a share is
// not made larger for it than a block's two teams would need.
constexpr bool adds_by_quads(std::int64_t pieces, int parts, int consumers) {
    const int teams = consumers * 4 >> team_log2(parts);
    return pieces % 4 == 0 && pieces >= 4 * (teams > 2 ? teams : 2);
}

// How D goes out.
enum class Store {
    tensor,      // by the copy engine, and C comes in by it
    transposed,  // the same where columns are contiguous
    rows,        // contiguous rows at any address
    elements,    // anything
};

struct Params {
    CUtensorMap a = {}, b = {}, c = {}, d = {};
    CUtensorMap a_rest = {}, b_rest = {};  // of the last box of the last tile, where it is shorter
    CUtensorMap d_rest = {};               // of the last box of a tile, where the next one cuts it
    BoxPlan load_a, load_b;
    Ring ring;
    int batch_mask_c[kBatchDims] = {};  // as in BoxPlan
    GemmArgs args;
    epilogue::Linear<float> epilogue;
    Scheduler scheduler;  // of clusters: one tile, or two of rows
    KSplit split;
    device::FastDivisor by_batch[kBatchDims];  // args.batch.extent
    int k_blocks = 0;
    int n_step = 0;           // columns of D from tile to tile: block_n, or less
    int width = 0;            // the most that a tile has
    int cluster_log2 = 0;     // 1: two blocks along M share B,
    bool shares_a = false;    // or two along N share A
    unsigned work_count = 0;  // scheduler.count(), with the parts of K
    Store store = Store::elements;
    int item_log2;  // of the bytes of D's elements

    // Instead of `epilogue`: of integers, and where the product has scales or FP8.
    epilogue::Linear<std::int32_t> integers;
    epilogue::Scaled scaled;
    bool is_scaled = false;
    bool has_block_scales = false;  // for each block of kScaleBlock k
    bool has_line_scales = false;   // for each row of A, or column of B

    // Whether boxes of D go out through stagings; see StoreWarp.
    TCGEMM_HOST_DEVICE bool stores_boxes() const {
        return store == Store::tensor || store == Store::transposed;
    }
    TCGEMM_HOST_DEVICE bool is_whole(unsigned work) const {
        return split.count == 1 || work < split.whole;
    }
    int cluster() const { return split.in_cluster ? split.count : 1 << cluster_log2; }  // blocks

    explicit Params(const GemmArgs& product)
        : args(product),
          epilogue(product),
          item_log2(log2_down(size_of(product.d.dtype))),
          integers(product.d.dtype == DType::i32 ? product : GemmArgs()),
          scaled(product),
          is_scaled(product.scales != nullptr),
          has_block_scales(is_scaled && (scaled.scales.a.along_k || scaled.scales.b.along_k)),
          has_line_scales(is_of_lines(scaled.scales.a) || is_of_lines(scaled.scales.b)) {}

   private:
    static bool is_of_lines(const ScaleView& view) {
        return view.data != nullptr && !view.along_k && view.outer_stride != 0;
    }
};

}  // namespace tcgemm::sm90_wgmma
