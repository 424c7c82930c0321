// From tiles of A and B in global memory to the sums of a warp: a ring of k-blocks in shared
// memory, filled by asynchronous copies while the tensor cores work on the oldest one.
#pragma once

#include "kernels/device/ptx/block.cuh"
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/mma.cuh"
#include "kernels/device/swizzled_tile.cuh"
#include "kernels/halves.hpp"
#include "kernels/sm80_mma/block_scales.cuh"
#include "kernels/sm80_mma/policy.hpp"

namespace tcgemm::sm80_mma {

namespace ptx = device::ptx;

template <class Policy>
struct Shape {
    static constexpr TileConfig tile = Policy::tile;
    using Mma = ptx::Mma<typename Policy::ElementA, typename Policy::ElementB,
                         typename Policy::Accumulator>;
    static constexpr int kItem = sizeof(typename Policy::ElementA);  // as many of B
    static constexpr int kWarpsM = tile.block_m / tile.warp_m;
    static constexpr int kWarpsN = tile.block_n / tile.warp_n;
    static constexpr int kWarps = kWarpsM * kWarpsN;
    static constexpr int kMmasM = tile.warp_m / Mma::kM, kMmasN = tile.warp_n / Mma::kN;
    static_assert(tile.threads == kWarps * 32 && tile.block_k % (2 * Mma::kK) == 0);
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

// What the steps of a k-block multiply: each an instruction's k of A by one of B, out of one of two
// sets of registers for either.
struct Step {
    int a, b;  // of the instructions that the tile's k is good for
    int set_a, set_b;
    bool loads;  // otherwise the sets hold what it takes
};

// One after the other.
template <class Shape, bool kHalves>
struct Steps {
    static constexpr int kCount = Shape::tile.block_k / Shape::Mma::kK;
    static constexpr Step at(int step) { return {step, step, step % 2, step % 2, true}; }
    static constexpr bool begins_sum(int step) { return step == 0; }  // where sums are promoted
    static constexpr bool begins_high(int) { return false; }
};
// Halves of kHalvesBlock k, the high ones first: of each 16 k low by high, high by low, high by
// high, each of which loads what the one before has not. The first two are brought to the unit of
// the third before that begins.
template <class Shape>
struct Steps<Shape, true> {
    static constexpr int kCount = 6, kLow = kHalvesBlock / Shape::Mma::kK;
    static constexpr Step at(int step) {
        const int high = step / 3, product = step % 3;
        return {product == 0 ? high + kLow : high, product == 1 ? high + kLow : high, product > 0,
                product == 1 ? 1 - high : high, product < 2};
    }
    static constexpr bool begins_sum(int step) { return step % 3 == 0; }
    static constexpr bool begins_high(int step) { return step % 3 == 2; }
};

template <class Policy>
class Mainloop {
    using S = Shape<Policy>;
    using Steps = sm80_mma::Steps<S, Policy::kHalves>;
    using Mma = typename S::Mma;
    using ElementA = typename Policy::ElementA;
    using ElementB = typename Policy::ElementB;
    static constexpr TileConfig tile = Policy::tile;
    static constexpr int kAhead = Policy::kStages - 1;  // k-blocks that copies are ahead
    static_assert(kAhead >= 2);
    static constexpr int kMmasM = S::kMmasM, kMmasN = S::kMmasN, kPairsN = kMmasN / 2;
    // Two sets of sums, or sums of FP64, leave few registers.
    static constexpr bool kAddressEach = !Policy::kPromoted && S::kItem < 8;
    template <class Tile, class Element, Major major>
    using Loader =
        device::AsyncTileLoader<Tile, Element, major == Major::mn, tile.threads, kAddressEach>;
    using LoaderA = Loader<typename S::TileA, ElementA, Policy::a_major>;
    using LoaderB = Loader<typename S::TileB, ElementB, Policy::b_major>;
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
    static constexpr int kPassStep = Steps::kCount - 2, kPassAt = kMmas - kFree;
    static constexpr int copy_at(int copy) {  // counted from the first step
        const int last = kPassStep * kMmas + kPassAt;
        return kTouches + copy / 2 * 2 * (last - kTouches) / kVectors;
    }

   public:
    using Sums = typename S::Sums;

