// The kernel of this family: TMA loads, wgmma, TMA stores, in warpgroups with roles.
//
//   producer     one thread: boxes of A and B into a ring of stages, as stages become empty
//   consumers    two warpgroups: multiply full stages; sum up parts of K; epilogue; store D
//
// Blocks are persistent: each goes through its list of tiles, and the producer is ahead by a ring
// of stages, so that loads go on while a tile is stored.
#pragma once

#include "kernels/device/arch_guard.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/sm90_wgmma/epilogue.cuh"
#include "kernels/sm90_wgmma/mainloop.cuh"
#include "kernels/sm90_wgmma/split_k.cuh"

namespace tcgemm::sm90_wgmma {

// Registers of a thread. Together they are what the block starts with: 168 each.
inline constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

template <class Policy>
__device__ __forceinline__ void set_up(const Params& params, SharedMemory<Policy> shared) {
    if (threadIdx.x == 0) {
        ptx::prefetch_tensor_map(&params.a);
        ptx::prefetch_tensor_map(&params.b);
        if (params.stores_by_tensor) ptx::prefetch_tensor_map(&params.d);
        constexpr int kWarps = Policy::kWarpgroupsPerTile * kWarpgroup / 32;
        for (int stage = 0; stage < Policy::kStages; ++stage) {
            ptx::init_barrier(shared.full(stage), 1);
            ptx::init_barrier(shared.empty(stage), kWarps * params.cluster);
        }
        for (int group = 0; group < Policy::kGroups; ++group) {
            ptx::init_barrier(shared.turn(group), kWarps);
        }
        ptx::fence_barrier_init();
    }
    if (params.cluster > 1) {
        ptx::synchronize_cluster();
    } else {
        __syncthreads();
    }
}

template <class Policy>
__device__ __forceinline__ void consume(const Params& params, SharedMemory<Policy> shared,
                                        int consumer) {
    const int group = Policy::kPingPong ? consumer : 0;
    const int row = Policy::kPingPong ? 0 : consumer * Policy::kRows;
    Multiplier<Policy> multiplier(params, shared, group, row);
    TileStore<Policy> store(params, shared, consumer, row);
    const SplitSum<Policy> split(params.split, consumer);

    WorkList<Policy> list(params);
    for (int turn = 0; list.has_next(); turn = (turn + 1) % Policy::kGroups) {
        const Work work = list.next();
        if (turn != group) {
            multiplier.skip(work.blocks);
            continue;
        }
        typename Multiplier<Policy>::Sums sums;
        multiplier.run(work.blocks, sums);
        if (params.split.count > 1 && !split.run(work, sums)) continue;
        store.run(work, sums);
    }
}

template <class Policy>
__global__ void __launch_bounds__(kThreads, 1) gemm_kernel(const __grid_constant__ Params params) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ unsigned char dynamic_shared[];
    const std::uint32_t begin = ptx::shared_address(dynamic_shared);
    const SharedMemory<Policy> shared = {(begin + kAlignment - 1) / kAlignment * kAlignment};
    set_up(params, shared);

    // Nothing in global memory is read or written before this.
    device::wait_for_predecessor();
    device::release_successor();
    const int warpgroup = threadIdx.x / kWarpgroup;
    if (warpgroup == kConsumers) {
        ptx::shrink_registers<kProducerRegisters>();
        if (threadIdx.x == kConsumers * kWarpgroup) Producer<Policy>(params, shared).run();
    } else {
        ptx::grow_registers<kConsumerRegisters>();
        consume(params, shared, warpgroup);
    }
#elif defined(__CUDA_ARCH__)
    TCGEMM_TRAP_WRONG_ARCH("sm90_wgmma");
#endif
}

}  // namespace tcgemm::sm90_wgmma
