// Flags in global memory that tell other blocks that something is there: what was written before
// the release can be read behind the acquire that sees it (sm_70 and newer).
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

__device__ __forceinline__ void store_release(std::uint64_t* address, std::uint64_t value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
__device__ __forceinline__ std::uint64_t load_acquire(const std::uint64_t* address) {
    std::uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

}  // namespace tcgemm::device::ptx
