// A product whose K is split: blocks leave partial sums, which are added up in a fixed order, all
// within one launch.
#pragma once

#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// use(epilogue): with the one that the product has, on whole sums.
template <class Policy, class Use>
__device__ __forceinline__ void with_epilogue(const Params& params, const Use& use) {
    constexpr bool kIntegers = std::is_integral_v<typename Policy::Sum>;
    if constexpr (!Policy::kScales) {
        use(params.epilogue);
    } else if (!kIntegers || params.is_scaled) {
        use(params.scaled);
    } else if constexpr (kIntegers) {
        use(params.integers);
    }
}

// The parts' sums on their way to D. They lie as the threads of a warpgroup hold them: for each 8
// columns of 64 rows a unit of 16 bytes a thread.
template <class Policy>
class PartSums {
    // Integers wrap around, and are moved as the bits of floats.
    static constexpr bool kIntegers = std::is_integral_v<typename Policy::Sum>;
    using Sum = std::conditional_t<kIntegers, std::uint32_t, float>;

   protected:
    static constexpr int kSubtiles = Policy::kSubtiles, kSums = Policy::kSums;
    static constexpr int kWarpgroups = Policy::kWarpgroupsPerTile;
    static constexpr int kUnits = kSubtiles * kSums / 4;  // of a warpgroup
    static constexpr int kAll = kWarpgroups * kUnits;     // of a tile

   public:
    using Sums = typename Policy::Sums;

   protected:
    __device__ explicit PartSums(const Params& params) : params_(params), split_(params.split) {}

    // put(i, float4): the units of a warpgroup's sums.
    template <class Put>
    __device__ __forceinline__ static void for_units(const Sums& sums, const Put& put) {
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4) {
                put((s * kSums + i) / 4, make_float4(bits(sums[s][i]), bits(sums[s][i + 1]),
                                                     bits(sums[s][i + 2]), bits(sums[s][i + 3])));
            }
        }
    }

    // A warpgroup adds up units of a tile, in the order of the parts, and stores them: kTogether
    // neighbours from `first` on, then those `step` behind, up to `end`. load(part, unit) is a
    // thread's share; 16 of them are in flight, for from L2 each takes most of a microsecond.
    template <int kTogether, class Epilogue, class Load>
    __device__ __forceinline__ void add(const Epilogue& epilogue, const Work& work, int first,
                                        int end, int step, const Load& load) const {
        constexpr int kParts = 16 / kTogether;
        const epilogue::Output<Epilogue> output(epilogue, params_.args, work.batch);
#pragma unroll 1
        for (; first < end; first += step) {
            Sum sum[kTogether][4] = {};
#pragma unroll 1
            for (int part = 0; part < split_.count; part += kParts) {
                float4 value[kParts][kTogether];
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        value[i][u] =
                            part + i < split_.count ? load(part + i, first + u) : float4{};
                    }
                }
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        sum[u][0] += sum_of(value[i][u].x);
                        sum[u][1] += sum_of(value[i][u].y);
                        sum[u][2] += sum_of(value[i][u].z);
                        sum[u][3] += sum_of(value[i][u].w);
                    }
                }
            }
            store(work, output, first, sum);
        }
    }

   private:
    __device__ static float bits(typename Policy::Sum sum) {
        if constexpr (kIntegers) return __int_as_float(sum);
        return sum;
    }
    __device__ static Sum sum_of(float bits) {
        if constexpr (kIntegers) return __float_as_uint(bits);
        return bits;
    }

    // Two columns of two rows a thread. Of four units, the four threads that share rows give each
    // other what makes eight columns.
    template <class Output, int kTogether>
    __device__ __forceinline__ void store(const Work& work, const Output& output, int first,
                                          const Sum (&sum)[kTogether][4]) const {
        static_assert(kTogether == 1 || kTogether == 4);
        const int thread = thread_in_warpgroup(), warp = thread / 32, lane = thread % 32;
        const int unit = kTogether == 4 ? first + lane % 4 : first;
        const int warpgroup = unit / kUnits, in_warpgroup = unit - warpgroup * kUnits;
        const int slab = in_warpgroup / (kSums / 4), eight = in_warpgroup % (kSums / 4);
        const std::int64_t row =
            work.m + warpgroup * Policy::kRows + slab * kMmaM + warp * 16 + lane / 4;
        const std::int64_t col = work.n + eight * 8 + (kTogether == 4 ? 0 : lane % 4 * 2);
        constexpr int kCols = kTogether == 4 ? 8 : 2;
        Sum strip[2][kCols];
        if constexpr (kTogether == 4) {
            transpose(lane, sum, strip);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) strip[i / 2][i % 2] = sum[0][i];
        }
        const std::int64_t rows = params_.args.m - row, cols = work.n_end - col;
        if (rows > 0 && cols > 0) {
            using Value = typename Output::Value;
            Value value[2][kCols];
#pragma unroll
            for (int i = 0; i < 2 * kCols; ++i) {
                const auto its = static_cast<typename Policy::Sum>(strip[i / kCols][i % kCols]);
                value[i / kCols][i % kCols] = epilogue::widen<Value>(its);
            }
            output.store(row, 8, static_cast<int>(min(rows, std::int64_t{16})), col,
                         static_cast<int>(min(cols, std::int64_t{kCols})), value);
        }
    }

    // Four neighbouring lanes hold two columns of each of four units: lane i gets all of unit i.
    __device__ __forceinline__ static void transpose(int lane, const Sum (&sum)[4][4],
                                                     Sum (&strip)[2][8]) {
        const bool odd = lane & 1, upper = lane & 2;
        Sum half[2][2][4];  // of units 2 j + odd: from the even and from the odd lane
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const Sum keeps = odd ? sum[2 * j + 1][i] : sum[2 * j][i];
                const Sum gives = odd ? sum[2 * j][i] : sum[2 * j + 1][i];
                const Sum gets = __shfl_xor_sync(~0u, gives, 1);
                half[j][0][i] = odd ? gets : keeps;
                half[j][1][i] = odd ? keeps : gets;
            }
        }
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const Sum keeps = upper ? half[1][pair][i] : half[0][pair][i];
                const Sum gives = upper ? half[0][pair][i] : half[1][pair][i];
                const Sum gets = __shfl_xor_sync(~0u, gives, 2);
                strip[i / 2][2 * pair + i % 2] = upper ? gets : keeps;
                strip[i / 2][4 + 2 * pair + i % 2] = upper ? keeps : gets;
            }
        }
    }

   protected:
    const Params& params_;
    const KSplit& split_;
};

