// From tiles of A and B in global memory to the sums of a warp: a ring of k-blocks in shared
// memory, filled by asynchronous copies while the tensor cores work on the oldest one.
#pragma once

#include "kernels/device/ptx/block.cuh"
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/mma.cuh"
#include "kernels/device/swizzled_tile.cuh"
#include "kernels/sm80_mma/policy.hpp"

namespace tcgemm::sm80_mma {

namespace ptx = device::ptx;

inline constexpr int kPromotedK = 128;  // k in a sum before it is promoted

template <class Policy>
struct Shape {
    static constexpr TileConfig tile = Policy::tile;
    static constexpr int kItem = sizeof(typename Policy::Element);
    using Mma = ptx::Mma<typename Policy::Element, typename Policy::Accumulator>;
    static constexpr int kWarpsM = tile.block_m / tile.warp_m;
    static constexpr int kWarpsN = tile.block_n / tile.warp_n;
    static constexpr int kWarps = kWarpsM * kWarpsN;
    static constexpr int kSteps = tile.block_k / Mma::kK;  // of instructions in a k-block
    static constexpr int kMmasM = tile.warp_m / Mma::kM, kMmasN = tile.warp_n / Mma::kN;
    static_assert(tile.threads == kWarps * 32 && kSteps % 2 == 0 && kPromotedK % tile.block_k == 0);
    static_assert((tile.warp_m == 32 || tile.warp_m == 64) &&
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

// A warp's part of a k-block of A (or of B): where it lies, and how it comes into registers.
template <class Mma, class Tile, Major major, bool kIsA>
class Fragments {
    static constexpr bool kWide = Tile::kItem == 8;  // FP64, which ldmatrix does not know

   public:
    // `mn`: the warp's first row of A or column of B within the block's tile.
    __device__ explicit Fragments(int mn) {
        const int lane = threadIdx.x % 32;
        if constexpr (kWide) {
            const int along = lane / 4, k = lane % 4;
            offset_ = major == Major::k ? Tile::offset(mn + along, k / 2) + k % 2 * 8
                                        : Tile::offset(k, (mn + along) / 2) + along % 2 * 8;
        } else {
            // Lane i gives the address of row i % 8 of matrix i / 8; the order of the four matrices
            // is that of the registers of A (m, m + 8, then both at k + 8), or of two columns of B.
            const int row = lane % 8, outer = lane / 16, inner = lane / 8 % 2;
            const int mn8 = kIsA ? inner : outer, k8 = kIsA ? outer : inner;
            offset_ = major == Major::k ? Tile::offset(mn + mn8 * 8 + row, k8)
                                        : Tile::offset(k8 * 8 + row, mn / 8 + mn8);
        }
        offset_ = ptx::opaque(offset_);
    }

    // 16 rows (columns), the i-th of the warp, of the k-block's `step`-th instruction.
    __device__ __forceinline__ void load(std::uint32_t tile, int i, int step,
                                         typename Mma::Fragment& fragment) const {
        const std::uint32_t base = tile + offset_;
        if constexpr (kWide) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {  // 8 rows (columns)
                fragment[half] = ptx::load_shared_f64(
                    major == Major::k ? (base ^ step * 32) + (i * 16 + half * 8) * Tile::kRowBytes
                                      : (base ^ half * 64) + i * 128 + step * 4 * Tile::kRowBytes);
            }
        } else if constexpr (major == Major::k) {
            ptx::load_matrices((base ^ step * 32) + i * 16 * Tile::kRowBytes, fragment);
        } else {
            ptx::load_matrices_transposed((base ^ i * 32) + step * 16 * Tile::kRowBytes, fragment);
        }
    }

   private:
    std::uint32_t offset_;
};

template <class Policy>
class Mainloop {
    using S = Shape<Policy>;
    using Mma = typename S::Mma;
    using Element = typename Policy::Element;
    static constexpr TileConfig tile = Policy::tile;
    static constexpr int kAhead = Policy::kStages - 1;  // k-blocks that copies are ahead
    static_assert(kAhead >= 2);
    static constexpr int kMmasM = S::kMmasM, kMmasN = S::kMmasN, kPairsN = kMmasN / 2;
    using LoaderA = device::AsyncTileLoader<typename S::TileA, Element,
                                            Policy::a_major == Major::mn, tile.threads>;
    using LoaderB = device::AsyncTileLoader<typename S::TileB, Element,
                                            Policy::b_major == Major::mn, tile.threads>;
    static constexpr int kVectors = LoaderA::kVectors + LoaderB::kVectors;

