// The ring of k-blocks in shared memory, which asynchronous copies fill while the tensor cores work
// on an older one: what all main loops have in common.
#pragma once

#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/mma.cuh"
#include "kernels/device/ptx/opaque.cuh"
#include "kernels/device/ptx/shared.cuh"
#include "kernels/device/swizzled_tile.cuh"
#include "kernels/sm80_mma/policy.hpp"

namespace tcgemm::sm80_mma {

namespace ptx = device::ptx;

template <class Policy>
struct Shape {
    static constexpr TileConfig tile = Policy::tile;
    static constexpr int kItem = sizeof(typename Policy::ElementA);  // as many of B
    static constexpr int kWarpsM = tile.block_m / tile.warp_m;
    static constexpr int kWarpsN = tile.block_n / tile.warp_n;
    static constexpr int kWarpsMn = kWarpsM * kWarpsN;
    static constexpr int kWarpsK = warps_along_k<typename Policy::Accumulator>(kWarpsMn);
    static constexpr int kWarps = kWarpsMn * kWarpsK;
    using Mma = std::conditional_t<std::is_same_v<typename Policy::Accumulator, double>,
                                   ptx::MmaF64<tile.block_k / kWarpsK>,
                                   ptx::Mma<typename Policy::ElementA, typename Policy::ElementB,
                                            typename Policy::Accumulator>>;
    static constexpr int kMmasM = tile.warp_m / Mma::kM, kMmasN = tile.warp_n / Mma::kN;
    static_assert(tile.block_m % tile.warp_m == 0 && tile.block_n % tile.warp_n == 0);
    static_assert(tile.threads == kWarps * 32);
    static_assert(!Policy::kPromoted || tile.block_k <= kPromotedK);
    static_assert(!Policy::kBlockScales || tile.block_k == kScaleBlock);
    static_assert((tile.warp_m == 32 || tile.warp_m == 48 || tile.warp_m == 64) &&
                  (tile.warp_n == 32 || tile.warp_n == 64));

    using Sums = typename Mma::Sums[kMmasM][kMmasN];
    using Sum = decltype(Mma::pair({}, 0).x);  // as the epilogue takes it

    // Tiles in shared memory keep the order of global memory: loads of fragments transpose.
    template <Major major, int kMn>
    using Tile = std::conditional_t<major == Major::k,
                                    device::SwizzledTile<kMn, tile.block_k * kItem, kItem>,
                                    device::SwizzledTile<tile.block_k, kMn * kItem, kItem>>;
    using TileA = Tile<Policy::a_major, tile.block_m>;
    using TileB = Tile<Policy::b_major, tile.block_n>;
    static constexpr int kStageBytes = TileA::kBytes + TileB::kBytes;
    static constexpr int kRingBytes = Policy::kStages * kStageBytes;
};

// Stages are named by their offsets in the ring. Copies are kAhead k-blocks ahead of the one that
// is multiplied; kAddressEach: see AsyncTileLoader.
template <class Policy, int kAhead, bool kAddressEach>
class CopyRing {
    using S = Shape<Policy>;
    using ElementA = typename Policy::ElementA;
    using ElementB = typename Policy::ElementB;
    static constexpr TileConfig tile = Policy::tile;
    static_assert(kAhead >= 2 && kAhead < Policy::kStages);
    template <class Tile, class Element, Major major>
    using Loader = device::AsyncTileLoader<Tile, Element, major == Major::mn, tile.threads,
                                           Policy::kUnaligned, kAddressEach>;
    using LoaderA = Loader<typename S::TileA, ElementA, Policy::a_major>;
    using LoaderB = Loader<typename S::TileB, ElementB, Policy::b_major>;

   public:
    static constexpr int kVectors = LoaderA::kVectors + LoaderB::kVectors;  // a thread's copies
    static constexpr int kFirstWrite = kAhead * S::kStageBytes;  // the stage copied to after fill()

