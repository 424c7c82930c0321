// A product whose K is split: blocks leave partial sums, which are added up in the order of the
// parts, all within one launch.
#pragma once

#include "kernels/device/exponents.cuh"
#include "kernels/device/ptx/flag.cuh"
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
// columns of 64 rows a unit of 16 bytes a thread. Of narrowed tiles those of the columns there are.
template <class Policy>
class PartSums {
    // Integers wrap around, and are moved as the bits of floats.
    static constexpr bool kIntegers = std::is_integral_v<typename Policy::Sum>;
    using Sum = std::conditional_t<kIntegers, std::uint32_t, float>;

   protected:
    static constexpr int kSubtiles = Policy::kSubtiles, kSums = Policy::kSums;
    static constexpr int kWarpgroups = Policy::kWarpgroupsPerTile;
    static constexpr bool kNarrows = narrows_sums(Policy::kBlockN);

   public:
    using Sums = typename Policy::Sums;

   protected:
    __device__ explicit PartSums(const Params& params) : params_(params), split_(params.split) {}

    // Units of a slab of 64 rows.
    __device__ int eights() const { return kNarrows ? split_.eights : Policy::kBlockN / 8; }
    __device__ int slab_of(int unit) const {
        return kNarrows ? static_cast<int>(split_.by_eights.divide(unit)) : unit / eights();
    }
    __device__ int units() const { return kSubtiles * eights(); }  // of a warpgroup
    __device__ int all() const { return kWarpgroups * units(); }   // of a tile

