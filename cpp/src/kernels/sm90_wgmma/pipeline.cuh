// How the warps of a block pass tiles to each other, and which work they do.
#pragma once

#include <cstdint>

#include "kernels/device/ptx/block.cuh"
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/opaque.cuh"
#include "kernels/device/ptx/shared.cuh"
#include "kernels/sm90_wgmma/params.hpp"
#include "kernels/sm90_wgmma/policy.hpp"

namespace tcgemm::sm90_wgmma {

namespace ptx = device::ptx;

// The thread's index, read anew: what the compiler derives from it stays inside the epilogue. Kept
// in registers over the main loop, it would not leave room for accumulators.
__device__ __forceinline__ int this_thread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    __builtin_assume(thread >= 0);
    return thread;
}
__device__ __forceinline__ int thread_in_warpgroup() { return this_thread() % kWarpgroup; }
__device__ __forceinline__ int this_warpgroup() { return this_thread() / kWarpgroup; }

// Shared memory: stages | scales | staging of the epilogue | barriers. Addresses of the shared
// window.
template <class Policy>
struct SharedMemory {
    static constexpr bool kFits = Policy::kFitsRing;
    static constexpr int kConsumers = Policy::kConsumers, kStagings = Policy::kStagings;
    static constexpr bool kMoreStagings = Policy::kMoreStagings;
    static constexpr int kMostStagings = Policy::kMostStagings;
    static constexpr int kStages = kFits ? kMaxStages : Policy::kStages;  // that have barriers
    static constexpr int kTurns = Policy::kPingPong ? kConsumers : 0;
    // What instructions read behind the last stage is still there.
    static_assert(!kFits || kConsumers * kStagings * kStagingBytes >= Policy::kReadBeyond);
    static constexpr int kRingBytes =
        all_bytes(Policy::kStages, Policy::kStageBytes, Policy::kScaleBytes);
    // Where stages have one size, the further stagings are a stage's or several.
    static_assert(kFits ||
                  kConsumers * (kMostStagings - kStagings) * kStagingBytes % Policy::kStageBytes ==
                      0);
    static constexpr int bytes(int of_ring) {
        return of_ring + kConsumers * kStagings * kStagingBytes +
               (2 * kStages + kTurns + 2 * kConsumers * kMostStagings) * 8;
    }
    static constexpr int kBytes = bytes(kRingBytes);
    std::uint32_t base;
    const Ring& ring;

    __device__ int stages() const { return kFits || kMoreStagings ? ring.stages : Policy::kStages; }
    __device__ int stagings() const { return kMoreStagings ? ring.stagings : kStagings; }
    __device__ int stage_bytes() const { return kFits ? ring.stage_bytes : Policy::kStageBytes; }
    __device__ int bytes_a() const { return kFits ? ring.bytes_a : Policy::kBytesA; }
    __device__ int bytes_b() const { return kFits ? ring.bytes_b : Policy::kBytesB; }

    __device__ std::uint32_t a(int stage, int block = 0) const {
        return base + stage * stage_bytes() + block * bytes_a();
    }
    __device__ std::uint32_t b(int stage, int block = 0) const {
        return a(stage, Policy::kBlocksPerStage) + block * bytes_b();
    }
    // Where there are scales of blocks: of the stage's rows of A, of its columns of B.
    __device__ std::uint32_t scales_a(int stage) const {
        return a(stages()) + stage * Policy::kScaleBytes;
    }
    __device__ std::uint32_t scales_b(int stage) const {
        return scales_a(stage) + Policy::kBlockM * 4;
    }
    __device__ std::uint32_t staging(int consumer, int turn) const {
        const int first = kFits || kMoreStagings ? ring.first_staging : kRingBytes;
        return base + first + (consumer * stagings() + turn) * kStagingBytes;
    }
    __device__ std::uint32_t staging_end() const {
        return base + (kFits ? ring.bytes : kRingBytes) + kConsumers * kStagings * kStagingBytes;
    }
    // Boxes take turns in the stagings (of which there are a power of two, where the host chooses):
    // where the box of this number is, and the parity of its barriers' phases.
    __device__ int staging_of(unsigned box) const {
        const unsigned count = stagings();
        return static_cast<int>(kMoreStagings ? box & (count - 1) : box % count);
    }
    __device__ std::uint32_t staging_parity(unsigned box) const {
        const unsigned count = stagings();
        return kMoreStagings ? (box & count) != 0 : box / count % 2;
    }
    // Full: a stage has its bytes. Empty: all that read it are done, in the whole cluster.
    __device__ std::uint32_t full(int stage) const { return staging_end() + stage * 8; }
    __device__ std::uint32_t empty(int stage) const { return full(kStages + stage); }
    // It is this warpgroup's turn to go on through the ring.
    __device__ std::uint32_t turn(int consumer) const { return empty(kStages + consumer); }
    // A staging may be filled by the consumer; is filled. See StoreWarp.
    __device__ std::uint32_t ready(int consumer, int staging) const {
        return turn(kTurns + consumer * kMostStagings + staging);
    }
    __device__ std::uint32_t filled(int consumer, int staging) const {
        return ready(kConsumers + consumer, staging);
    }
};

// A staging has rows of 128 bytes whose 16-byte pieces are swizzled as the copy engine expects
// them; what a warp writes together lies in different banks.
__device__ __forceinline__ std::uint32_t staging_address(std::uint32_t staging, int row, int byte) {
    return staging + row * kRowBytes + (byte ^ (row & 7) << 4);
}