    // Matrices start at the block's rows of A, columns of B and k, of which `k` are summed: up to
    // the end of `all_k`, which the kernel was given, or whole k-blocks. `ring` and `barrier`, at
    // which every thread arrives: addresses in shared memory.
    __device__ Mainloop(std::uint32_t ring, std::uint32_t barrier, const ElementA* a,
                        std::int64_t lda, const ElementB* b, std::int64_t ldb, int rows, int cols,
                        std::int64_t k, const std::int64_t& all_k, int warp_m, int warp_n)
        : ring_(ring),
          barrier_(barrier),
          load_a_(a, lda, rows),
          load_b_(b, ldb, cols),
          whole_blocks_(k > 0 ? static_cast<int>(k / tile.block_k) : 0),
          blocks_(k > 0 ? static_cast<int>((k + tile.block_k - 1) / tile.block_k) : 0),
          all_k_(all_k),
          fragments_a_(warp_m),
          fragments_b_(warp_n) {}

    // `scales`: BlockScales, or NoBlockScales.
    template <class Scales>
    __device__ __forceinline__ void run(Sums& sums, Scales scales) {
        if (blocks_ == 0) return;
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

        Sums part;  // where promoted: of the last k
        if constexpr (Policy::kPromoted) clear(part);
        Sums& target = Policy::kPromoted ? part : sums;
#pragma unroll 1
        for (int block = 0; block < blocks_; ++block) {
            begin_copies(write, block + kAhead);
            bool is_next_here = false;
#pragma unroll
            for (int step = 0; step < Steps::kCount; ++step) {
                const bool is_last = step == Steps::kCount - 1;
                const Step its = Steps::at(step);
                if constexpr (Policy::kBlockScales) {
                    if (step == 1) scales.load(block);
                }
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
                            load_fragment(read, (step + 1) % Steps::kCount, load);
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
                    const auto& a = a_[its.set_a][i];
                    const auto& b = b_[its.set_b][j / 2];
                    if constexpr (Policy::kPromoted) {
                        if (Steps::begins_high(step)) scale(part[i][j]);
                        if (Steps::begins_sum(step)) promote(sums, part, i, j, scales);
                    }
                    Mma::multiply(target[i][j], a, b, j % 2);
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
        }
        if constexpr (Policy::kPromoted) {
#pragma unroll
            for (int i = 0; i < kMmasM; ++i) {
#pragma unroll
                for (int j = 0; j < kMmasN; ++j) promote(sums, part, i, j, scales);
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
        const bool is_rest = block == whole_blocks_ && block < blocks_;
        // A loop, to stay a branch: of an `if` the compiler makes predicated instructions, which
        // are in the way in every k-block.
#pragma unroll 1
        for (unsigned trips = ptx::opaque(is_rest ? 1 : 0); trips > 0; --trips) {
            const int rest_k = static_cast<int>(all_k_ % tile.block_k);
            load_a_.copy_part(ring_ + stage, rest_k);
            load_b_.copy_part(ring_ + stage + S::TileA::kBytes, rest_k);
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
        const Step its = Steps::at(step);
        if (!its.loads) return;
        if (is_a) {
            fragments_a_.load(a, i, its.a, a_[its.set_a][i]);
        } else {
            fragments_b_.load(b, i, its.b, b_[its.set_b][i]);
        }
    }

    using Sum = typename Mma::Sums;
    // Between the multiplications that end a partial sum and those that begin the next, for each
    // instruction's sums by themselves: the tensor cores go on with the others.
    template <class Scales>
    static __device__ __forceinline__ void promote(Sums& sums, Sums& parts, int i, int j,
                                                   const Scales& scales) {
        Sum &sum = sums[i][j], &part = parts[i][j];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if constexpr (Policy::kBlockScales) {
                sum[e] = fmaf(part[e], scales.factor(i, j, e), sum[e]);
            } else {
                sum[e] += part[e];
            }
            part[e] = 0;
        }
    }
    // From the unit of the low halves to that of the high ones.
    static __device__ __forceinline__ void scale(Sum& part) {
#pragma unroll
        for (int e = 0; e < 4; ++e) part[e] *= 1.0f / (1 << halves::kLowBits);
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

    std::uint32_t ring_, barrier_;
    LoaderA load_a_;
    LoaderB load_b_;
    int whole_blocks_, blocks_;  // k-blocks, without and with the one in which K ends
    const std::int64_t& all_k_;  // where it needs no register
    Fragments<Mma, typename S::TileA, Policy::a_major, true> fragments_a_;
    Fragments<Mma, typename S::TileB, Policy::b_major, false> fragments_b_;
    typename Mma::Fragment a_[2][kMmasM], b_[2][kPairsN];  // of two steps
};

}  // namespace tcgemm::sm80_mma