    // put(s, i, float4): the units of a warpgroup's sums, each slab of 64 rows.
    template <class Put>
    __device__ __forceinline__ void for_units(const Sums& sums, const Put& put) const {
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4) {
                if (kNarrows && i % 16 == 0 && i / 4 >= eights()) break;
                put(s, i / 4,
                    make_float4(bits(sums[s][i]), bits(sums[s][i + 1]), bits(sums[s][i + 2]),
                                bits(sums[s][i + 3])));
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
        const int slab = slab_of(unit), eight = unit - slab * eights();
        const std::int64_t row = work.m + slab * kMmaM + warp * 16 + lane / 4;
        const std::int64_t col = work.n + eight * 8 + (kTogether == 4 ? 0 : lane % 4 * 2);
        constexpr int kCols = kTogether == 4 ? 8 : 2;
        Sum strip[2][kCols];
        if constexpr (kTogether == 4) {
            transpose(lane, sum, strip);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) strip[i / 2][i % 2] = sum[0][i];
        }
        if constexpr (Policy::kHalves) {
            const device::Exponents exponents(params_.args, work.batch_index);
#pragma unroll
            for (int i = 0; i < 2 * kCols; i += 2) {
                auto& pair = reinterpret_cast<Sum(&)[2]>(strip[i / kCols][i % kCols]);
                const float2 its =
                    exponents.apply({pair[0], pair[1]}, row + i / kCols * 8, col + i % kCols);
                pair[0] = its.x, pair[1] = its.y;
            }
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

// Parts anywhere on the GPU, through a workspace: the blocks of a launch, all of which are at work
// at once, leave partial sums there, then add them up, a share of a tile each. A flag holds the
// launch's epoch while a part is there; each share has flags of its own and clears them, so that a
// graph can launch the same epoch again.
//
// The sums of a part lie in pieces of a warp, four units of the same rows behind each other.
template <class Policy>
class GridSplit : PartSums<Policy> {
    using Base = PartSums<Policy>;
    using Base::params_, Base::split_, Base::kWarpgroups;

   public:
    __device__ GridSplit(const Params& params, SharedMemory<Policy> shared)
        : Base(params), shared_(shared) {}

    // The part with this index in the list of work.
    __device__ __forceinline__ void publish(unsigned index, int consumer,
                                            const typename Base::Sums& sums) const {
        constexpr int kThreads = kWarpgroups * kWarpgroup;
        const int warpgroup = Policy::in_tile(consumer);
        const int thread = thread_in_warpgroup();
        const unsigned slot = slot_of(index);
        float4* const to =
            partial(slot, piece_of(warpgroup * Base::units(), thread / 32)) + thread % 32;
        const int slab = Base::eights() * (kWarpgroup / 32) * 32;
        Base::for_units(sums, [&](int s, int i, float4 unit) {
            __stcg(to + s * slab + piece_of(i, 0) * 32, unit);
        });
        // The release publishes what all threads wrote before the barrier. Consumers that share a
        // tile meet at a barrier of them all.
        ptx::named_barrier(
            Policy::kPingPong ? Barrier<Policy>::kConsumer + consumer : Barrier<Policy>::kConsumers,
            kThreads);
        for (int share = warpgroup * kWarpgroup + thread; share < split_.shares;
             share += kThreads) {
            ptx::store_release(flag(slot, share), split_.epoch);
        }
    }

    // By all consumers of the block, behind their last part.
    template <class Epilogue>
    __device__ __forceinline__ void add_up(const Epilogue& epilogue) const {
        const WorkList<Policy> list(params_);
        const unsigned shares = tiles() * split_.shares;
        for (unsigned i = blockIdx.x; i < shares; i += gridDim.x) {
            const unsigned tile = split_.by_shares.divide(i);
            const auto share = static_cast<int>(i - tile * split_.shares);
            std::uint64_t* const its = flag(tile + threadIdx.x * tiles(), share);
            const bool waits = threadIdx.x < split_.count;
            std::uint64_t epoch = waits ? ptx::load_acquire(its) : split_.epoch;
            // What needs no part, while the flag is on its way.
            const unsigned cluster = tile >> params_.cluster_log2;
            const Work work = list.decode(
                split_.whole + cluster, static_cast<int>(tile - (cluster << params_.cluster_log2)));
            const epilogue::Output<Epilogue> output(epilogue, params_.args, work.batch_index);
            while (epoch != split_.epoch) {
                __nanosleep(20);
                epoch = ptx::load_acquire(its);
            }
            if (waits) *its = 0;
            ptx::named_barrier(Barrier<Policy>::kConsumers, kConsumerWarps * 32);

            const int first = share * split_.share_pieces,
                      count = min(split_.share_pieces, pieces() - first);
            if (adds_by_quads(count, split_.count, Policy::kConsumers)) {
                add_pieces<4>(output, work, tile, first, count);
            } else {
                add_pieces<1>(output, work, tile, first, count);
            }
        }
    }

   private:
    static constexpr int kConsumerWarps = Policy::kConsumers * kWarpgroup / 32;
    static_assert(kMaxParts <= kWarpgroup);  // each has a thread that waits for it

    template <int kTogether, class Output>
    __device__ __forceinline__ void add_pieces(const Output& output, const Work& work,
                                               unsigned tile, int first, int count) const {
        const int lane = threadIdx.x % 32, log2 = team_log2(split_.count), team_size = 1 << log2;
        const int warp = threadIdx.x / 32, team = warp >> log2, in_team = warp - (team << log2);
        const int parts = (split_.count + team_size - 1) >> log2, part = in_team * parts;
        const std::int64_t step = partial(tiles(), 0) - partial(0, 0);  // from part to part
        int turn = 0;
#pragma unroll 1
        for (int i = team * kTogether; i < count;
             i += (kConsumerWarps >> log2) * kTogether, turn ^= 1) {
            const int piece = first + i;
            const float4* const from = partial(tile, piece) + lane;
            typename Base::template Units<kTogether> units;
            units.add_parts(part, min(part + parts, split_.count),
                            [&](int p, int u) { return __ldcg(from + p * step + u * 32); });
            if (team_size > 1) {
                // The first warp adds up what the others have, in their order. They are ahead of
                // it by a turn at most.
                const auto place = [&](int of_warp, int u) {
                    const int unit = (turn * kConsumerWarps + of_warp) * kTogether + u;
                    return shared_.a(0) + (unit * 32 + lane) * static_cast<int>(sizeof(float4));
                };
                if (in_team > 0) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        ptx::store_shared(place(warp, u), units.packed(u));
                    }
                }
                ptx::named_barrier(Barrier<Policy>::kTeam + team, team_size * 32);
                if (in_team > 0) continue;
#pragma unroll 1
                for (int other = 1; other < team_size; ++other) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        units.add(u, ptx::load_shared<float4>(place(warp + other, u)));
                    }
                }
            }
            Base::store(work, output, piece / 16 * 4 + piece % 4, piece / 4 % 4, units);
        }
    }

    // Of a unit, in the rows of a warp of its warpgroup.
    __device__ static constexpr int piece_of(int unit, int warp) {
        return unit / 4 * 16 + warp * 4 + unit % 4;
    }
    // Tiles that have parts. A slot for each part: first parts, in the order of the tiles, come
    // before second ones.
    __device__ unsigned tiles() const { return split_.rest << params_.cluster_log2; }
    // Of this block's part with this index in the list of work.
    __device__ unsigned slot_of(unsigned index) const {
        const unsigned rank = params_.cluster_log2 > 0 ? ptx::cluster_rank() : 0;
        return ((index - split_.whole) << params_.cluster_log2) + rank;
    }
    __device__ std::uint64_t* flag(unsigned slot, int share) const {
        return split_.flags + std::int64_t{slot} * split_.shares + share;
    }
    __device__ int pieces() const { return Base::all() * (kWarpgroup / 32); }  // of a tile
    __device__ float4* partial(unsigned slot, int piece) const {
        return split_.partials + (std::int64_t{slot} * pieces() + piece) * 32;
    }

    SharedMemory<Policy> shared_;
};

