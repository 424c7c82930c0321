// Whole numbers, in steps and as powers of two. Arguments are positive or zero, `step` is not zero.
#pragma once

#include <cstdint>

namespace tcgemm {

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t step) {
    return value / step + (value % step != 0 ? 1 : 0);
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
    return divide_up(value, step) * step;
}

// Rounded down; 0 for 0.
constexpr int log2_down(std::int64_t value) {
    int log2 = 0;
    while (value >>= 1) ++log2;
    return log2;
}

}  // namespace tcgemm
