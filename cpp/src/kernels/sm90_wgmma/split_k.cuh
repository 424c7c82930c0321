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

    // Of kTogether neighbouring units, what a thread has of them.
    template <int kTogether>
    struct Units {
        Sum sum[kTogether][4] = {};

        __device__ __forceinline__ void add(int u, float4 value) {
            sum[u][0] += sum_of(value.x);
            sum[u][1] += sum_of(value.y);
            sum[u][2] += sum_of(value.z);
            sum[u][3] += sum_of(value.w);
        }
        // Parts from `part` up to `end`, in their order; load(part, u) gives a unit of one. 16
        // loads are in flight, for from L2 each takes most of a microsecond.
        template <class Load>
        __device__ __forceinline__ void add_parts(int part, int end, const Load& load) {
            constexpr int kParts = 16 / kTogether;
#pragma unroll 1
            for (; part < end; part += kParts) {
                float4 value[kParts][kTogether];
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        value[i][u] = part + i < end ? load(part + i, u) : float4{};
                    }
                }
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) add(u, value[i][u]);
                }
            }
        }
        __device__ float4 packed(int u) const {
            return make_float4(bits(sum[u][0]), bits(sum[u][1]), bits(sum[u][2]), bits(sum[u][3]));
        }
    };
    // By a warp: the units from `first` on, in those 16 of their 64 rows that warp `warp` of a
    // warpgroup has. Two columns of two rows a thread; of four units, the four threads that share
    // rows give each other what makes eight columns.
    template <class Output, int kTogether>
    __device__ __forceinline__ void store(const Work& work, const Output& output, int first,
                                          int warp, const Units<kTogether>& units) const {
        static_assert(kTogether == 1 || kTogether == 4);
        const auto& sum = units.sum;
        const int lane = threadIdx.x % 32;
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

   private:
    __device__ static float bits(Sum sum) {
        if constexpr (kIntegers) return __uint_as_float(sum);
        return sum;
    }
    __device__ static Sum sum_of(float bits) {
        if constexpr (kIntegers) return __float_as_uint(bits);
        return bits;
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
    __device__ GridSplit(const Params& params, SharedMemory<Policy> shared)
        : Base(params), shared_(shared) {}

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

    // The work of a block behind `work_count`: the warps of one warpgroup, which add up pieces, one
    // or four units in the rows of a warp. Of many parts each warp adds up a quarter.
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

        with_epilogue<Policy>(params_, [&](const auto& epilogue) {
            if (split_.reducers * 4 > kAll * (shares_parts(split_.count) ? kWarps : 1)) {
                add_pieces<1>(epilogue, work, reducer);
            } else {
                add_pieces<4>(epilogue, work, reducer);
            }
        });
    }

   private:
    static constexpr int kWarps = kWarpgroup / 32;

    template <int kTogether, class Epilogue>
    __device__ __forceinline__ void add_pieces(const Epilogue& epilogue, const Work& work,
                                               int reducer) const {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const epilogue::Output<Epilogue> output(epilogue, params_.args, work.batch);
        const bool shares = shares_parts(split_.count);
        const int together = shares ? kWarps : 1;  // warps
        const int parts = (split_.count + together - 1) / together,
                  part = shares ? warp * parts : 0;
        int turn = 0;
#pragma unroll 1
        for (int piece = shares ? reducer : reducer * kWarps + warp;
             piece < kAll / kTogether * kWarps;
             piece += split_.reducers * kWarps / together, turn ^= 1) {
            const int first = piece / kWarps * kTogether, rows = piece % kWarps;
            const float4* const from =
                partial(slot_of(work.tile, 0, 0), rows * 32 + lane) + first * kWarpgroup;
            typename Base::template Units<kTogether> units;
            units.add_parts(part, min(part + parts, split_.count), [&](int p, int u) {
                return __ldcg(from + (p * kAll + u) * kWarpgroup);
            });
            if (!shares) {
                Base::store(work, output, first, rows, units);
                continue;
            }
            // The first warp adds up what the others have, in their order. They are ahead of it by
            // a turn at most.
            const auto place = [&](int of_warp, int u) {
                const int unit = ((turn * kWarps + of_warp) * kTogether + u) * 32 + lane;
                return shared_.a(0) + unit * static_cast<int>(sizeof(float4));
            };
            if (warp > 0) {
#pragma unroll
                for (int u = 0; u < kTogether; ++u) {
                    ptx::store_shared(place(warp, u), units.packed(u));
                }
            }
            ptx::named_barrier(1, kWarpgroup);
            if (warp == 0) {
#pragma unroll
                for (int other = 1; other < kWarps; ++other) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        units.add(u, ptx::load_shared<float4>(place(other, u)));
                    }
                }
                Base::store(work, output, first, rows, units);
            }
        }
    }

    __device__ std::int64_t slot_of(std::int64_t tile, int part, int warpgroup) const {
        return (tile * split_.count + part) * kWarpgroups + warpgroup;
    }
    __device__ std::uint64_t* flag(std::int64_t slot, int reducer) const {
        return split_.flags + slot * split_.reducers + reducer;
    }
    __device__ float4* partial(std::int64_t slot, int thread) const {
        return reinterpret_cast<float4*>(split_.partials) + slot * kUnits * kWarpgroup + thread;
    }

    SharedMemory<Policy> shared_;
};

// Parts in the blocks of a cluster: each adds up a share of the tile's units, which the others send
// to where its ring of stages was. A block has one tile only.
template <class Policy>
class ClusterSplit : PartSums<Policy> {
    using Base = PartSums<Policy>;
    using Base::split_, Base::kWarpgroups, Base::kUnits, Base::kAll;
    static constexpr int kUnitBytes = 16;  // of a thread
    static constexpr int kBytes = kAll * kWarpgroup * kUnitBytes;
    static_assert(kBytes <= SharedMemory<Policy>::kRingBytes);

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
        if (thread < 32 && warpgroup == 0) {
            const int bytes = (kAll - share) * kWarpgroup * kUnitBytes;
            ptx::arrive_and_expect_bytes(arrived, thread == 0 ? bytes : 0);
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

        const epilogue::Output<Epilogue> output(epilogue, this->params_.args, work.batch);
#pragma unroll 1
        for (int unit = 4 * warpgroup; unit < share; unit += 4 * kWarpgroups) {
            typename Base::template Units<4> units;
            units.add_parts(0, split_.count, [&](int part, int u) {
                return ptx::load_shared<float4>(at(inbox, part * share + unit + u));
            });
            Base::store(work, output, first + unit, thread / 32, units);
        }
    }

   private:
    __device__ static std::uint32_t at(std::uint32_t inbox, int unit) {
        return inbox + unit * (kWarpgroup * kUnitBytes);
    }

    SharedMemory<Policy> shared_;
};

}  // namespace tcgemm::sm90_wgmma
