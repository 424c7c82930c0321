// Whole numbers in steps. Both arguments are positive or zero, `step` is not zero.
#pragma once

#include <cstdint>

namespace tcgemm {

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t step) {
    return value / step + (value % step != 0 ? 1 : 0);
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
    return divide_up(value, step) * step;
}

}  // namespace tcgemm
