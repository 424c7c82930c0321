// Division by a number that the host knows, as a multiplication and a shift: the device's own takes
// some 20 instructions, one waiting for the other. Granlund and Montgomery, "Division by invariant
// integers using multiplication", 1994.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace tcgemm::device {

// What a division by `by`, from 1 to 2^31 - 1, multiplies by and shifts.
struct Reciprocal {
    int log2 = 0;                         // of the first power of two that is not less
    std::uint32_t multiplier = 1u << 31;  // 2^(31 + log2) / by, rounded up

    Reciprocal() = default;
    explicit Reciprocal(std::int64_t by) {
        while (std::int64_t{1} << log2 < by) ++log2;
        const std::uint64_t power = std::uint64_t{1} << (31 + log2);
        multiplier = static_cast<std::uint32_t>((power + static_cast<std::uint64_t>(by) - 1) / by);
    }
};

class Divisor {
   public:
    Divisor() = default;  // by 1
    explicit Divisor(std::int64_t by) : Divisor(Reciprocal(by)) {}

    // n / by, rounded down. n < 2^31.
    TCGEMM_HOST_DEVICE std::uint32_t divide(std::uint32_t n) const {
        return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> shift_);
    }

   private:
    explicit Divisor(const Reciprocal& by) : shift_(31 + by.log2), multiplier_(by.multiplier) {}

    int shift_ = 31;
    std::uint32_t multiplier_ = 1u << 31;  // 2^shift / by, rounded up
};

}  // namespace tcgemm::device
