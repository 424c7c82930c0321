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

// A value of 2, 4, 8 or 16 bytes.
template <class T>
__device__ __forceinline__ T load_shared(std::uint32_t address) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
    T value;
    if constexpr (sizeof(T) == 2) {
        auto& bits = reinterpret_cast<std::uint16_t&>(value);
        asm volatile("ld.shared.b16 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
        return value;
    } else {
        auto* const word = reinterpret_cast<std::uint32_t*>(&value);
        if constexpr (sizeof(T) == 4) {
            asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word[0]) : "r"(address) : "memory");
        } else if constexpr (sizeof(T) == 8) {
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                         : "=r"(word[0]), "=r"(word[1])
                         : "r"(address)
                         : "memory");
        } else {
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                         : "r"(address)
                         : "memory");
        }
        return value;
    }
}
// A value of 2, 4, 8 or 16 bytes.
template <class T>
__device__ __forceinline__ void store_shared(std::uint32_t address, const T& value) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
    const auto* const word = reinterpret_cast<const std::uint32_t*>(&value);
    if constexpr (sizeof(T) == 2) {
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(address),
                     "h"(reinterpret_cast<const std::uint16_t&>(value))
                     : "memory");
    } else if constexpr (sizeof(T) == 4) {
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word[0]) : "memory");
    } else if constexpr (sizeof(T) == 8) {
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(word[0]), "r"(word[1])
                     : "memory");
    } else {
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(word[0]),
                     "r"(word[1]), "r"(word[2]), "r"(word[3])
                     : "memory");
    }
}

// Four 8 x 8 matrices of 16-bit elements between the registers of a warp (each lane holds two
// neighbours of each) and shared memory; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t shared, std::uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}
__device__ __forceinline__ void store_matrices(std::uint32_t shared, const std::uint32_t (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
// The same, each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t shared,
                                                         std::uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}
__device__ __forceinline__ void store_matrices_transposed(std::uint32_t shared,
                                                          const std::uint32_t (&r)[4]) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}

}  // namespace tcgemm::device::ptx