    // Matrices start at the block's rows of A, columns of B and k, of which `k` are summed: up to
    // the end of `all_k`, which the kernel was given, or whole k-blocks. `ring` and `barrier`, at
    // which every thread arrives: addresses in shared memory.
    __device__ CopyRing(std::uint32_t ring, std::uint32_t barrier, const ElementA* a,
                        std::int64_t lda, const ElementB* b, std::int64_t ldb, int rows, int cols,
                        std::int64_t k, const std::int64_t& all_k)
        : ring_(ring),
          barrier_(barrier),
          load_a_(a, lda, rows),
          load_b_(b, ldb, cols),
          whole_blocks_(k > 0 ? static_cast<int>(k / tile.block_k) : 0),
          blocks_(k > 0 ? static_cast<int>((k + tile.block_k - 1) / tile.block_k) : 0),
          all_k_(all_k) {}

    __device__ __forceinline__ int blocks() const { return blocks_; }
    __device__ __forceinline__ std::uint32_t a(int stage) const { return ring_ + stage; }
    __device__ __forceinline__ std::uint32_t b(int stage) const {
        return ring_ + stage + S::TileA::kBytes;
    }
    static __device__ __forceinline__ int next(int stage) {
        return stage == S::kRingBytes - S::kStageBytes ? 0 : stage + S::kStageBytes;
    }

    // Starts the copies of the first kAhead k-blocks and waits for the first of them.
    __device__ __forceinline__ void fill() {
#pragma unroll
        for (int stage = 0; stage < kAhead; ++stage) {
            begin_copies(stage * S::kStageBytes, stage);
#pragma unroll
            for (int v = 0; v < kVectors; ++v) copy(stage * S::kStageBytes, v);
            ptx::commit_copies();
        }
        ptx::wait_for_copies<kAhead - 1>();
        __syncthreads();
    }

    // Before the copies of the next k-block, which has this index: whether it is a whole one. The
    // one in which K ends is copied at once. Addresses move on here, for at the end of a k-block
    // the last copies may not have read them yet.
    __device__ __forceinline__ void begin_copies(int stage, int block) {
        if (block > 0) {
            load_a_.advance();
            load_b_.advance();
        }
        load_a_.activate(block < whole_blocks_);
        load_b_.activate(block < whole_blocks_);
        const bool is_rest = block == whole_blocks_ && block < blocks_;
        // A loop, to stay a branch: of an `if` the compiler makes predicated instructions, which
        // are in the way in every k-block.
#pragma unroll 1
        for (unsigned trips = ptx::opaque(is_rest ? 1 : 0); trips > 0; --trips) {
            const int rest_k = static_cast<int>(all_k_ % tile.block_k);
            load_a_.copy_part(a(stage), rest_k);
            load_b_.copy_part(b(stage), rest_k);
        }
    }
    __device__ __forceinline__ void copy(int stage, int v) const {
        if (v < LoaderA::kVectors) {
            load_a_.copy(a(stage), v);
        } else {
            load_b_.copy(b(stage), v - LoaderA::kVectors);
        }
    }
    // All copies to `stage` are started, the thread's warp has read the stage that is overwritten
    // next, and the thread's copies of the next k-block have come. Who waits for the phase that
    // ends when all threads have said so may read the next stage and overwrite that one. In between
    // a warp multiplies: none waits at once for the slowest one.
    __device__ __forceinline__ void pass_stage() const {
        ptx::commit_copies();
        ptx::wait_for_copies<kAhead - 1>();
        ptx::arrive(barrier_);
    }
    // Whether all threads have done so in this k-block.
    __device__ __forceinline__ bool is_passed(int block) const {
        return ptx::test_phase(barrier_, block & 1);
    }
    __device__ __forceinline__ void wait_until_passed(int block) const {
        ptx::wait_for_phase(barrier_, block & 1);
    }

   private:
    std::uint32_t ring_, barrier_;
    LoaderA load_a_;
    LoaderB load_b_;
    int whole_blocks_, blocks_;  // k-blocks, without and with the one in which K ends
    const std::int64_t& all_k_;  // where it needs no register
};

}  // namespace tcgemm::sm80_mma
