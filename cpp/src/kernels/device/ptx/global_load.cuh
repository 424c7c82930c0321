// Loads from global memory that C++ cannot express.
#pragma once

#include <cstdint>

namespace tcgemm::device::ptx {

// 16 bytes at `address` (aligned to 16) where `valid`, otherwise zeros without an access. Through
// the read-only path. One predicated instruction: what the compiler makes of an `if` may copy the
// result and so wait for it at once, in place of when it is used (seen on sm_90: half the speed).
__device__ __forceinline__ uint4 load_or_zero(const void* address, bool valid) {
    uint4 value;
    asm volatile(
        "{\n"
        "  .reg .pred valid;\n"
        "  setp.ne.b32 valid, %5, 0;\n"
        "  mov.b32 %0, 0;\n"
        "  mov.b32 %1, 0;\n"
        "  mov.b32 %2, 0;\n"
        "  mov.b32 %3, 0;\n"
        "  @valid ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n"
        "}\n"
        : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
        : "l"(address), "r"(static_cast<int>(valid)));
    return value;
}

}  // namespace tcgemm::device::ptx
