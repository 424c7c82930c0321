#include <cstdint>

#include "../check.hpp"
#include "kernels/simt/cost_model.hpp"
#include "simt_products.hpp"

using namespace tcgemm;

namespace {

simt::TileCost tile(int block_m, int block_n, int resident, double efficiency) {
    simt::TileCost cost;
    cost.block_m = block_m;
    cost.block_n = block_n;
    cost.block_k = cost.step_k = 8;
    cost.resident = resident;
    cost.multiply_cycles = block_m * block_n * 8 / 128.0;
    cost.efficiency = efficiency;
    cost.element_bytes = cost.accumulator_bytes = 4;
    cost.splits = true;
    return cost;
}

Schedule schedule(std::int64_t m, std::int64_t n, std::int64_t k, const simt::TileCost& kernel) {
    return simt::tiles_schedule(kernel, simt_test::product(m, n, k), simt_test::h200());
}

const simt::TileCost kLarge = tile(128, 128, 2, 0.68), kNarrow = tile(32, 128, 4, 0.58),
                     kSmall = tile(32, 32, 12, 0.38);

TEST(a_full_device_is_not_split) {
    CHECK_EQ(schedule(8192, 8192, 8192, kLarge).split_k, 1);
    CHECK_EQ(schedule(8192, 8192, 8192, kLarge).workspace_bytes, std::size_t{0});
}

TEST(a_long_k_is_split) {
    const Schedule split = schedule(64, 64, 1 << 20, kSmall);
    CHECK(split.split_k >= 32);
    CHECK_EQ(split.workspace_bytes, std::size_t(split.split_k) * 64 * 64 * 4);
    // Rows of the parts are whole vectors.
    const Schedule ragged = schedule(64, 62, 1 << 20, kSmall);
    CHECK_EQ(ragged.workspace_bytes, std::size_t(ragged.split_k) * 64 * 64 * 4);
}

TEST(a_short_k_is_not_split) {
    CHECK_EQ(schedule(32, 32, 64, kSmall).split_k, 1);
    CHECK_EQ(schedule(32, 32, 0, kSmall).split_k, 1);
}

TEST(a_kernel_that_cannot_split_does_not) {
    simt::TileCost kernel = kSmall;
    kernel.splits = false;
    CHECK_EQ(schedule(64, 64, 1 << 20, kernel).split_k, 1);
}

TEST(tiles_suit_the_size) {
    CHECK(schedule(4096, 4096, 4096, kLarge).cost_us < schedule(4096, 4096, 4096, kSmall).cost_us);
    CHECK(schedule(100, 100, 100, kSmall).cost_us < schedule(100, 100, 100, kLarge).cost_us);
    CHECK(schedule(32, 8192, 8192, kNarrow).cost_us < schedule(32, 8192, 8192, kLarge).cost_us);
    CHECK(schedule(32, 8192, 8192, kNarrow).cost_us < schedule(8192, 32, 8192, kNarrow).cost_us);
    // 4096: 2 * 4096^3 operations at 43 TFLOP/s.
    const double us = schedule(4096, 4096, 4096, kLarge).cost_us;
    CHECK(us > 2800 && us < 3800);
}

}  // namespace

int main() { return check::run(); }
