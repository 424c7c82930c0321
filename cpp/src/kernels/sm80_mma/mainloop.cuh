// From the ring of k-blocks in shared memory to the sums of a warp.
#pragma once

#include "kernels/halves.hpp"
#include "kernels/sm80_mma/block_scales.cuh"
#include "kernels/sm80_mma/pipeline.cuh"

namespace tcgemm::sm80_mma {

// A warp's part of a k-block of A (or of B): where it lies, and how it comes into registers.
template <class Mma, class Tile, Major major, bool kIsA>
class Fragments {
   public:
    // `mn`: the warp's first row of A or column of B within the block's tile.
    __device__ explicit Fragments(int mn) {
        // Lane i gives the address of row i % 8 of matrix i / 8; the order of the four matrices is
        // that of the registers of A (m, m + 8, then both at k + 8), or of two columns of B.
        const int lane = threadIdx.x % 32, row = lane % 8, outer = lane / 16, inner = lane / 8 % 2;
        const int mn8 = kIsA ? inner : outer, k8 = kIsA ? outer : inner;
        offset_ = ptx::opaque(major == Major::k ? Tile::offset(mn + mn8 * 8 + row, k8)
                                                : Tile::offset(k8 * 8 + row, mn / 8 + mn8));
    }

    // 16 rows (columns), the i-th of the warp, of the k-block's `step`-th instruction.
    __device__ __forceinline__ void load(std::uint32_t tile, int i, int step,
                                         typename Mma::Fragment& fragment) const {
        const std::uint32_t base = tile + offset_;
        if constexpr (major == Major::k) {
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
    // Copies are a ring less one stage ahead: the stage that is left is being read.
    static constexpr int kAhead = Policy::kStages - 1;
    static_assert(Policy::tile.block_k % (2 * Mma::kK) == 0);
    static constexpr int kMmasM = S::kMmasM, kMmasN = S::kMmasN, kPairsN = kMmasN / 2;

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
        return kTouches + copy / 2 * 2 * (last - kTouches) / Ring::kVectors;
    }

   public:
    using Sums = typename S::Sums;

    // Two sets of sums leave few registers.
    using Ring = CopyRing<Policy, kAhead, !Policy::kPromoted>;

    // The warp's part of the tile begins at row `warp_m`, column `warp_n`.
    __device__ Mainloop(const Ring& ring, int warp_m, int warp_n, int /*warp_k: one*/)
        : ring_(ring), fragments_a_(warp_m), fragments_b_(warp_n) {}

    // `scales`: BlockScales, or NoBlockScales.
    template <class Scales>
    __device__ __forceinline__ void run(Sums& sums, Scales scales) {
        const int blocks = ring_.blocks();
        if (blocks == 0) return;
        ring_.fill();
        int read = 0, write = Ring::kFirstWrite;
#pragma unroll
        for (int load = 0; load < kLoads; ++load) load_fragment(read, 0, load);

        Sums part;  // where promoted: of the last k
        if constexpr (Policy::kPromoted) clear(part);
        Sums& target = Policy::kPromoted ? part : sums;
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            ring_.begin_copies(write, block + kAhead);
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
                        is_next_here = ring_.is_passed(block);
                    }
                    if (is_last && number == kWaitAt) {
                        read = Ring::next(read);
                        if (!is_next_here) ring_.wait_until_passed(block);
                    }
#pragma unroll
                    for (int load = 0; load < kLoads; ++load) {
                        if (load_at(is_last, load) == number) {
                            load_fragment(read, (step + 1) % Steps::kCount, load);
                        }
                    }
#pragma unroll
                    for (int v = 0; v < Ring::kVectors; ++v) {
                        if (copy_at(v) == step * kMmas + number) ring_.copy(write, v);
                    }
                    if (step == kPassStep && number == kPassAt) {
                        ring_.pass_stage();
                        write = Ring::next(write);
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
    // The `load`-th fragment of a step, in the order in which they are touched.
    __device__ __forceinline__ void load_fragment(int stage, int step, int load) {
        constexpr int kBoth =
            kMmasM < kPairsN ? kMmasM : kPairsN;  // in turns, as long as there are
        const bool is_a = load < 2 * kBoth ? load % 2 == 0 : kMmasM > kPairsN;
        const int i = load < 2 * kBoth ? load / 2 : load - kBoth;
        const Step its = Steps::at(step);
        if (!its.loads) return;
        if (is_a) {
            fragments_a_.load(ring_.a(stage), i, its.a, a_[its.set_a][i]);
        } else {
            fragments_b_.load(ring_.b(stage), i, its.b, b_[its.set_b][i]);
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

    Ring ring_;
    Fragments<Mma, typename S::TileA, Policy::a_major, true> fragments_a_;
    Fragments<Mma, typename S::TileB, Policy::b_major, false> fragments_b_;
    typename Mma::Fragment a_[2][kMmasM], b_[2][kPairsN];  // of two steps
};

}  // namespace tcgemm::sm80_mma
