// A product whose K is split: blocks leave partial sums, others add them up in a fixed order, all
// within one launch.
#pragma once

#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// The reducers are the last blocks of the grid: they wait only for blocks before them, so that they
// can't keep those from being started. Partial sums lie as the threads of a warpgroup hold them:
// for each 8 columns of 64 rows a unit of 16 bytes a thread. A flag holds the launch's epoch while
// its partial sums are there; each reducer has flags of its own and clears them, so that a graph
// can launch the same epoch again.
template <class Policy>
class SplitK {
    static constexpr int kSubtiles = Policy::kSubtiles, kSums = Policy::kSums;
    static constexpr int kWarpgroups = Policy::kWarpgroupsPerTile;
    static constexpr int kUnits = kSubtiles * kSums / 4;  // of a warpgroup

   public:
    using Sums = typename Policy::Sums;

    __device__ explicit SplitK(const Params& params) : params_(params), split_(params.split) {}

    __device__ __forceinline__ void publish(const Work& work, int consumer,
                                            const Sums& sums) const {
        const std::int64_t slot = slot_of(work.tile, work.part, Policy::kPingPong ? 0 : consumer);
        const int thread = thread_in_warpgroup();
        float4* const to = partial(slot, thread);
#pragma unroll
        for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4) {
                __stcg(to + (s * kSums + i) / 4 * kWarpgroup,
                       make_float4(sums[s][i], sums[s][i + 1], sums[s][i + 2], sums[s][i + 3]));
            }
        }
        // The release publishes what all threads wrote before the barrier.
        ptx::named_barrier(1 + consumer, kWarpgroup);
        for (int reducer = thread; reducer < split_.reducers; reducer += kWarpgroup) {
            ptx::store_release(flag(slot, reducer), split_.epoch);
        }
    }

    // The work of a block behind `work_count`: one warpgroup, which takes every reducers-th unit.
    __device__ __forceinline__ void reduce() const {
        const unsigned index = blockIdx.x - params_.work_count;
        const auto reducers = static_cast<unsigned>(split_.reducers);
        const unsigned tile = index / reducers;
        const auto reducer = static_cast<int>(index - tile * reducers);
        const unsigned tiles = params_.scheduler.tiles_m * params_.scheduler.tiles_n;
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

        if (split_.reducers * 4 > kWarpgroups * kUnits) {
            reduce_units<1>(work, reducer);
        } else {
            reduce_units<4>(work, reducer);
        }
    }

   private:
    // kTogether units at a time. 16 loads are in flight, for each takes most of a microsecond.
    template <int kTogether>
    __device__ __forceinline__ void reduce_units(const Work& work, int reducer) const {
        constexpr int kParts = 16 / kTogether, kAll = kWarpgroups * kUnits;
        constexpr int kPartStride =
            kAll * kWarpgroup;  // units of 16 bytes lie in the order of parts
        const epilogue::Output<epilogue::Linear<float>> output(params_.epilogue, params_.args,
                                                               work.batch);
        const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
        const int step = split_.reducers;
#pragma unroll 1
        for (int first = reducer; first < kAll; first += kTogether * step) {
            float sum[kTogether][4] = {};
            const float4* from = partial(slot_of(work.tile, 0, 0), thread) + first * kWarpgroup;
            for (int part = 0; part < split_.count; part += kParts, from += kParts * kPartStride) {
                float4 value[kParts][kTogether];
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        const bool exists = part + i < split_.count && first + u * step < kAll;
                        value[i][u] = exists
                                          ? __ldcg(from + i * kPartStride + u * step * kWarpgroup)
                                          : float4{};
                    }
                }
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
#pragma unroll
                    for (int u = 0; u < kTogether; ++u) {
                        sum[u][0] += value[i][u].x;
                        sum[u][1] += value[i][u].y;
                        sum[u][2] += value[i][u].z;
                        sum[u][3] += value[i][u].w;
                    }
                }
            }
#pragma unroll 1
            for (int u = 0; u < kTogether; ++u) {
                const int unit = first + u * step;
                const int warpgroup = unit / kUnits, in_warpgroup = unit - warpgroup * kUnits;
                const int slab = in_warpgroup / (kSums / 4), eight = in_warpgroup % (kSums / 4);
                const std::int64_t row =
                    work.m + warpgroup * Policy::kRows + slab * kMmaM + warp * 16 + lane / 4;
                const std::int64_t col = work.n + eight * 8 + lane % 4 * 2;
                const std::int64_t rows = params_.args.m - row, cols = work.n_end - col;
                if (unit < kAll && rows > 0 && cols > 0) {
                    float strip[2][2];
#pragma unroll
                    for (int i = 0; i < kTogether; ++i) {  // registers have no run-time index
                        if (i != u) continue;
                        strip[0][0] = sum[i][0];
                        strip[0][1] = sum[i][1];
                        strip[1][0] = sum[i][2];
                        strip[1][1] = sum[i][3];
                    }
                    output.store(row, 8, static_cast<int>(min(rows, std::int64_t{16})), col,
                                 static_cast<int>(min(cols, std::int64_t{2})), strip);
                }
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

    const Params& params_;
    const KSplit& split_;
};

}  // namespace tcgemm::sm90_wgmma
