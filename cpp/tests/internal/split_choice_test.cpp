#include <cstdint>

#include "../check.hpp"
#include "kernels/split_k/split_choice.hpp"
#include "simt_products.hpp"

using namespace tcgemm;

namespace {

// A product whose parts are all at work at once, and take `each_us` to be added up.
Schedule split(std::int64_t steps, double each_us, SplitLimits limits) {
    limits.steps = steps;
    return cheapest_split(simt_test::product(30, 37, steps * 256), limits, [&](int parts) {
        return static_cast<double>(divide_up(steps, parts)) + each_us * (parts - 1);
    });
}

constexpr SplitLimits kLimits = {1, 1, 128, 4};

TEST(the_least_cost_is_chosen) {
    CHECK_EQ(split(64, 1e6, kLimits).split_k, 1);
    CHECK_EQ(split(64, 1, kLimits).split_k, 8);
    CHECK(split(64, 0.01, kLimits).split_k >= 32);
    CHECK_EQ(split(1, 0, kLimits).split_k, 1);
    CHECK_EQ(split(0, 0, kLimits).split_k, 1);
}

TEST(the_workspace_holds_rows_of_whole_vectors) {
    CHECK_EQ(split(64, 1e6, kLimits).workspace_bytes, std::size_t{0});
    CHECK_EQ(split(64, 1, kLimits).workspace_bytes, std::size_t{8 * 30 * 40 * 4});
}

TEST(no_part_is_empty) {
    for (std::int64_t steps = 1; steps < 300; ++steps) {
        const int parts = split(steps, 0.05, kLimits).split_k;
        CHECK((parts - 1) * divide_up(steps, parts) < steps);
    }
}

TEST(limits_hold) {
    CHECK_EQ(split(64, 0, {1, 1, 1, 4}).split_k, 1);
    CHECK(split(64, 0, {1, 1, 8, 4}).split_k <= 8);
    CHECK(split(64, 0, {1, 16, 128, 4}).split_k <= 4);
    // 30 x 40 sums of this size take 128 MB a part.
    CHECK_EQ(split(64, 0, {1, 1, 128, 111848}).split_k, 2);
}

}  // namespace

int main() { return check::run(); }
