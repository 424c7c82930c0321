#include <cstdint>

#include "../check.hpp"
#include "kernels/simt/outer_model.hpp"
#include "simt_products.hpp"

using namespace tcgemm;

namespace {

constexpr simt::OuterTile kFloats = {64, 128, 4, 4, 2, 32};

double cost_us(std::int64_t m, std::int64_t n, std::int64_t k) {
    return simt::outer_us(kFloats, simt_test::product(m, n, k), simt_test::h200());
}

TEST(tiles_begin_at_sectors_where_that_takes_none_more_or_d_is_large) {
    const auto step = [](std::int64_t row_bytes, std::int64_t m, std::int64_t n) {
        return simt::outer_column_step(kFloats, row_bytes, m, n, 1);
    };
    CHECK(step(4096, 1000, 1024) == 1);  // they do anyway
    CHECK(step(404, 1000, 101) == 8);
    CHECK(step(404, 1000, 121) == 8);    // 121 columns and 7 before
    CHECK(step(508, 1000, 127) == 1);    // a second tile for a few columns
    CHECK(step(508, 100000, 127) == 8);  // which a large D is worth
    CHECK(step(4092, 1000, 1023) == 8);  // one tile in nine
}

TEST(shared_memory_grows_with_k) {
    constexpr int kA = 64 * 36 * 4, kRowOfB = 137 * 4;
    CHECK(simt::outer_shared_bytes(kFloats, 0) == kA + 4 * kRowOfB);
    CHECK(simt::outer_shared_bytes(kFloats, 4) == kA + 4 * kRowOfB);
    CHECK(simt::outer_shared_bytes(kFloats, 9) == kA + 16 * kRowOfB);
    CHECK(simt::outer_shared_bytes(kFloats, 32) == kA + 32 * kRowOfB);
}

TEST(blocks_are_busy_for_as_long_as_each_other) {
    constexpr std::int64_t kResident = 264;
    CHECK(simt::outer_tiles_of_block(1, 1, kResident) == 1);
    CHECK(simt::outer_tiles_of_block(64, 33, kResident) == 8);   // 264 blocks
    CHECK(simt::outer_tiles_of_block(1024, 1, kResident) == 4);  // 256
    CHECK(simt::outer_tiles_of_block(3, 88, kResident) == 1);    // 264
    CHECK(simt::outer_tiles_of_block(2, 100000, kResident) == 2);
    CHECK(simt::outer_tiles_of_block(100000, 1000, kResident) == 16);
}

TEST(a_large_d_costs_what_storing_it_takes) {
    const double storing_us = 8192.0 * 8192 * 4 / 4.2e6;
    CHECK(cost_us(8192, 8192, 4) > storing_us);
    CHECK(cost_us(8192, 8192, 4) < 1.5 * storing_us);
}

TEST(more_of_anything_costs_more) {
    double last = 0;
    for (std::int64_t k = 1; k <= 32; ++k) {
        CHECK(cost_us(4096, 4096, k) >= last);
        last = cost_us(4096, 4096, k);
    }
    for (std::int64_t n = 512; n < 8192; n *= 2) {
        CHECK(cost_us(4096, 2 * n, 16) > cost_us(4096, n, 16));
        CHECK(cost_us(2 * n, 4096, 16) > cost_us(n, 4096, 16));
    }
}

// Computed as D^T the lanes of a warp store to different rows of D.
TEST(rows_of_d_are_stored_along) {
    const ValidProblem product = simt_test::product(4096, 4096, 16);
    CHECK(simt::outer_us(kFloats, product.as_transposed(), simt_test::h200()) >
          3 * cost_us(4096, 4096, 16));
}

}  // namespace

int main() { return check::run(); }