// The block's barriers by number: of all threads; of each consumer, and of all; of each team of
// four warps that add up parts of K; and of each consumer that has its turn.
template <class Policy>
struct Barrier {
    static constexpr int kAll = 0, kConsumer = 1, kConsumers = 1 + Policy::kConsumers,
                         kTeam = 1 + kConsumers, kTurn = kTeam + Policy::kConsumers;
};

// The next stage of the ring and the parity of its phase.
struct RingPosition {
    int stage = 0;
    std::uint32_t parity = 0;

    template <class Policy>
    __device__ __forceinline__ void advance(const SharedMemory<Policy>& shared) {
        if (++stage == shared.stages()) {
            stage = 0;
            parity ^= 1;
        }
    }
    template <class Policy>
    __device__ __forceinline__ void skip(int stages, const SharedMemory<Policy>& shared) {
        const int turns = static_cast<int>(shared.ring.by_stages.divide(stage + stages));
        stage += stages - turns * shared.stages();
        parity ^= turns & 1;
    }
};

// A tile of D, or one part of its K.
struct Work {
    int m, n;                 // its first element
    int n_end;                // behind its last column
    int first_block, blocks;  // k-blocks: of each stage the first one is
    int stage_step;           // behind that of the stage before
    int part;
    int batch_index[kBatchDims];
};

// Where a thread's sums lie in D; see ptx::Wgmma. Rows and columns behind the matrix
// or the tile count as the last: what stands for them (scales, exponents) is not there.
template <class Policy>
struct ThreadPlace {
    static constexpr int kRows = 2 * Policy::kSubtiles, kEights = Policy::kBlockN / 8;
    int row, col;  // the first
    int last_row, last_col;

    __device__ ThreadPlace(const Params& params, const Work& work, int warpgroup_row)
        : last_row(static_cast<int>(params.args.m - 1)), last_col(work.n_end - 1) {
        const int thread = thread_in_warpgroup();
        row = work.m + warpgroup_row + thread / 32 * 16 + thread % 32 / 4;
        col = work.n + thread % 4 * 2;
    }
    // Row i of kRows, element e of the pair in eight columns `eight` of kEights.
    __device__ int row_at(int i) const { return min(row + i / 2 * kMmaM + i % 2 * 8, last_row); }
    __device__ int col_at(int eight, int e) const { return min(col + eight * 8 + e, last_col); }
};

// The work of this block, in the order in which all its warps go through it.
template <class Policy>
class WorkList {
   public:
    __device__ explicit WorkList(const Params& params)
        : params_(params),
          rank_(params.cluster_log2 > 0 ? static_cast<int>(ptx::cluster_rank()) : 0),
          next_(Policy::kSplitsInCluster && params.split.in_cluster
                    ? part_of_cluster()
                    : blockIdx.x >> params.cluster_log2) {}

    __device__ bool has_next() const { return next_ < params_.work_count; }

    __device__ unsigned next() {
        const unsigned index = next_;
        next_ += gridDim.x >> params_.cluster_log2;
        return index;
    }

    // What next() returned, without a register for it.
    __device__ unsigned latest() const { return next_ - (gridDim.x >> params_.cluster_log2); }

    __device__ int blocks(unsigned index) const {
        return params_.is_whole(index) ? params_.k_blocks : decode(index).blocks;
    }

    // Of the cluster's tiles, that of this block.
    __device__ Work decode(unsigned index) const { return decode(index, rank_); }
    __device__ Work decode(unsigned index, int rank) const {
        constexpr int kStage = Policy::kBlocksPerStage;
        Work work;
        work.part = 0;
        work.first_block = 0;
        work.blocks = params_.k_blocks;
        work.stage_step = kStage;
        if (!params_.is_whole(index)) {
            const KSplit& split = params_.split;
            const unsigned part = split.by_rest.divide(index - split.whole);
            index -= part * split.rest;
            work.part = static_cast<int>(part);
            work.first_block = work.part * kStage;
            work.blocks = (split.stages + (work.part < split.longer)) * kStage;
            work.stage_step = split.count * kStage;
        }
        const device::Tile tile = params_.scheduler.tile(index);
        const int along_n = params_.shares_a ? params_.cluster_log2 : 0;
        const int along_m = params_.cluster_log2 - along_n;
        work.m = ((tile.m << along_m) + (rank & along_m)) * Policy::kBlockM;
        work.n = ((tile.n << along_n) + (rank & along_n)) * params_.n_step;
        work.n_end = min(static_cast<int>(params_.args.n), work.n + params_.n_step);
        auto batch = static_cast<unsigned>(tile.slice);
#pragma unroll
        for (int dim = kBatchDims - 1; dim >= 0; --dim) {
            work.batch_index[dim] = 0;
            if (dim < params_.args.batch.rank) {
                const auto extent = static_cast<unsigned>(params_.args.batch.extent[dim]);
                const unsigned above = dim == 0 ? 0 : params_.by_batch[dim].divide(batch);
                work.batch_index[dim] = static_cast<int>(batch - above * extent);
                batch = above;
            }
        }
        return work;
    }

   private:
    // A cluster has the parts of a tile, a block each.
    __device__ unsigned part_of_cluster() const {
        const unsigned count = params_.split.count, tile = blockIdx.x / count;
        return tile + (blockIdx.x - tile * count) * params_.split.rest;
    }

    const Params& params_;
    int rank_;
    unsigned next_;  // of clusters; family.cu sees to it that they fit
};

}  // namespace tcgemm::sm90_wgmma
