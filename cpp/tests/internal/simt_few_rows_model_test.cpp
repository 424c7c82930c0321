#include <cstdint>

#include "../check.hpp"
#include "kernels/simt/few_rows_model.hpp"
#include "simt_products.hpp"

using namespace tcgemm;

namespace {

// float32, neighbours along k.
constexpr simt::FewRowsCost kOneRow = {1, 32, 256, 3, 0.4, 4, 4};
constexpr simt::FewRowsCost kEightRows = {8, 32, 256, 2, 0.86, 4, 4};

Schedule schedule(std::int64_t m, std::int64_t n, std::int64_t k,
                  const simt::FewRowsCost& kernel = kEightRows) {
    return simt::few_rows_schedule(kernel, simt_test::product(m, n, k), simt_test::h200());
}

TEST(a_large_b_costs_what_reading_it_takes) {
    const double reading_us = 8191.0 * 8191 * 4 / 4.2e6;
    for (const auto* const kernel : {&kOneRow, &kEightRows}) {
        const Schedule one = schedule(1, 8191, 8191, *kernel);
        CHECK(one.cost_us > reading_us);
        CHECK(one.cost_us < 1.25 * reading_us);
    }
    CHECK(schedule(8, 8191, 8191).cost_us < schedule(8, 8191, 8191, kOneRow).cost_us);
    CHECK(schedule(32, 8191, 8191).cost_us > 2 * schedule(8, 8191, 8191).cost_us);
}

TEST(every_block_of_rows_costs_more) {
    double last = 0;
    for (std::int64_t m = 1; m < 200; m += 8) {
        const double cost = schedule(m, 4096, 4096).cost_us;
        CHECK(cost >= last);
        last = cost;
    }
}

TEST(k_is_split_where_columns_leave_multiprocessors_idle) {
    CHECK_EQ(schedule(1, 50257, 768).split_k, 1);
    const Schedule split = schedule(3, 255, 20000);
    CHECK(split.split_k >= 8);
    // Flags, and sums of whole tiles, however wide these are: see PartsOfK.
    simt::FewRowsCost wide = kEightRows;
    wide.cols = 64;
    for (const Schedule& its : {split, schedule(3, 255, 20000, wide)}) {
        const std::size_t slots = std::size_t(its.split_k) * 8;
        CHECK_EQ(its.workspace_bytes, (slots * 8 + 255) / 256 * 256 + slots * 8 * 32 * 4);
    }
    CHECK_EQ(schedule(1, 64, 256).split_k, 1);
    CHECK_EQ(schedule(1, 64, 0).split_k, 1);
}

TEST(no_part_of_k_is_empty) {
    for (std::int64_t k = 1; k < 40000; k += 777) {
        const std::int64_t steps = (k + 255) / 256;
        const int parts = schedule(2, 40, k).split_k;
        CHECK((parts - 1) * ((steps + parts - 1) / parts) < steps);
    }
}

}  // namespace

int main() { return check::run(); }
