// Shared memory: addresses, loads and stores of values and of matrices (load: sm_75, store: sm_90).
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A value of 1, 2, 4, 8 or 16 bytes.
template <class T>
__device__ __forceinline__ T load_shared(std::uint32_t address) {
    static_assert(sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0);
    T value;
    if constexpr (sizeof(T) == 1) {
        std::uint16_t bits;  // there are no smaller registers
        asm volatile("ld.shared.b8 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
        reinterpret_cast<std::uint8_t&>(value) = static_cast<std::uint8_t>(bits);
        return value;
    } else if constexpr (sizeof(T) == 2) {
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
    static_assert(sizeof(T) >= 2 && sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0);
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
// As load_shared<double>(), without the moves of its two words.
__device__ __forceinline__ double load_shared_f64(std::uint32_t shared) {
    double value;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(shared) : "memory");
    return value;
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