// Parts anywhere on the GPU, through a workspace. The reducers are the last blocks of the grid:
// they wait only for blocks before them, so that they can't keep those from being started. A flag
// holds the launch's epoch while its partial sums are there; each reducer has flags of its own and
// clears them, so that a graph can launch the same epoch again.
template <class Policy>
class GridSplit : PartSums<Policy> {
    using Base = PartSums<Policy>;
    using Base::params_, Base::split_, Base::kWarpgroups, Base::kUnits, Base::kAll;

   public:
    __device__ explicit GridSplit(const Params& params) : Base(params) {}

    __device__ __forceinline__ void publish(const Work& work, int consumer,
                                            const typename Base::Sums& sums) const {
        const std::int64_t slot = slot_of(work.tile, work.part, Policy::kPingPong ? 0 : consumer);
        const int thread = thread_in_warpgroup();
        float4* const to = partial(slot, thread);
        Base::for_units(sums, [&](int i, float4 unit) { __stcg(to + i * kWarpgroup, unit); });
        // The release publishes what all threads wrote before the barrier.
        ptx::named_barrier(1 + consumer, kWarpgroup);
        for (int reducer = thread; reducer < split_.reducers; reducer += kWarpgroup) {
            ptx::store_release(flag(slot, reducer), split_.epoch);
        }
    }

