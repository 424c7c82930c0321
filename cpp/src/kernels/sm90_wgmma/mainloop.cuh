// The two roles of the main loop: one thread keeps the ring of stages full, warpgroups multiply.
#pragma once

#include "kernels/device/ptx/tma.cuh"
#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// Bytes from 64 rows (m or n) of an operand's tile to the next 64, in both major orders.
inline constexpr int kSlabBytes = 64 * kBlockK * 2;

template <class Policy>
class Producer {
   public:
    __device__ Producer(const Params& params, SharedMemory<Policy> shared)
        : params_(params), shared_(shared) {}

    __device__ void run() {
        const BoxPlan& load_a = params_.load_a;
        const BoxPlan& load_b = params_.load_b;
        const int stage_bytes = load_a.boxes * load_a.bytes + load_b.boxes * load_b.bytes;
        const int rank = params_.cluster > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
        const int share = load_b.boxes / params_.cluster;  // of B, that this block loads for all

        WorkList<Policy> list(params_);
        while (list.has_next()) {
            const Work work = list.next();
            for (int block = 0; block < work.blocks; ++block, at_.advance()) {
                const int k = (work.first_block + block) * kBlockK;
                const std::uint32_t full = shared_.full(at_.stage);
                ptx::wait_for_phase(shared_.empty(at_.stage), at_.parity ^ 1);
                ptx::arrive_and_expect_bytes(full, stage_bytes);
                load<Policy::a_major>(params_.a, load_a, work, shared_.a(at_.stage), full, k,
                                      work.m, 0, load_a.boxes, false);
                load<Policy::b_major>(params_.b, load_b, work, shared_.b(at_.stage), full, k,
                                      work.n, rank * share, rank * share + share,
                                      params_.cluster > 1);
            }
        }
        // A block may not end while others of its cluster still write to it or arrive at its
        // barriers.
        if (params_.cluster > 1) {
            for (int i = 0; i < Policy::kStages; ++i, at_.advance()) {
                ptx::wait_for_phase(shared_.empty(at_.stage), at_.parity ^ 1);
            }
        }
    }

   private:
    template <Major kMajor>
    __device__ static void load(const CUtensorMap& map, const BoxPlan& plan, const Work& work,
                                std::uint32_t tile, std::uint32_t full, int k, int mn,
                                int first_box, int end_box, bool multicast) {
        ptx::TensorCoordinates at;
#pragma unroll
        for (int dim = 0; dim < kBatchDims; ++dim) {
            at.batch[dim] = work.coordinate(dim, plan.batch_mask);
        }
        for (int box = first_box; box < end_box; ++box) {
            const int along_mn = mn + box * plan.extent;
            at.inner = kMajor == Major::k ? k : along_mn;
            at.outer = kMajor == Major::k ? along_mn : k;
            const std::uint32_t target = tile + box * plan.bytes;
            if (multicast) {
                constexpr std::uint16_t kBoth = 0b11;
                ptx::load_tensor_multicast(target, &map, at, full, kBoth);
            } else {
                ptx::load_tensor(target, &map, at, full);
            }
        }
    }

    const Params& params_;
    SharedMemory<Policy> shared_;
    RingPosition<Policy::kStages> at_;
};

template <class Policy>
class Multiplier {
    using Mma = ptx::Wgmma<typename Policy::Element, typename Policy::Accumulator, Policy::kBlockN,
                           Policy::a_major == Major::mn, Policy::b_major == Major::mn>;
    static constexpr bool kHalf = sizeof(typename Policy::Accumulator) == 2;
    using Register = std::conditional_t<kHalf, std::uint32_t, float>;
    static constexpr int kSubtiles = Policy::kSubtiles;

   public:
    // What a thread holds of the warpgroup's rows of a tile; see Wgmma for the places.
    using Sums = float[kSubtiles][Policy::kBlockN / 2];

    // `row`: the warpgroup's first, within the tile.
    __device__ Multiplier(const Params& params, SharedMemory<Policy> shared, int group, int row)
        : cluster_(params.cluster), shared_(shared), group_(group), first_slab_(row / kMmaM) {}

    __device__ void skip(int blocks) { at_.skip(blocks); }

