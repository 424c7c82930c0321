#include <cstdint>

#include "../check.hpp"
#include "kernels/simt/short_k_model.hpp"
#include "simt_products.hpp"

using namespace tcgemm;

namespace {

constexpr simt::ShortKCost kFloats = {8, 4, 128, 5, 8, 4};

double cost_us(std::int64_t m, std::int64_t n, std::int64_t k) {
    return simt::short_k_us(kFloats, simt_test::product(m, n, k), simt_test::h200());
}

TEST(vectors_are_loaded_where_they_are_whole_and_aligned) {
    using simt::LoadsOfB;
    const auto loads = [](const Operand& b, std::int64_t n, std::int64_t k,
                          std::int64_t alignment) {
        return simt::loads_of_b(b, n, k, 4, 4, alignment, 0);
    };
    const Operand rows = Operand::row_major(DType::f32, 40);
    CHECK(loads(rows, 40, 3, 16) == LoadsOfB::vectors);
    CHECK(loads(rows, 40, 3, 8) == LoadsOfB::elements);
    CHECK(loads(rows, 38, 3, 16) == LoadsOfB::elements);  // the last one would end behind the row
    CHECK(loads(Operand::row_major(DType::f32, 41), 40, 3, 16) == LoadsOfB::elements);
    CHECK(loads(Operand::row_major(DType::f32, 41), 40, 1, 16) == LoadsOfB::vectors);
    CHECK(loads(Operand::col_major(DType::f32, 40), 40, 40, 16) == LoadsOfB::elements);
}

TEST(a_long_d_costs_what_moving_it_takes) {
    const double moving_us = 8e6 * (3 + 3) * 4 / 4.2e6;
    CHECK(cost_us(3, 8000000, 3) > moving_us);
    CHECK(cost_us(3, 8000000, 3) < 3 * moving_us);
}

TEST(more_of_anything_costs_more) {
    double last = 0;
    for (std::int64_t k = 1; k <= 256; k += 5) {
        CHECK(cost_us(4, 100000, k) >= last);
        last = cost_us(4, 100000, k);
    }
    for (std::int64_t m = 1; m < 60; m += 8) {
        CHECK(cost_us(m + 8, 100000, 16) > cost_us(m, 100000, 16));
    }
}

// Computed as D^T the lanes of a warp store to different rows of D.
TEST(few_columns_are_computed_across_d_and_many_are_not) {
    const auto across_us = [](std::int64_t m, std::int64_t n, std::int64_t k) {
        return simt::short_k_us(kFloats, simt_test::product(m, n, k).turned(), simt_test::h200());
    };
    for (const std::int64_t k : {1, 4, 15}) {
        CHECK(across_us(1000000, 3, k) < cost_us(1000000, 3, k) / 3);
        CHECK(across_us(65536, 67, k) > 50);  // 62 us on an H100
        CHECK(across_us(4096, 4095, k) > 3 * cost_us(4096, 4095, k));
        CHECK(across_us(8192, 8192, k) > 2 * cost_us(8192, 8192, k));
    }
    CHECK(across_us(10000000, 6, 3) < 350);  // 202 us on an H200, whole columns of D one by one
}

}  // namespace

int main() { return check::run(); }
