// Barriers in shared memory that count arrivals (sm_80) and bytes of bulk copies (sm_90).
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

// A phase ends when `arrivals` threads have arrived and all bytes that were announced are there.
__device__ __forceinline__ void init_barrier(std::uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Makes init_barrier visible to the copy engine and to the other blocks of the cluster.
__device__ __forceinline__ void fence_barrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive_and_expect_bytes(std::uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// The address of the same place in block `rank` of the cluster.
__device__ __forceinline__ std::uint32_t address_in_cluster(std::uint32_t address, int rank) {
    std::uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

// At a barrier of any block of the cluster. Publishes what the thread did to its own block only; a
// wider scope would cost a fence of the whole GPU.
__device__ __forceinline__ void arrive_in_cluster(std::uint32_t remote) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
}

// Writes to a block of the cluster, and counts the 16 bytes at a barrier of that block once they
// are there: no fence is needed.
__device__ __forceinline__ void send(std::uint32_t remote, float4 value,
                                     std::uint32_t remote_barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(remote),
        "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(__float_as_uint(value.z)),
        "r"(__float_as_uint(value.w)), "r"(remote_barrier)
        : "memory");
}

// Whether the phase with this parity has ended. Phases count from 0: that of parity 1 of a fresh
// barrier has.
__device__ __forceinline__ bool test_phase(std::uint32_t barrier, std::uint32_t parity) {
    std::uint32_t done;
    asm volatile(
        "{\n"
        "  .reg .pred done;\n"
        "  mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "  selp.b32 %0, 1, 0, done;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done != 0;
}

// Waits for the end of the phase with this parity. See test_phase().
__device__ __forceinline__ void wait_for_phase(std::uint32_t barrier, std::uint32_t parity) {
    std::uint32_t done = 0;
    do {
        asm volatile(
            "{\n"
            "  .reg .pred done;\n"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900  // may suspend the thread for a while
            "  mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
#else
            "  mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
#endif
            "  selp.b32 %0, 1, 0, done;\n"
            "}\n"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!done);
}

}  // namespace tcgemm::device::ptx
