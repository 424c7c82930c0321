// What a kernel is compiled for: a row of the table and the layouts of its operands.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "core/math.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/major.hpp"

namespace tcgemm::sm90_wgmma {

inline constexpr int kHalvesBlock =
    64;                                // k of float32 operands in halves: a k-block of either half
inline constexpr int kRowBytes = 128;  // of a swizzled row: the k of a k-block, where contiguous
inline constexpr int kSwizzledRows = 8;  // of shared memory, that are swizzled together
// The copy engine copies so many bytes at a time: of a tensor map, addresses, strides and the rows
// of boxes are multiples of it.
inline constexpr int kTensorBytes = 16;
inline constexpr int kMmaKBytes = 32;  // of k that an instruction takes
inline constexpr int kMmaM = 64;
// Where m or n are contiguous: of a box, and of 16-bit elements of an instruction.
constexpr int box_mn(int element_bytes) { return kRowBytes / element_bytes; }
inline constexpr int kBoxMn = box_mn(2), kMmaK = 16;
inline constexpr int kWidthStep = 16;   // columns; see narrower()
inline constexpr int kWarpgroup = 128;  // threads

// Bytes of shared memory of an SM, dealt out to its blocks: for stagings, stages and their scales.
// There are some more for barriers.
inline constexpr int kBoxesBytes = 224 << 10;
inline constexpr int kStagingBytes = 8 << 10;  // 64 rows of 128 bytes: a box of the store
inline constexpr int kAlignment = 1024;        // of a stage: eight swizzled rows
inline constexpr int kMaxStages = 32;

// Which rows begin a tile while the one before is stored: those that promote FP8 in tiles of two
// consumers. And of which D: for the store of wider elements they have not the registers.
constexpr bool begins_ahead(bool block_scales, int consumers) {
    return block_scales && consumers == 2;
}
constexpr bool begins_ahead_of(DType d) { return d == DType::f16 || d == DType::bf16 || is_fp8(d); }

// Stagings of a warpgroup, which take turns. One where three warpgroups need the memory for a
// fourth stage, and three, for a row of 192 columns of D, where four stages leave room for them.
constexpr int stagings(bool block_scales, int consumers) {
    return consumers > 2 ? 1 : begins_ahead(block_scales, consumers) ? 3 : 2;
}
// What a warp that stores rows has of one there at most: eight rows in its quarter of two.
constexpr int most_row_bytes(int stagings) {
    return (stagings > 2 ? 2 : stagings) * kStagingBytes / 4 / 8;
}
// For stages, of a block where so many share an SM.
constexpr int ring_bytes(int consumers, int stagings, int blocks_on_sm) {
    return kBoxesBytes / blocks_on_sm - consumers * stagings * kStagingBytes;
}

// Of the scales of a stage: a float for each row and column of a tile, and not only for those that
// there are, for all are read. And of a ring.
constexpr int scale_bytes(int block_m, int block_n) { return (block_m + block_n) * 4; }
constexpr int all_bytes(int stages, int stage_bytes, int scale_bytes) {
    return static_cast<int>(round_up(stages * (stage_bytes + scale_bytes), kAlignment));
}

// Tiles of a product with scales of blocks begin at multiples of so many columns, so that they lie
// in two blocks of columns at most. And from one of their widths to the next.
constexpr int scaled_step(int block_n) { return block_n > kScaleBlock ? kScaleBlock / 2 : 8; }
constexpr int scaled_width_step(int block_n) {
    return scaled_step(block_n) > kWidthStep ? scaled_step(block_n) : kWidthStep;
}
// The columns of the widest tiles.
constexpr int widest(int block_n, bool has_block_scales) {
    return has_block_scales ? block_n / scaled_step(block_n) * scaled_step(block_n) : block_n;
}

// The widths of instructions that there are loops for, from one to the next: by steps or by halves,
// with scales of blocks by steps of their own.
constexpr int narrower(int width, int block_n, bool by_steps, bool has_block_scales) {
    if (has_block_scales) return width - scaled_width_step(block_n);
    return by_steps ? width - kWidthStep : width / 2;
}

// The narrowest that begin a tile while the one before is stored: see consume_ahead().
constexpr int least_ahead(int block_n, bool has_block_scales) {
    return has_block_scales ? widest(block_n, true) : block_n - kWidthStep;
}

// The width of the narrowest instructions. Of large tiles with A in registers there are no narrower
// ones than whole tiles, for their loops would spill.
constexpr int least_width(int least_n, int block_n, bool a_in_registers) {
    return a_in_registers && block_n > 128 ? block_n : least_n;
}

// Registers: the threads of a block start with equal shares of an SM's; then the producers give
// back all but a few of theirs, and the consumers take them. setmaxnreg counts in eights.
constexpr int producer_registers(int consumers) { return consumers > 2 ? 32 : 40; }
constexpr int start_registers(int threads, int blocks_per_sm) {
    return 65536 / (threads * blocks_per_sm) / 8 * 8;
}

template <class Row, Major A, Major B>
struct Policy {
    // float32 in halves (kernels/halves.hpp): a k-block of high halves, then one of low ones.
    static constexpr bool kHalves = Row::halves;
    using ElementA = std::conditional_t<kHalves, __half, typename Row::ElementA>;
    using ElementB = std::conditional_t<kHalves, __half, typename Row::ElementB>;
    using Accumulator = typename Row::Accumulator;  // float, __half or std::int32_t
    static constexpr int kBlockK = kRowBytes / sizeof(ElementA);
    static constexpr Major a_major = A, b_major = B;
    // wgmma takes m or n contiguous of 16-bit elements alone; others of A, out of registers.
    static constexpr bool kAInRegisters = sizeof(ElementA) != 2 && A == Major::mn;
    static constexpr int kBlockM = Row::tile.block_m, kBlockN = Row::tile.block_n;
    static constexpr int kLeastN = least_width(Row::least_n, kBlockN, kAInRegisters);
    static constexpr int narrower(int width, bool has_block_scales = false) {
        return sm90_wgmma::narrower(width, kBlockN, Row::by_steps, has_block_scales);
    }
    static constexpr int kConsumers = Row::consumers;  // warpgroups that multiply
    static constexpr int kBlocksPerSm = Row::blocks_per_sm;
    // Cooperative: all consumers work on one tile, each on its rows. Ping-pong: each has tiles of
    // its own in turn, and stores one while the other multiplies.
    static constexpr bool kPingPong = Row::ping_pong;
    // Sums of at most 128 k (of halves: 32 of the high ones) go to a second accumulator of FP32.
    static constexpr bool kPromoted = Row::promoted;
    // K over the blocks of a cluster.
    static constexpr bool kSplitsInCluster = Row::splits_in_cluster;
    static constexpr bool kScales = Row::scales;             // has the epilogue `scaled` besides
    static constexpr bool kBlockScales = Row::block_scales;  // multiplies by scales of blocks of k

