// Whole numbers in steps. Both arguments are positive or zero, `step` is not zero.
#pragma once

#include <cstdint>

namespace tcgemm {

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step;
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
    return divide_up(value, step) * step;
}

}  // namespace tcgemm
