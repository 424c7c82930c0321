// Divisor with the upper half of a product of 32 bits: three instructions instead of six, for
// kernels that wait for them. Tiles on CUDA cores have no registers for it: INT8 spills.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "kernels/device/divisor.hpp"

namespace tcgemm::device {

class FastDivisor {
   public:
    FastDivisor() = default;  // by 1
    explicit FastDivisor(std::int64_t by) : by_(by) {}

    // n / by, rounded down. n < 2^31.
    TCGEMM_HOST_DEVICE std::uint32_t divide(std::uint32_t n) const {
#if defined(__CUDA_ARCH__)
        return __umulhi(2 * n, by_.multiplier) >> by_.log2;
#else
        return static_cast<std::uint32_t>((std::uint64_t{n} * by_.multiplier >> 31) >> by_.log2);
#endif
    }

   private:
    Reciprocal by_;
};

}  // namespace tcgemm::device
