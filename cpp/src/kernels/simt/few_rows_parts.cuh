// The parts of K of a product of few rows, added up within its launch: every block leaves its sums
// in the workspace, and the block of a tile's last part adds up those of all, in their order.
#pragma once

#include "kernels/device/ptx/flag.cuh"
#include "kernels/split_k/epoch.hpp"
#include "kernels/split_k/split_k.hpp"

namespace tcgemm::simt {

// The blocks of earlier parts have lower indices, so that they run already, or have run, where the
// last one waits for them. Flags are cleared behind that: a graph can launch the same epoch again.
// kSums: of a tile.
template <class Acc, int kSums, int kThreads>
class PartsOfK {
    // So many threads add up the same sum, each some of the parts.
    static constexpr int kTeams = kSums < kThreads ? kThreads / kSums : 1;

   public:
    // `tiles` have a slot for each part, all first parts before the second ones; `slot`: the
    // block's own.
    __device__ PartsOfK(void* workspace, const KRange& split, std::int64_t tiles, std::int64_t slot)
        : flags_(static_cast<std::uint64_t*>(workspace)),
          sums_(reinterpret_cast<Acc*>(static_cast<char*>(workspace) +
                                       flag_bytes(tiles * split.split_k))),
          split_(split),
          tiles_(tiles),
          slot_(slot) {}

    // sums[0]: the block's, where thread i % kThreads has element i. Whether the block has the last
    // part; sums[0] then becomes the tile's.
    template <int kRows>
    __device__ __forceinline__ bool add_up(int part, Acc (&sums)[kRows][kSums]) const {
        static_assert(kRows >= kTeams);
        const int thread = threadIdx.x, last = split_.split_k - 1;
#pragma unroll 1
        for (int i = thread; i < kSums; i += kThreads) {
            __stcg(&sums_[slot_ * kSums + i], sums[0][i]);
        }
        __syncthreads();
        if (part != last) {  // publishes what all threads wrote before the barrier
            if (thread == 0) device::ptx::store_release(flags_ + slot_, split_.epoch);
            return false;
        }
        const std::int64_t first = slot_ - part * tiles_;  // the tile's first part
#pragma unroll 1
        for (int p = thread; p < last; p += kThreads) {
            std::uint64_t* const flag = flags_ + first + p * tiles_;
            while (device::ptx::load_acquire(flag) != split_.epoch) __nanosleep(20);
            *flag = 0;
        }
        __syncthreads();
        const int team = kTeams > 1 ? thread / kSums : 0;
        const int parts = (split_.split_k + kTeams - 1) / kTeams, begin = team * parts;
        const Acc* const from = sums_ + (first + begin * tiles_) * kSums;
#pragma unroll 1
        for (int i = thread - team * kSums; i < kSums; i += kThreads) {
            sums[team][i] = added(from + i, min(parts, split_.split_k - begin));
        }
        if constexpr (kTeams > 1) {
            __syncthreads();
            if (team == 0) {
                for (int t = 1; t < kTeams; ++t) sums[0][thread] += sums[t][thread];
            }
        }
        return true;
    }

   private:
    // `parts` from one on, with so many loads in flight: each takes most of a microsecond.
    __device__ __forceinline__ Acc added(const Acc* from, int parts) const {
        constexpr int kLoads = 16;
        const std::int64_t step = tiles_ * kSums;
        Acc sum = 0;
#pragma unroll 1
        for (; parts > 0; parts -= kLoads) {
            Acc value[kLoads];
#pragma unroll
            for (int p = 0; p < kLoads; ++p, from += step) {
                value[p] = p < parts ? __ldcg(from) : Acc(0);
            }
#pragma unroll
            for (int p = 0; p < kLoads; ++p) sum += value[p];
        }
        return sum;
    }

    std::uint64_t* flags_;
    Acc* sums_;
    const KRange& split_;
    std::int64_t tiles_, slot_;
};

}  // namespace tcgemm::simt
