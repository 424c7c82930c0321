// Divisor with the upper half of a product of 32 bits: three instructions instead of six, for
// kernels that wait for them. CUDA cores' kernels have no registers for it: INT8 spills.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"

namespace tcgemm::device {

class FastDivisor {
   public:
    FastDivisor() = default;  // by 1
    // From 1 to 2^31 - 1.
    explicit FastDivisor(std::int64_t by) {
        while (std::int64_t{1} << shift_ < by) ++shift_;
        const std::uint64_t power = std::uint64_t{1} << (31 + shift_);
        multiplier_ = static_cast<std::uint32_t>((power + static_cast<std::uint64_t>(by) - 1) / by);
    }

    // n / by, rounded down. n < 2^31.
    TCGEMM_HOST_DEVICE std::uint32_t divide(std::uint32_t n) const {
#if defined(__CUDA_ARCH__)
        return __umulhi(2 * n, multiplier_) >> shift_;
#else
        return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier_ >> 31) >> shift_);
#endif
    }

   private:
    int shift_ = 0;
    std::uint32_t multiplier_ = 1u << 31;  // 2^(31 + shift) / by, rounded up
};

}  // namespace tcgemm::device