    // sums = A B over `blocks` k-blocks.
    __device__ __forceinline__ void run(int blocks, Sums& sums) {
        if constexpr (Policy::kPromoted) {
            constexpr int kBlocksPerSum = 128 / kBlockK;
            Register partial[kSubtiles][Mma::kRegisters];
            clear(partial);
            clear(sums);
            for (int done = 0; done < blocks; done += kBlocksPerSum) {
                multiply(min(kBlocksPerSum, blocks - done), partial);
#pragma unroll
                for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
                    for (int i = 0; i < Mma::kRegisters; ++i) sums[s][i] += partial[s][i];
                }
            }
        } else if constexpr (kHalf) {
            Register packed[kSubtiles][Mma::kRegisters];
            clear(packed);
            multiply(blocks, packed);
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
            multiply(blocks, sums);
        }
    }

   private:
    // Also where nothing reads the zeros: the compiler would carry the undefined values of
    // registers from tile to tile, in more registers.
    template <class T, int N>
    __device__ static void clear(T (&value)[kSubtiles][N]) {
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < N; ++i) value[s][i] = 0;
        }
    }

    // acc = A B; left alone where there are no blocks. One group of wgmma is at work while the next
    // is issued; its stage is released one k-block later.
    __device__ __forceinline__ void multiply(int blocks,
                                             Register (&acc)[kSubtiles][Mma::kRegisters]) {
        if (blocks == 0) return;
        wait_for_turn();
        int previous = at_.stage;
        for (int block = 0; block < blocks; ++block) {
            ptx::wait_for_phase(shared_.full(at_.stage), at_.parity);
            ptx::wgmma_fence();
            multiply_stage(block > 0, acc);
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            if (block > 0) release(previous);
            previous = at_.stage;
            at_.advance();
        }
        pass_turn();
        ptx::wgmma_wait<0>();
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) ptx::fence_registers(acc[s]);
        release(previous);
    }

    __device__ __forceinline__ void multiply_stage(bool accumulate,
                                                   Register (&acc)[kSubtiles][Mma::kRegisters]) {
        constexpr int kStepK = kMmaK * 2, kStepMn = kMmaK * 128;  // bytes of 16 k
        constexpr int kStepA = Policy::a_major == Major::k ? kStepK : kStepMn;
        constexpr int kStepB = Policy::b_major == Major::k ? kStepK : kStepMn;
        const std::uint64_t a =
            ptx::matrix_descriptor(shared_.a(at_.stage) + first_slab_ * kSlabBytes, kSlabBytes);
        const std::uint64_t b = ptx::matrix_descriptor(shared_.b(at_.stage), kSlabBytes);
#pragma unroll
        for (int step = 0; step < kBlockK / kMmaK; ++step) {
#pragma unroll
            for (int s = 0; s < kSubtiles; ++s) {
                Mma::run(acc[s], a + (s * kSlabBytes + step * kStepA) / 16, b + step * kStepB / 16,
                         accumulate || step > 0);
            }
        }
    }

    // Groups go through the ring one after the other. The parity of a stage's barrier can't tell a
    // phase from the one after the next, so that a group must not wait for it too early; besides,
    // the tensor cores finish one tile before they begin the next. The first turn is group 0's.
    __device__ void wait_for_turn() {
        if constexpr (Policy::kPingPong) {
            ptx::wait_for_phase(shared_.turn(group_), (turns_ & 1) ^ (group_ == 0));
            ++turns_;
        }
    }
    // As soon as all of the tile's wgmma are issued: what waits behind them may follow.
    __device__ void pass_turn() {
        if constexpr (Policy::kPingPong) {
            if (threadIdx.x % 32 == 0) {
                ptx::arrive(shared_.turn(group_ ^ 1));
            }
        }
    }

    // A warp at a time: the others may still read.
    __device__ void release(int stage) {
        const int lane = threadIdx.x % 32;
        if (lane < cluster_) ptx::arrive_in_cluster(shared_.empty(stage), lane);
    }

    int cluster_;
    SharedMemory<Policy> shared_;
    int group_, first_slab_;
    int turns_ = 0;
    RingPosition<Policy::kStages> at_;
};

}  // namespace tcgemm::sm90_wgmma
