// The kernel of this family: TMA loads, wgmma, TMA stores, in warpgroups with roles.
//
//   producer     one thread: boxes of A and B into a ring of stages, as stages become empty
//   consumers    one to three warpgroups: multiply full stages; epilogue; D into stagings
//   store warps  one for each consumer: boxes of D out of its stagings, boxes of C into them
//   scale warp   scales of blocks beside the stages, where the product has such
//
// Blocks are persistent: each goes through its list of tiles, and the producer is ahead by a ring
// of stages, so that loads go on while a tile is stored. Where K is split, consumers leave partial
// sums, then add them up, or those of a cluster do.
#pragma once

#include "kernels/device/arch_guard.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/halves.hpp"
#include "kernels/sm90_wgmma/epilogue.cuh"
#include "kernels/sm90_wgmma/exponents.cuh"
#include "kernels/sm90_wgmma/mainloop.cuh"
#include "kernels/sm90_wgmma/producer.cuh"
#include "kernels/sm90_wgmma/split_k.cuh"
#include "kernels/sm90_wgmma/store_warp.cuh"

namespace tcgemm::sm90_wgmma {

// By one thread: 32 that share the work are slower.
template <class Policy>
__device__ __forceinline__ void init_barriers(const Params& params, SharedMemory<Policy> shared) {
    constexpr int kWarps = Policy::kWarpgroupsPerTile * kWarpgroup / 32;
    for (int stage = 0; stage < shared.stages(); ++stage) {
        // Lanes that bring or read scales of blocks, or read A, arrive each for itself.
        const bool scaled = Policy::kBlockScales && params.has_block_scales;
        ptx::init_barrier(shared.full(stage), scaled ? 1 + 32 : 1);
        ptx::init_barrier(shared.empty(stage), scaled || Policy::kAInRegisters
                                                   ? kWarps * (32 + params.cluster_log2)
                                                   : kWarps << params.cluster_log2);
    }
    for (int i = 0; i < SharedMemory<Policy>::kTurns; ++i) {
        ptx::init_barrier(shared.turn(i), kWarpgroup / 32);
    }
    for (int i = 0; i < Policy::kConsumers * Policy::kMostStagings; ++i) {
        ptx::init_barrier(shared.ready(0, i), 1);
        ptx::init_barrier(shared.filled(0, i), kWarpgroup);
    }
    ptx::fence_barrier_init();
}

// Behind this the block's barriers, or the cluster's, can be used.
template <class Policy>
__device__ __forceinline__ void meet(const Params& params) {
    if (params.cluster_log2 > 0 || params.split.in_cluster) {
        ptx::meet_cluster();  // the fence has published the barriers
    } else {
        ptx::named_barrier_of_roles(Barrier<Policy>::kAll, Policy::kThreads);
    }
}

// Nothing in global memory is read or written before this, but by the producer, which waits for the
// predecessor by itself. False: there is nothing to do.
template <class Policy>
__device__ __forceinline__ bool await_start(const Params& params) {
    meet<Policy>(params);
    device::wait_for_predecessor();
    device::release_successor();
    if constexpr (Policy::kHalves) return halves::wanted(params.args.run_if);
    return true;
}

// What an epilogue has left to do behind apply_scales().
template <class Epilogue>
__device__ __forceinline__ const Epilogue& rest_of(const Epilogue& epilogue) {
    return epilogue;
}
__device__ __forceinline__ epilogue::Rescaled rest_of(const epilogue::Scaled& scaled) {
    const ScaleArgs& scales = scaled.scales;
    return {scaled.beta, scales.d != nullptr ? *scales.d : 1.0f,
            scales.overflow == Overflow::saturate};
}

// Whether consume_ahead() serves: several tiles of a block, which leave in boxes of narrow
// elements. It has registers for nothing else.
__device__ __forceinline__ bool leaves_in_boxes(const Params& params) {
    return params.store == Store::tensor && begins_ahead_of(params.args.d.dtype) &&
           !params.epilogue.reads_c() && params.split.count == 1 && params.k_blocks > 0 &&
           params.work_count > gridDim.x >> params.cluster_log2;
}

// consume() of tiles that leave in boxes, with instructions for kWidth columns: the first k-block
// of the next tile is multiplied while a tile is stored. kScaled: it has scales of blocks of k,
// none for columns, and no others. D has one of `Elements`, and the scale `of_d`.
template <int kWidth, bool kScaled, class... Elements, class Policy, class Store>
__device__ __forceinline__ void consume_ahead_as(const Params& params, SharedMemory<Policy> shared,
                                                 int row, float of_d,
                                                 Multiplier<Policy>& multiplier, Store& store) {
    WorkList<Policy> list(params);
    typename Multiplier<Policy>::template Partial<kWidth> partial;
    multiplier.template begin<kWidth>(partial, true);
    for (bool has_next = true; has_next;) {
        list.next();
        const auto work = [&] { return list.decode(list.latest()); };
        typename Policy::Sums sums;
        if constexpr (kScaled) {
            multiplier.template finish<kWidth>(
                params.k_blocks, partial, sums,
                BlockScales<Policy, false>(params, work(), shared, row));
        } else {
            multiplier.template finish<kWidth>(params.k_blocks, partial, sums);
        }
        has_next = list.has_next();
        multiplier.template begin<kWidth>(partial, has_next);
        float scaled[Policy::kSubtiles][Policy::kSums];
        if constexpr (kScaled) {
            multiply_by(params.scaled.alpha, sums, scaled);
        } else {
            apply_scales<Policy>(params, work, row, sums, scaled);
        }
        if (of_d != 1) multiply_by(of_d, scaled, scaled);
        store.template run_rounded<kWidth, Elements...>(scaled);
    }
    ptx::wgmma_await_all(partial);
}

// Stores of FP8 and others beside each other would spill.
template <int kWidth, bool kScaled, class Policy, class... Rest>
__device__ __forceinline__ void consume_ahead(const Params& params, SharedMemory<Policy> shared,
                                              Rest&&... rest) {
    if (is_fp8(params.args.d.dtype)) {
        consume_ahead_as<kWidth, kScaled, device::E4M3, device::E5M2>(params, shared, rest...);
    } else {
        consume_ahead_as<kWidth, kScaled, __half, __nv_bfloat16>(params, shared, rest...);
    }
}

// `of_sums`: the epilogue of a tile's sums, what with_epilogue() gives.
template <class Policy, class Epilogue>
__device__ __forceinline__ void consume(const Params& params, SharedMemory<Policy> shared,
                                        int consumer, const Epilogue& of_sums) {
    // Scales of A and B are applied to the registers, the rest on the way to D.
    constexpr bool kScaled = std::is_same_v<Epilogue, epilogue::Scaled>;
    using Sum = std::conditional_t<kScaled, float, typename Policy::Sum>;
    const auto& epilogue = rest_of(of_sums);
    const int group = Policy::group_of(consumer), row = Policy::first_row(consumer);
    Multiplier<Policy> multiplier(params, shared, consumer, row);
    TileStore<Policy, std::decay_t<decltype(epilogue)>, Sum> store(params, epilogue, shared, row);

    if constexpr (Policy::kBeginsAhead) {
        constexpr int kWide = Policy::kBlockN, kLess = least_ahead(kWide, false);
        constexpr int kScaledWide = least_ahead(kWide, true);
        const float of_d = epilogue.scale_d;
        const int width = leaves_in_boxes(params) ? params.width : 0;
        if (params.has_block_scales) {
            if (width > Policy::narrower(kScaledWide, true) && !has_tile_scales(params) &&
                !has_columns(params.scaled.scales.b)) {
                return consume_ahead<kScaledWide, true>(params, shared, row, of_d, multiplier,
                                                        store);
            }
        } else if (width > kLess) {
            return consume_ahead<kWide, false>(params, shared, row, of_d, multiplier, store);
        } else if (width > Policy::narrower(kLess)) {
            return consume_ahead<kLess, false>(params, shared, row, of_d, multiplier, store);
        }
    }
    WorkList<Policy> list(params);
    for (int turn = 0; list.has_next(); turn = (turn + 1) % Policy::kGroups) {
        const unsigned index = list.next();
        if (turn != group) {
            multiplier.skip(list.blocks(index));
            continue;
        }
        // Where it is needed: it takes longer than a k-block.
        const auto work = [&] { return list.decode(index); };
        const int blocks = list.blocks(index);
        typename Policy::Sums sums;
        if constexpr (Policy::kBlockScales) {
            if (!params.has_block_scales) {
                multiplier.run(blocks, sums);
            } else if (has_columns(params.scaled.scales.b)) {
                multiplier.run(blocks, sums,
                               BlockScales<Policy, true>(params, work(), shared, row));
            } else {
                multiplier.run(blocks, sums,
                               BlockScales<Policy, false>(params, work(), shared, row));
            }
        } else {
            multiplier.run(blocks, sums);
        }
        if constexpr (Policy::kSplitsInCluster) {
            if (params.split.in_cluster) {
                ClusterSplit<Policy>(params, shared).run(of_sums, work(), consumer, sums);
                continue;
            }
        }
        if (!params.is_whole(index)) {
            GridSplit<Policy>(params, shared).publish(index, consumer, sums);
            continue;
        }
        if constexpr (kScaled) {
            float scaled[Policy::kSubtiles][Policy::kSums];
            apply_scales<Policy>(params, work, row, sums, scaled);
            store.run(work, scaled);
        } else {
            if constexpr (Policy::kHalves) apply_exponents<Policy>(params, work(), row, sums);
            store.run(work, sums);
        }
    }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerSm)
    gemm_kernel(const __grid_constant__ Params params) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(kAlignment) unsigned char dynamic_shared[];
    const SharedMemory<Policy> shared = {ptx::opaque(ptx::shared_address(dynamic_shared)),
                                         params.ring};
    // Through a shuffle, so that the compiler knows all lanes to be in one warp: it computes in
    // uniform registers then, as it does for a thread that is alone (elect_one), a third fewer
    // instructions for a stage.
    constexpr int kWarps = kWarpgroup / 32;
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0);
    const int warpgroup = warp / kWarps, role = warp % kWarps;
    if (threadIdx.x == 0) init_barriers(params, shared);
    if (warpgroup == Policy::kConsumers) {
        ptx::shrink_registers<Policy::kProducerRegisters>();
        if (role > 0) {
            const bool stores = role <= Policy::kConsumers && params.stores_boxes();
            StoreWarp<Policy> store_warp(params, shared, role - 1);
            if (stores && ptx::elect_one()) store_warp.prefetch_maps();
            if (!await_start<Policy>(params)) return;
            if (stores && ptx::elect_one()) store_warp.run();
            if constexpr (Policy::kBlockScales) {
                if (role == kWarps - 1 && params.has_block_scales) {
                    ScaleWarp<Policy>(params, shared).run();
                }
            }
        } else {
            // Waits for the predecessor by itself, when it knows what it will load.
            Producer<Policy>(params, shared).run([&] {
                if constexpr (Policy::kHalves) {
                    return await_start<Policy>(params);
                } else {
                    meet<Policy>(params);
                    return true;
                }
            });
        }
    } else {
        if (!await_start<Policy>(params)) return;
        ptx::grow_registers<Policy::kConsumerRegisters>();
        // wgmma must not be in flight where a function is called.
        with_epilogue<Policy>(params, [&](const auto& epilogue) __attribute__((always_inline)) {
            consume(params, shared, warpgroup, epilogue);
        });
        if (params.split.shares > 0) {
            with_epilogue<Policy>(params, [&](const auto& epilogue) {
                GridSplit<Policy>(params, shared).add_up(epilogue);
            });
        }
    }
#elif defined(__CUDA_ARCH__)
    TCGEMM_TRAP_WRONG_ARCH("sm90_wgmma");
#endif
}

}  // namespace tcgemm::sm90_wgmma
