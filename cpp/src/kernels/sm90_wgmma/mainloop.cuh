// The main loop: a warpgroup multiplies the stages that are full, and releases them.
#pragma once

#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/halves.hpp"
#include "kernels/sm90_wgmma/fragments.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"
#include "kernels/sm90_wgmma/scales.cuh"
#include "kernels/sm90_wgmma/turns.cuh"

namespace tcgemm::sm90_wgmma {

// Bytes from 64 rows (m or n) of an operand's tile to the next 64, in both major orders.
inline constexpr int kSlabBytes = 64 * kRowBytes;

template <class Policy>
class Multiplier {
    template <int kWidth>
    using OneMma =
        std::conditional_t<Policy::kAInRegisters,
                           ptx::WgmmaOfRegisters<typename Policy::ElementA, kWidth>,
                           ptx::Wgmma<typename Policy::ElementA, typename Policy::ElementB,
                                      typename Policy::Accumulator, kWidth,
                                      Policy::a_major == Major::mn, Policy::b_major == Major::mn>>;
    // The compiler refuses an instruction for which a thread has not the registers from the start.
    static constexpr bool takes(int width) { return width / 2 + 32 <= Policy::kStartRegisters; }
    template <int kWidth>
    using MmaOf =
        std::conditional_t<takes(kWidth), OneMma<kWidth>,
                           ptx::WgmmaPair<OneMma<128>, OneMma<kWidth - 128>, 2 * kSlabBytes>>;
    using Mma = MmaOf<Policy::kBlockN>;
    static constexpr bool kHalf = sizeof(typename Policy::Accumulator) == 2;
    using Register = std::conditional_t<kHalf, std::uint32_t, typename Policy::Sum>;
    static constexpr int kSubtiles = Policy::kSubtiles;
    static constexpr int kBlocksPerSum = kPromotedK / Policy::kBlockK;
    static constexpr int kSteps = kRowBytes / kMmaKBytes;  // of a k-block

   public:
    using Sums = typename Policy::Sums;

    // `row`: the warpgroup's first, within the tile.
    __device__ Multiplier(const Params& params, SharedMemory<Policy> shared, int consumer, int row)
        : shared_(shared),
          a_(shared.a(0) + row / kMmaM * kSlabBytes, kSlabBytes),
          b_(shared.b(0), kSlabBytes),
          turns_(shared, consumer),
          width_(params.width) {
        const int lane = threadIdx.x % 32;
        const bool releases = lane < 1 << params.cluster_log2;
        const bool shares = params.cluster_log2 > 0 && releases;
        is_others_ = shares && lane != static_cast<int>(ptx::cluster_rank());
        empty_ = ptx::opaque(
            releases ? ptx::address_in_cluster(shared.empty(0), shares ? lane : ptx::cluster_rank())
                     : 0);
    }

    __device__ void skip(int blocks) {
        at_.skip((blocks + Policy::kBlocksPerStage - 1) / Policy::kBlocksPerStage, shared_);
    }

    // sums = A B over `blocks` k-blocks. `scales`: BlockScales, of a product that has such.
    template <class... Scales>
    __device__ __forceinline__ void run(int blocks, Sums& sums, Scales... scales) {
        if constexpr (Policy::kHalves) {
            multiply_halves(blocks, sums);
        } else if constexpr (Policy::kPromoted) {
            clear(sums);
            constexpr int kWidest = widest(Policy::kBlockN, sizeof...(Scales) > 0);
            multiply_promoted<kWidest>(blocks, sums, scales...);
        } else if constexpr (kHalf) {
            Register packed[kSubtiles][Mma::kRegisters];
            clear(packed);
            if (blocks > 0) multiply(blocks, packed);
#pragma unroll
            for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
                for (int i = 0; i < Mma::kRegisters; ++i) {
                    const __half2 pair = reinterpret_cast<const __half2&>(packed[s][i]);
                    sums[s][2 * i] = __low2float(pair);
                    sums[s][2 * i + 1] = __high2float(pair);
                }
            }
        } else {
            clear(sums);
            if (Policy::kScales) ptx::fence_registers(sums);  // or each wgmma waits for the last
            if (blocks > 0) multiply(blocks, sums);
        }
    }