    // While a tile is stored, the tensor cores begin the next one.
    static constexpr bool kBeginsAhead = begins_ahead(kBlockScales, kConsumers);
    // The consumers of a tile issue their wgmma one after the other. Otherwise the short loop of
    // consume_ahead() brings them into step: both promote at a time, and the tensor cores wait.
    static constexpr bool kTakesTurns = kHalves || kBeginsAhead;

    static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;  // one feeds the others
    static constexpr int kGroups = kPingPong ? kConsumers : 1;      // at work on different tiles
    static constexpr int kWarpgroupsPerTile = kConsumers / kGroups;
    static constexpr int kRows = kBlockM / kWarpgroupsPerTile;  // of a warpgroup
    static constexpr int kSubtiles = kRows / kMmaM;
    // Of a consumer: its group, its number and its first row within the tile.
    static constexpr int group_of(int consumer) { return kPingPong ? consumer : 0; }
    static constexpr int in_tile(int consumer) { return kPingPong ? 0 : consumer; }
    static constexpr int first_row(int consumer) { return in_tile(consumer) * kRows; }
    // What a thread holds of the warpgroup's rows of a tile; see ptx::Wgmma for the places.
    static constexpr int kSums = kBlockN / 2;  // of 64 rows
    using Sum = std::conditional_t<std::is_integral_v<Accumulator>, std::int32_t, float>;
    using Sums = Sum[kSubtiles][kSums];
    // The ring of stages of whole tiles. kFitsRing: smaller stages, and so more, where the matrices
    // fill less of a tile (Params::ring).
    static constexpr int kBytesA = kBlockM * kRowBytes, kBytesB = kBlockN * kRowBytes;
    static constexpr int kBlocksPerStage = Row::stage_blocks;
    static constexpr int kStageBytes = kBlocksPerStage * (kBytesA + kBytesB);
    static constexpr int kScaleBytes = kBlockScales ? scale_bytes(kBlockM, kBlockN) : 0;
    static constexpr int kStagings = stagings(kBlockScales, kConsumers);
    static constexpr int kStages =
        ring_bytes(kConsumers, kStagings, kBlocksPerSm) / (kStageBytes + kScaleBytes);
    static constexpr bool kFitsRing = Row::fits_ring;
    // The host chooses how many stagings and stages there are: kStagings, or kMostStagings.
    static constexpr bool kMoreStagings = Row::more_stagings;
    static constexpr int kMostStagings = kMoreStagings ? 2 * kStagings : kStagings;
    // What instructions read behind the columns that a stage has.
    static constexpr int kReadBeyond = (Row::by_steps ? kLeastN : kBlockN) * kRowBytes;
    static constexpr int kStartRegisters = start_registers(kThreads, kBlocksPerSm);
    static constexpr int kProducerRegisters = producer_registers(kConsumers);
    static constexpr int kConsumerRegisters =
        ((1 + kConsumers) * kStartRegisters - kProducerRegisters) / kConsumers / 8 * 8;

    static_assert(kRows % kMmaM == 0 && kSubtiles > 0);
    static_assert(kBlockN % kWidthStep == 0);
    // A stage is multiplied while the one before is still held.
    static_assert(kStages >= 2);
    // Promoting loops take no turns, and a stage is a k-block.
    static_assert(!kPromoted || kHalves || (!kPingPong && kBlocksPerStage == 1));
    // Besides accumulators, and two k-blocks of A in registers, addresses take 24 registers or
    // more.
    static constexpr int kAccumulators = kHalves ? 3 : kPromoted ? 2 : 1;
    static constexpr int kFragments = kAInRegisters ? kRows * kRowBytes / (kWarpgroup * 4) : 0;
    static_assert(kRows * kBlockN / kWarpgroup * kAccumulators + kFragments + 24 <=
                  kConsumerRegisters);
    // Beside the sums of a tile few registers are left: it is stored in small pieces.
    static constexpr bool kStoresLittle = kConsumerRegisters - kRows * kBlockN / kWarpgroup < 80;
    static_assert(!kAInRegisters || (!kPromoted && sizeof(ElementA) == 4));
};

}  // namespace tcgemm::sm90_wgmma