    // What a warp does beside its multiplications, by their number in a step (of kMmas). The first
    // ones touch every fragment of the step: loads that come behind them then share no scoreboard
    // with a fragment that is still awaited, for which a multiplication would wait for them too.
    static constexpr int kMmas = kMmasM * kMmasN;
    static constexpr int kTouches = kMmasM > kPairsN ? kMmasM : kPairsN;
    // Loads of the next step's fragments begin there, in the last step behind the wait for the next
    // k-block, and leave the end of a step free, so that they have come when it begins.
    static constexpr int kFree = kMmas / 8, kWaitAt = kMmas * 3 / 8;
    static constexpr int kLoads = kMmasM + kPairsN;
    static constexpr int load_at(bool is_last_step, int load) {
        const int first = is_last_step ? kWaitAt : kTouches;
        return first + load * (kMmas - kFree - first) / kLoads;
    }
    // Before the last step all copies are started, two by two, and the stage is passed.
    static constexpr int kPassStep = S::kSteps - 2, kPassAt = kMmas - kFree;
    static constexpr int copy_at(int copy) {  // counted from the first step
        const int last = kPassStep * kMmas + kPassAt;
        return kTouches + copy / 2 * 2 * (last - kTouches) / kVectors;
    }

   public:
    using Sums = typename S::Sums;

    // Matrices start at the block's rows of A, columns of B and k. `ring` and `barrier`, at which
    // every thread arrives: addresses in shared memory.
    __device__ Mainloop(std::uint32_t ring, std::uint32_t barrier, const Element* a,
                        std::int64_t lda, const Element* b, std::int64_t ldb, int rows, int cols,
                        std::int64_t k, int warp_m, int warp_n)
        : ring_(ring),
          barrier_(barrier),
          load_a_(a, lda, rows),
          load_b_(b, ldb, cols),
          whole_blocks_(k > 0 ? static_cast<int>(k / tile.block_k) : 0),
          rest_k_(k > 0 ? static_cast<int>(k - whole_blocks_ * std::int64_t{tile.block_k}) : 0),
          fragments_a_(warp_m),
          fragments_b_(warp_n) {}

    __device__ __forceinline__ void run(Sums& sums) {
        const int blocks = whole_blocks_ + (rest_k_ > 0 ? 1 : 0);
        if (blocks == 0) return;
        // Copies are a ring less one stage ahead: the stage that is left is being read.
#pragma unroll
        for (int stage = 0; stage < kAhead; ++stage) {
            begin_copies(stage * S::kStageBytes, stage);
#pragma unroll
            for (int v = 0; v < kVectors; ++v) copy(stage * S::kStageBytes, v);
            ptx::commit_copies();
        }
        int read = 0, write = kAhead * S::kStageBytes;  // offsets in the ring
        ptx::wait_for_copies<kAhead - 1>();
        __syncthreads();
#pragma unroll
        for (int load = 0; load < kLoads; ++load) load_fragment(read, 0, load);

        Sums part;  // where promoted: the last 128 k at most
        if constexpr (Policy::kPromoted) clear(part);
        Sums& target = Policy::kPromoted ? part : sums;
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            begin_copies(write, block + kAhead);
            bool is_next_here = false;
#pragma unroll
            for (int step = 0; step < S::kSteps; ++step) {
                const bool is_last = step == S::kSteps - 1;
                int number = 0;
                const auto multiply = [&](int i, int j) {
                    if (is_last && number == kWaitAt - kFree) {
                        is_next_here = ptx::test_phase(barrier_, block & 1);
                    }
                    if (is_last && number == kWaitAt) {
                        read = next(read);
                        if (!is_next_here) ptx::wait_for_phase(barrier_, block & 1);
                    }
#pragma unroll
                    for (int load = 0; load < kLoads; ++load) {
                        if (load_at(is_last, load) == number) {
                            load_fragment(read, (step + 1) % S::kSteps, load);
                        }
                    }
#pragma unroll
                    for (int v = 0; v < kVectors; ++v) {
                        if (copy_at(v) == step * kMmas + number) copy(write, v);
                    }
                    if (step == kPassStep && number == kPassAt) {
                        ptx::commit_copies();
                        write = next(write);
                        pass_stage();
                    }
                    Mma::multiply(target[i][j], a_[step % 2][i], b_[step % 2][j / 2], j % 2);
                    ++number;
                };
#pragma unroll
                for (int touch = 0; touch < kTouches; ++touch) {
                    multiply(touch % kMmasM, touch % kPairsN * 2);
                }
                // The rest in serpentines: a row begins with the column the row before ended with.
#pragma unroll
                for (int i = 0; i < kMmasM; ++i) {
#pragma unroll
                    for (int column = 0; column < kMmasN; ++column) {
                        const int j = i % 2 == 0 ? column : kMmasN - 1 - column;
                        const bool touched = j % 2 == 0 && (kMmasM > kPairsN ? j / 2 == i % kPairsN
                                                                             : j / 2 % kMmasM == i);
                        if (!touched) multiply(i, j);
                    }
                }
            }
            if constexpr (Policy::kPromoted) {
                constexpr int kBlocks = kPromotedK / tile.block_k;
                if (block % kBlocks == kBlocks - 1 || block == blocks - 1) {
                    add(sums, part);
                    clear(part);
                }
            }
        }
        ptx::wait_for_copies<0>();  // shared memory is used again
    }