    // The same of promoted sums in two steps: begin() sets the tensor cores to work, finish()
    // waits; or wgmma_await_all(), where no tile exists: behind a branch wgmma would not be
    // asynchronous.
    template <int kWidth>
    using Partial = Register[kSubtiles][MmaOf<kWidth>::kRegisters];
    template <int kWidth>
    __device__ __forceinline__ void begin(Partial<kWidth>& partial, bool exists) {
        begin_stage<MmaOf<kWidth>, true>(next_tiles(), partial, false, exists);
    }
    template <int kWidth, class... Scales>
    __device__ __forceinline__ void finish(int blocks, Partial<kWidth>& partial, Sums& sums,
                                           Scales... scales) {
        clear(sums);
        const int stage = at_.stage;
        at_.advance(shared_);
        (scales.load(stage), ...);
        (scales.combine(), ...);
        end_stage(stage, partial, sums, scales...);
        if (blocks > 1) multiply_and_add<MmaOf<kWidth>, true>(blocks - 1, sums, scales...);
    }

   private:
    struct Tiles {
        ptx::MatrixDescriptor a, b;
    };

    // Also where nothing reads the zeros: undefined values would be carried from tile to tile.
    template <class T, int N>
    __device__ __forceinline__ static void clear(T (&value)[kSubtiles][N]) {
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < N; ++i) value[s][i] = 0;
        }
    }

    // acc = A B, of one block at least. As wide as the tile's columns need.
    template <int kWidth = Policy::kBlockN>
    __device__ __forceinline__ void multiply(int blocks,
                                             Register (&acc)[kSubtiles][Mma::kRegisters]) {
        if constexpr (kWidth > Policy::kLeastN) {
            constexpr int kNarrower = Policy::narrower(kWidth);
            if (width_ <= kNarrower) return multiply<kNarrower>(blocks, acc);
        }
        if constexpr (Policy::kAInRegisters) {
            turns_.wait();
            multiply_fragments<MmaOf<kWidth>>(
                shared_, at_, b_, blocks, acc, [&] { turns_.pass(); },
                [&](int stage) { release_read(stage); });
        } else {
            multiply_stages<MmaOf<kWidth>>(blocks, acc);
        }
    }

    // sums += A B, if there are blocks, in partial sums of 128 k, each multiplied by `scales`.
    template <int kWidth, class... Scales>
    __device__ __forceinline__ void multiply_promoted(int blocks, Sums& sums, Scales&... scales) {
        constexpr bool kScaled = sizeof...(Scales) > 0;
        constexpr int kNarrower = Policy::narrower(kWidth, kScaled);
        if constexpr (kNarrower >= Policy::kLeastN) {
            if (width_ <= kNarrower) return multiply_promoted<kNarrower>(blocks, sums, scales...);
        }
        using MmaOfWidth = MmaOf<kWidth>;
        static_assert(kBlocksPerSum == 1 || kBlocksPerSum == 2);
        if constexpr (kBlocksPerSum == 2) {
            multiply_by_twos<MmaOfWidth, false>(blocks, sums);
        } else if constexpr (2 * kWidth <= Policy::kBlockN && !kScaled) {
            multiply_by_twos<MmaOfWidth, true>(blocks, sums);
        } else if (blocks > 0) {
            multiply_and_add<MmaOfWidth>(blocks, sums, scales...);
        }
    }

    // The same of k-blocks that are a stage and a sum each, one after the other. The loop begins
    // behind the issue of wgmma: what need not wait for their sums is done while they are at work.
    // A loop that begins with the wait for a stage has a `yield` there, which takes 50 cycles.
    template <class MmaOfWidth, bool kInTurns = false, class... Scales>
    __device__ __forceinline__ void multiply_and_add(int blocks, Sums& sums, Scales&... scales) {
        Register partial[kSubtiles][MmaOfWidth::kRegisters];
        clear(partial);
        begin_stage<MmaOfWidth, kInTurns>(next_tiles(), partial);
        (scales.load(at_.stage), ...);
        while (true) {
            const int stage = at_.stage;
            at_.advance(shared_);
            const Tiles next = next_tiles();
            (scales.combine(), ...);
            end_stage(stage, partial, sums, scales...);
            if (--blocks == 0) break;
            begin_stage<MmaOfWidth, kInTurns>(next, partial);
            (scales.load(at_.stage), ...);
        }
        // Without an instruction of its own here, the sums of columns that the instructions do not
        // have would be set to 0 in the loop, each time.
        __syncwarp();
    }

    // The same of two k-blocks at a time, which make a sum together. Or, kTurns, of a tile so
    // narrow that there are registers for a sum of each: the tensor cores work on the second while
    // the first is promoted.
    template <class MmaOfWidth, bool kTurns>
    __device__ __forceinline__ void multiply_by_twos(int blocks, Sums& sums) {
        Register partial[kTurns ? 2 : 1][kSubtiles][MmaOfWidth::kRegisters];
        auto &first = partial[0], &second = partial[kTurns];
        clear(first);
        clear(second);
        RingPosition older = at_;
        const auto begin = [&](const Tiles& tiles, auto& its, bool accumulate) {
            begin_stage<MmaOfWidth>(tiles, its, accumulate);
            at_.advance(shared_);
        };
        const auto end = [&](auto& its, bool promotes) {
            if (promotes) promote(its, sums);
            release(older.stage);
            older.advance(shared_);
        };
        const bool is_odd = blocks % 2 != 0;
        if (blocks > 1) {
            begin(next_tiles(), first, false);
            begin(next_tiles(), second, !kTurns);
            while (true) {
                const Tiles next = next_tiles();
                ptx::wgmma_wait<1>();
                end(first, kTurns);
                ptx::wgmma_wait<0>();
                end(second, true);
                blocks -= 2;
                if (blocks < 2) break;
                begin(next, first, false);
                begin(next_tiles(), second, !kTurns);
            }
            __syncwarp();  // as above
        }
        if (is_odd) {
            begin(next_tiles(), first, false);
            ptx::wgmma_wait<0>();
            end(first, true);
        }
    }

    // Sets the tensor cores to work on the next stage, if there is one.
    template <class MmaOfWidth, bool kInTurns = false, int kSize>
    __device__ __forceinline__ void begin_stage(const Tiles& tiles,
                                                Register (&acc)[kSubtiles][kSize],
                                                bool accumulate = false, bool exists = true) {
        if (kInTurns) turns_.wait();
        if (exists) ptx::wait_for_phase(shared_.full(at_.stage), at_.parity);
        ptx::wgmma_fence();
#pragma unroll
        for (int block = 0; block < Policy::kBlocksPerStage; ++block) {
            multiply_block<MmaOfWidth, 0, kSteps>(tiles, block, block, accumulate || block > 0,
                                                  acc);
        }
        ptx::wgmma_commit();
        if (kInTurns) turns_.pass();
    }

    // The sums of `stage`, on which they work, to those of the tile.
    template <int kSize, class... Scales>
    __device__ __forceinline__ void end_stage(int stage, Register (&partial)[kSubtiles][kSize],
                                              Sums& sums, Scales&... scales) {
        if constexpr (sizeof...(Scales) > 0) {
            ptx::wgmma_await_all(partial);
            constexpr bool kReadsOn = (... || Scales::kReadsOn);
            if (!kReadsOn) release_read(stage);
            (scales.add(sums, partial), ...);
            if (kReadsOn) release_read(stage);
        } else {
            ptx::wgmma_wait<0>();
            release(stage);
            promote(partial, sums);
        }
    }

    // A stage's wgmma are at work while those of the next are issued; then it is released. Begins
    // as above, but for the smallest tiles: they have few stages, and code that runs once is late.
    template <class MmaOfWidth, int kSize>
    __device__ __forceinline__ void multiply_stages(int blocks, Register (&acc)[kSubtiles][kSize]) {
        turns_.wait();
        int older = -1;
        if constexpr (Policy::kBlockN <= 64) {
            for (int done = 0; done < blocks; done += Policy::kBlocksPerStage) {
                begin_stage<MmaOfWidth>(next_tiles(), acc, done > 0);
                ptx::wgmma_wait<1>();
                if (done > 0) release(older);
                older = at_.stage;
                at_.advance(shared_);
            }
            turns_.pass();
        } else {
            begin_stage<MmaOfWidth>(next_tiles(), acc, Policy::kScales);
            while (true) {
                const bool is_last = (blocks -= Policy::kBlocksPerStage) <= 0;
                if (is_last) turns_.pass();
                const int newer = at_.stage;
                at_.advance(shared_);
                const Tiles tiles = next_tiles();
                ptx::wgmma_wait<1>();
                if (older >= 0) release(older);
                older = newer;
                if (is_last) break;
                begin_stage<MmaOfWidth>(tiles, acc, true);
            }
        }
        ptx::wgmma_await_all(acc);
        release(older);
    }

    // sums = A B out of stages of both halves: high by high in two sums of 32 k, for what the
    // tensor cores cut off a sum grows with its length, then both with the low ones. While the
    // first is promoted they work on the others, and at the end of a stage on the other consumer's:
    // the two issue in turns, so that they don't end together.
    __device__ __forceinline__ void multiply_halves(int blocks, Sums& sums) {
        constexpr int kHigh = 0, kLow = 1, kHalfBlock = kSteps / 2;
        constexpr float kLowUnit = 1.0f / (1 << halves::kLowBits);
        Register first[kSubtiles][Mma::kRegisters], second[kSubtiles][Mma::kRegisters];
        clear(first);
        clear(second);
        clear(sums);
        for (int done = 0; done < blocks; done += Policy::kBlocksPerStage) {
            const Tiles tiles = next_tiles<false>();  // shuffles in front of the wait do not pay
            ptx::wait_for_phase(shared_.full(at_.stage), at_.parity);
            turns_.wait();
            ptx::wgmma_fence();
            multiply_block<Mma, 0, kHalfBlock>(tiles, kHigh, kHigh, false, first);
            ptx::wgmma_commit();
            multiply_block<Mma, kHalfBlock, kSteps>(tiles, kHigh, kHigh, false, second);
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            promote(first, sums);
            ptx::wgmma_fence();
            multiply_block<Mma, 0, kSteps>(tiles, kHigh, kLow, false, first);
            multiply_block<Mma, 0, kSteps>(tiles, kLow, kHigh, true, first);
            ptx::wgmma_commit();
            turns_.pass();
            ptx::wgmma_wait<0>();
            release(at_.stage);
            at_.advance(shared_);
            // Together: one rounding less of the sums.
#pragma unroll
            for (int s = 0; s < kSubtiles; ++s) {
                ptx::fence_registers(first[s]);
                ptx::fence_registers(second[s]);
#pragma unroll
                for (int i = 0; i < Mma::kRegisters; ++i) {
                    second[s][i] = fmaf(first[s][i], kLowUnit, second[s][i]);
                }
            }
            promote(second, sums);
        }
    }

    // To the sums of the first columns, which the instructions have.
    template <int kSize>
    __device__ __forceinline__ static void promote(Register (&partial)[kSubtiles][kSize],
                                                   Sums& sums) {
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
            ptx::fence_registers(partial[s]);
#pragma unroll
            for (int i = 0; i < kSize; ++i) sums[s][i] += partial[s][i];
        }
    }

    // The first k-blocks of the next stage; kUniform: in uniform registers, by shuffles.
    template <bool kUniform = true>
    __device__ __forceinline__ Tiles next_tiles() const {
        const int stage = at_.stage * shared_.stage_bytes();
        const Tiles tiles = {a_.further(stage), b_.further(stage)};
        return kUniform ? Tiles{tiles.a.uniform(), tiles.b.uniform()} : tiles;
    }

    // Steps kFirst to kEnd of k-block `a` of A's stage by k-block `b` of B's.
    template <class MmaOfWidth, int kFirst, int kEnd, int kSize>
    __device__ __forceinline__ void multiply_block(const Tiles& tiles, int a, int b,
                                                   bool accumulate,
                                                   Register (&acc)[kSubtiles][kSize]) {
        constexpr int kStepK = kMmaKBytes, kStepMn = kMmaK * kRowBytes;
        constexpr int kStepA = Policy::a_major == Major::k ? kStepK : kStepMn;
        constexpr int kStepB = Policy::b_major == Major::k ? kStepK : kStepMn;
#pragma unroll
        for (int step = kFirst; step < kEnd; ++step) {
#pragma unroll
            for (int s = 0; s < kSubtiles; ++s) {
                MmaOfWidth::run(
                    acc[s], tiles.a.at(a * shared_.bytes_a() + s * kSlabBytes + step * kStepA),
                    tiles.b.at(b * shared_.bytes_b() + step * kStepB), accumulate || step > kFirst);
            }
        }
    }

    // A warp at a time: the others may still read. In each block of the cluster, by a lane each.
    __device__ __forceinline__ void release(int stage) const {
        if (empty_ != 0) ptx::arrive_in_cluster(empty_ + stage * 8);
    }
    // Of which the lanes have read scales or A: each arrives for itself, one in the other block.
    __device__ __forceinline__ void release_read(int stage) const {
        ptx::arrive(shared_.empty(stage));
        if (is_others_) ptx::arrive_in_cluster(empty_ + stage * 8);
    }

    SharedMemory<Policy> shared_;
    ptx::MatrixDescriptor a_, b_;  // of stage 0
    Turns<Policy> turns_;
    const int& width_;
    std::uint32_t empty_;  // of stage 0, in the block that this lane releases stages of; 0: none
    bool is_others_;       // it is the cluster's other one
    RingPosition at_;
};

}  // namespace tcgemm::sm90_wgmma
