// What the compiler must not see through.
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

// Hides where a value comes from: the compiler would compute it anew in a loop, out of special
// registers that take longer to read than the loop has, or keep what follows from it in registers
// that a loop needs.
__device__ __forceinline__ std::uint32_t opaque(std::uint32_t value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ __forceinline__ int opaque(int value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ __forceinline__ std::int64_t opaque(std::int64_t value) {
    asm volatile("" : "+l"(value));
    return value;
}
template <class T>
__device__ __forceinline__ T* opaque(T* pointer) {
    asm volatile("" : "+l"(pointer));
    return pointer;
}

}  // namespace tcgemm::device::ptx