// Parts in the blocks of a cluster: each adds up a share of the tile's units, which the others send
// to where its ring of stages was. A block has one tile only.
template <class Policy>
class ClusterSplit : PartSums<Policy> {
    using Base = PartSums<Policy>;
    using Base::split_, Base::kWarpgroups;
    static constexpr int kUnitBytes = 16;  // of a thread
    static_assert(!Base::kNarrows && Policy::kBlockM * Policy::kBlockN * sizeof(float) <=
                                         SharedMemory<Policy>::kRingBytes);

   public:
    __device__ ClusterSplit(const Params& params, SharedMemory<Policy> shared)
        : Base(params), shared_(shared) {}

    template <class Epilogue>
    __device__ __forceinline__ void run(const Epilogue& epilogue, const Work& work, int consumer,
                                        const typename Base::Sums& sums) const {
        const int thread = thread_in_warpgroup();
        const int warpgroup = Policy::in_tile(consumer);
        const std::uint32_t inbox = shared_.a(0) + thread * kUnitBytes;
        const std::uint32_t arrived = shared_.ready(0, 0);
        const int all = Base::all(), share = all / split_.count, first = work.part * share;
        if (thread == 0 && warpgroup == 0) {
            ptx::arrive_and_expect_bytes(arrived, (all - share) * kWarpgroup * kUnitBytes);
        }
        ptx::meet_cluster();  // nobody multiplies from a ring any more
        Base::for_units(sums, [&](int s, int i, float4 unit) {
            const int index = warpgroup * Base::units() + s * Base::eights() + i;
            const int to = index / share;
            const std::uint32_t place = at(inbox, first + index - to * share);
            if (to == work.part) {
                ptx::store_shared(place, unit);
            } else {
                ptx::send(ptx::address_in_cluster(place, to), unit,
                          ptx::address_in_cluster(arrived, to));
            }
        });
        if (kWarpgroups > 1)
            ptx::named_barrier(Barrier<Policy>::kConsumers, kWarpgroups * kWarpgroup);
        ptx::wait_for_phase(arrived, 0);

        const epilogue::Output<Epilogue> output(epilogue, this->params_.args, work.batch_index);
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
