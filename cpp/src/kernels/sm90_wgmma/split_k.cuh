// Adds the parts of a product whose K is split, within the launch and in a fixed order.
#pragma once

#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// The parts of a tile form groups; the last part of a group adds up the group, the last of all adds
// up the groups and goes on to the epilogue. Whoever waits does so for blocks that come before it
// in the grid, so that it can't keep them from being started. Partial sums lie as the threads hold
// them. A flag holds the launch's epoch while its partial sums are there; the reader clears it, so
// that a graph can launch the same epoch again.
template <class Policy>
class SplitSum {
    static constexpr int kSubtiles = Policy::kSubtiles, kSums = Policy::kBlockN / 2;
    static constexpr int kElements = Policy::kRows * Policy::kBlockN;  // of a warpgroup

   public:
    using Sums = float[kSubtiles][kSums];

    __device__ SplitSum(const KSplit& split, int consumer) : split_(split), consumer_(consumer) {}

    // True where `sums` became the whole sum, which is this warpgroup's to store.
    __device__ __forceinline__ bool run(const Work& work, Sums& sums) const {
        const int last = split_.count - 1;
        const int group_end = min(work.part / split_.group * split_.group + split_.group - 1, last);
        if (work.part == group_end) {
            for (int part = work.part / split_.group * split_.group; part < work.part; ++part) {
                add(work, part, sums);
            }
        }
        if (work.part < last) {
            publish(work, sums);
            return false;
        }
        for (int part = split_.group - 1; part < work.part; part += split_.group) {
            add(work, part, sums);
        }
        return true;
    }

   private:
    __device__ std::int64_t slot(const Work& work, int part) const {
        const int warpgroup = Policy::kPingPong ? 0 : consumer_;
        return (work.tile * split_.count + part) * Policy::kWarpgroupsPerTile + warpgroup;
    }
    __device__ void synchronize() const { ptx::named_barrier(1 + consumer_, kWarpgroup); }
    __device__ float4* partial(std::int64_t slot) const {
        return reinterpret_cast<float4*>(split_.partials + slot * kElements) +
               thread_in_warpgroup();
    }

    __device__ __forceinline__ void publish(const Work& work, const Sums& sums) const {
        const std::int64_t mine = slot(work, work.part);
        float4* const to = partial(mine);
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4) {
                __stcg(to + (s * kSums + i) / 4 * kWarpgroup,
                       make_float4(sums[s][i], sums[s][i + 1], sums[s][i + 2], sums[s][i + 3]));
            }
        }
        __threadfence();
        synchronize();
        if (threadIdx.x % kWarpgroup == 0) ptx::store_release(split_.flags + mine, split_.epoch);
    }

    __device__ __forceinline__ void add(const Work& work, int part, Sums& sums) const {
        const std::int64_t theirs = slot(work, part);
        if (threadIdx.x % kWarpgroup == 0) {
            while (ptx::load_acquire(split_.flags + theirs) != split_.epoch) {
            }
            split_.flags[theirs] = 0;
        }
        synchronize();
        const float4* const from = partial(theirs);
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4) {
                const float4 value = __ldcg(from + (s * kSums + i) / 4 * kWarpgroup);
                sums[s][i] += value.x;
                sums[s][i + 1] += value.y;
                sums[s][i + 2] += value.z;
                sums[s][i + 3] += value.w;
            }
        }
    }

    const KSplit& split_;
    int consumer_;
};

}  // namespace tcgemm::sm90_wgmma
