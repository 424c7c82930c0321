// Copies from global to shared memory that do not pass through registers (sm_80).
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

// 16 bytes to shared memory, in the background and past L1, where `valid` is not 0; otherwise
// nothing. Both addresses are multiples of 16.
__device__ __forceinline__ void copy_async(std::uint32_t shared, const void* address,
                                           unsigned valid) {
    asm volatile(
        "{\n"
        "  .reg .pred valid;\n"
        "  setp.ne.b32 valid, %2, 0;\n"
        "  @valid cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n"
        "}\n" ::"r"(shared),
        "l"(address), "r"(valid)
        : "memory");
}
// The same with `count` bytes (0 to 16) from `address` and zeros behind them. Nothing is read where
// count is 0.
__device__ __forceinline__ void copy_async_part(std::uint32_t shared, const void* address,
                                                int count) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(address),
                 "r"(count)
                 : "memory");
}

// As copy_async(), through L1: for what the blocks of an SM share.
__device__ __forceinline__ void copy_async_through_l1(std::uint32_t shared, const void* address,
                                                      unsigned valid) {
    asm volatile(
        "{\n"
        "  .reg .pred valid;\n"
        "  setp.ne.b32 valid, %2, 0;\n"
        "  @valid cp.async.ca.shared.global [%0], [%1], 16;\n"
        "}\n" ::"r"(shared),
        "l"(address), "r"(valid)
        : "memory");
}

// The same of two elements of 8 bytes, each where its own is not 0. Aligned to 8 bytes.
__device__ __forceinline__ void copy_async_two(std::uint32_t shared, const void* address,
                                               unsigned first, unsigned second) {
    asm volatile(
        "{\n"
        "  .reg .pred first, second;\n"
        "  setp.ne.b32 first, %2, 0;\n"
        "  setp.ne.b32 second, %3, 0;\n"
        "  @first cp.async.ca.shared.global [%0], [%1], 8;\n"
        "  @second cp.async.ca.shared.global [%0+8], [%1+8], 8;\n"
        "}\n" ::"r"(shared),
        "l"(address), "r"(first), "r"(second)
        : "memory");
}
// The same, with zeros where its own is 0. (Two copies would keep addresses of their own.)
__device__ __forceinline__ void copy_async_two_or_zeros(std::uint32_t shared, const void* address,
                                                        bool first, bool second) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 8, %2;\n"
        "cp.async.ca.shared.global [%0+8], [%1+8], 8, %3;\n" ::"r"(shared),
        "l"(address), "r"(first ? 8 : 0), "r"(second ? 8 : 0)
        : "memory");
}

// 4, 8 or 16 bytes, aligned to as many, through L1, or as many zeros. Nothing is read where `valid`
// is false.
template <int kBytes>
__device__ __forceinline__ void copy_async_or_zeros(std::uint32_t shared, const void* address,
                                                    bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(address),
                 "n"(kBytes), "r"(valid ? kBytes : 0)
                 : "memory");
}
// 4 bytes, aligned to as many.
__device__ __forceinline__ void copy_async_4(std::uint32_t shared, const void* address) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(address) : "memory");
}
// The thread arrives at a barrier that counts it when all its copies so far have come.
__device__ __forceinline__ void arrive_behind_copies(std::uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// The thread's copies, in groups or not.
__device__ __forceinline__ void wait_for_all_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// The thread's copies since the last call are a group.
__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until no more than the thread's last kPending groups are under way.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace tcgemm::device::ptx