   private:
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
        const bool is_rest = block == whole_blocks_ && rest_k_ > 0;
        // A loop, to stay a branch: of an `if` the compiler makes predicated instructions, which
        // are in the way in every k-block.
#pragma unroll 1
        for (unsigned trips = ptx::opaque(is_rest ? 1 : 0); trips > 0; --trips) {
            load_a_.copy_part(ring_ + stage, rest_k_);
            load_b_.copy_part(ring_ + stage + S::TileA::kBytes, rest_k_);
        }
    }
    __device__ __forceinline__ void copy(int stage, int v) const {
        if (v < LoaderA::kVectors) {
            load_a_.copy(ring_ + stage, v);
        } else {
            load_b_.copy(ring_ + stage + S::TileA::kBytes, v - LoaderA::kVectors);
        }
    }
    // The thread's warp has read the oldest stage, and the thread's copies of the next one have
    // come. Who waits for the phase that ends when all threads have said so may read the next stage
    // and overwrite the oldest one. In between a warp multiplies: none waits at once for the
    // slowest one.
    __device__ __forceinline__ void pass_stage() const {
        ptx::wait_for_copies<kAhead - 1>();
        ptx::arrive(barrier_);
    }
    static __device__ __forceinline__ int next(int stage) {
        return stage == S::kRingBytes - S::kStageBytes ? 0 : stage + S::kStageBytes;
    }

    // The `load`-th fragment of a step, in the order in which they are touched.
    __device__ __forceinline__ void load_fragment(int stage, int step, int load) {
        const std::uint32_t a = ring_ + stage, b = a + S::TileA::kBytes;
        constexpr int kBoth =
            kMmasM < kPairsN ? kMmasM : kPairsN;  // in turns, as long as there are
        const bool is_a = load < 2 * kBoth ? load % 2 == 0 : kMmasM > kPairsN;
        const int i = load < 2 * kBoth ? load / 2 : load - kBoth;
        if (is_a) {
            fragments_a_.load(a, i, step, a_[step % 2][i]);
        } else {
            fragments_b_.load(b, i, step, b_[step % 2][i]);
        }
    }

    static __device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
        for (auto& row : sums) {
#pragma unroll
            for (auto& part : row) {
#pragma unroll
                for (auto& sum : part) sum = 0;
            }
        }
    }
    static __device__ __forceinline__ void add(Sums& sums, const Sums& part) {
#pragma unroll
        for (int i = 0; i < kMmasM; ++i) {
#pragma unroll
            for (int j = 0; j < kMmasN; ++j) {
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[i][j][e] += part[i][j][e];
            }
        }
    }

    std::uint32_t ring_, barrier_;
    LoaderA load_a_;
    LoaderB load_b_;
    int whole_blocks_, rest_k_;  // k-blocks, and the k behind them
    Fragments<Mma, typename S::TileA, Policy::a_major, true> fragments_a_;
    Fragments<Mma, typename S::TileB, Policy::b_major, false> fragments_b_;
    typename Mma::Fragment a_[2][kMmasM], b_[2][kPairsN];  // of two steps
};

}  // namespace tcgemm::sm80_mma
