#include "core/math.hpp"

#include <cstdint>
#include <limits>

#include "../check.hpp"

using namespace tcgemm;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(steps_are_counted_and_filled_up) {
    CHECK_EQ(divide_up(0, 7), 0);
    CHECK_EQ(divide_up(1, 7), 1);
    CHECK_EQ(divide_up(7, 7), 1);
    CHECK_EQ(divide_up(8, 7), 2);
    CHECK_EQ(round_up(0, 16), 0);
    CHECK_EQ(round_up(17, 16), 32);
}

TEST(no_sum_on_the_way_overflows) {
    CHECK_EQ(divide_up(kMost, 128), std::int64_t{1} << 56);
    CHECK_EQ(divide_up(kMost, kMost), 1);
    CHECK_EQ(divide_up(kMost - 1, kMost), 1);
}

TEST(logarithms_are_rounded_down) {
    for (int log2 = 0; log2 < 63; ++log2) {
        const std::int64_t power = std::int64_t{1} << log2;
        CHECK_EQ(log2_down(power), log2);
        CHECK_EQ(log2_down(power + (power - 1)), log2);
    }
    CHECK_EQ(log2_down(0), 0);
}

}  // namespace

int main() { return check::run(); }