    // The work of a block behind `work_count`: one warpgroup, which takes every reducers-th
    // unit, or four.
    __device__ __forceinline__ void reduce() const {
        const unsigned index = (blockIdx.x >> params_.cluster_log2) - params_.work_count;
        const auto reducers = static_cast<unsigned>(split_.reducers);
        const unsigned tile = index / reducers;
        const auto reducer = static_cast<int>(index - tile * reducers);
        const unsigned tiles = params_.scheduler.tiles_m() * params_.scheduler.tiles_n();
        const unsigned batch = tile / tiles;
        const Work work =
            WorkList<Policy>(params_).decode(tile + batch * tiles * (split_.count - 1));

        const int thread = threadIdx.x;
        for (int i = thread; i < split_.count * kWarpgroups; i += kWarpgroup) {
            std::uint64_t* const its = flag(work.tile * split_.count * kWarpgroups + i, reducer);
            while (ptx::load_acquire(its) != split_.epoch) __nanosleep(20);
            *its = 0;
        }
        ptx::named_barrier(1, kWarpgroup);

        // Units lie in the order of parts.
        const float4* const from = partial(slot_of(work.tile, 0, 0), thread);
        const auto load = [&](int part, int unit) {
            return __ldcg(from + (part * kAll + unit) * kWarpgroup);
        };
        with_epilogue<Policy>(params_, [&](const auto& epilogue) {
            if (split_.reducers * 4 > kAll) {
                Base::template add<1>(epilogue, work, reducer, kAll, split_.reducers, load);
            } else {
                Base::template add<4>(epilogue, work, 4 * reducer, kAll, 4 * split_.reducers, load);
            }
        });
    }

   private:
    __device__ std::int64_t slot_of(std::int64_t tile, int part, int warpgroup) const {
        return (tile * split_.count + part) * kWarpgroups + warpgroup;
    }
    __device__ std::uint64_t* flag(std::int64_t slot, int reducer) const {
        return split_.flags + slot * split_.reducers + reducer;
    }
    __device__ float4* partial(std::int64_t slot, int thread) const {
        return reinterpret_cast<float4*>(split_.partials) + slot * kUnits * kWarpgroup + thread;
    }
};

// Parts in the blocks of a cluster: each adds up a share of the tile's units, which the others send
// to where its ring of stages was. A block has one tile only.
template <class Policy>
class ClusterSplit : PartSums<Policy> {
    using Base = PartSums<Policy>;
    using Base::split_, Base::kWarpgroups, Base::kUnits, Base::kAll;
    static constexpr int kUnitBytes = 16;  // of a thread
    static constexpr int kBytes = kAll * kWarpgroup * kUnitBytes;
    static_assert(kBytes <= Policy::kStages * Policy::kStageBytes);

   public:
    __device__ ClusterSplit(const Params& params, SharedMemory<Policy> shared)
        : Base(params), shared_(shared) {}

    template <class Epilogue>
    __device__ __forceinline__ void run(const Epilogue& epilogue, const Work& work, int consumer,
                                        const typename Base::Sums& sums) const {
        const int thread = thread_in_warpgroup();
        const int warpgroup = Policy::kPingPong ? 0 : consumer;
        const std::uint32_t inbox = shared_.a(0) + thread * kUnitBytes;
        const std::uint32_t arrived = shared_.ready(0, 0);
        const int share = kAll / split_.count, first = work.part * share;
        if (thread == 0 && warpgroup == 0) {
            ptx::arrive_and_expect_bytes(arrived, (kAll - share) * kWarpgroup * kUnitBytes);
        }
        ptx::meet_cluster();  // nobody multiplies from a ring any more
        Base::for_units(sums, [&](int i, float4 unit) {
            const int index = warpgroup * kUnits + i, to = index / share;
            const std::uint32_t place = at(inbox, first + index - to * share);
            if (to == work.part) {
                ptx::store_shared(place, unit);
            } else {
                ptx::send(ptx::address_in_cluster(place, to), unit,
                          ptx::address_in_cluster(arrived, to));
            }
        });
        if (kWarpgroups > 1) ptx::named_barrier(1 + Policy::kConsumers, kWarpgroups * kWarpgroup);
        ptx::wait_for_phase(arrived, 0);

        const auto load = [&](int part, int unit) {
            return ptx::load_shared(at(inbox, part * share + unit - first));
        };
        Base::template add<4>(epilogue, work, first + 4 * warpgroup, first + share, 4 * kWarpgroups,
                              load);
    }

   private:
    __device__ static std::uint32_t at(std::uint32_t inbox, int unit) {
        return inbox + unit * (kWarpgroup * kUnitBytes);
    }

    SharedMemory<Policy> shared_;
};

}  // namespace tcgemm::sm90_wgmma
