// Registers, barriers and memory order of warpgroups and clusters (sm_90).
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

// The warpgroup gives registers back, or waits until it has so many a thread.
template <int kRegisters>
__device__ __forceinline__ void shrink_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void grow_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// One of the block's 16 barriers, for the `threads` that name it. 0 is __syncthreads().
__device__ __forceinline__ void named_barrier(int index, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(index), "r"(threads) : "memory");
}

// The same where not all of them come by the same instruction: bar.sync is for those that do.
__device__ __forceinline__ void named_barrier_of_roles(int index, int threads) {
    asm volatile("barrier.sync %0, %1;" ::"r"(index), "r"(threads) : "memory");
}

// Counts as having come there, without waiting for the others.
__device__ __forceinline__ void arrive_at_named_barrier(int index, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(index), "r"(threads) : "memory");
}

__device__ __forceinline__ std::uint32_t cluster_rank() {
    std::uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Returns when all threads of the cluster that have not ended are here. Says nothing about memory.
__device__ __forceinline__ void meet_cluster() {
    asm volatile(
        "barrier.cluster.arrive.relaxed.aligned;\n"
        "barrier.cluster.wait.aligned;" ::
            : "memory");
}

// True in one lane of a warp, all of which call it. The compiler knows what follows to be one
// thread's: it computes in uniform registers, and issues a bulk copy without a loop over the lanes
// that might ask for one.
__device__ __forceinline__ bool elect_one() {
    std::uint32_t is_elected;
    asm volatile(
        "{\n"
        "  .reg .pred elected;\n"
        "  elect.sync _|elected, 0xffffffff;\n"
        "  selp.b32 %0, 1, 0, elected;\n"
        "}\n"
        : "=r"(is_elected));
    return is_elected != 0;
}

}  // namespace tcgemm::device::ptx
