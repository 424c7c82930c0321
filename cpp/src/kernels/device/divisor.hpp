// Division by a number that the host knows, as a multiplication and a shift: the device's own takes
// some 20 instructions, one waiting for the other. Granlund and Montgomery, "Division by invariant
// integers using multiplication", 1994.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"

namespace tcgemm::device {

class Divisor {
   public:
    Divisor() = default;  // by 1
    // From 1 to 2^31 - 1.
    explicit Divisor(std::int64_t by) {
        while (std::int64_t{1} << (shift_ - 31) < by) ++shift_;
        const std::uint64_t power = std::uint64_t{1} << shift_;
        multiplier_ = static_cast<std::uint32_t>((power + static_cast<std::uint64_t>(by) - 1) / by);
    }

    // n / by, rounded down. n < 2^31.
    TCGEMM_HOST_DEVICE std::uint32_t divide(std::uint32_t n) const {
        return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> shift_);
    }

   private:
    int shift_ = 31;
    std::uint32_t multiplier_ = 1u << 31;  // 2^shift / by, rounded up
};

}  // namespace tcgemm::device
