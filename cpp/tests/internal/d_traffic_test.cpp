#include "kernels/d_traffic.hpp"

#include <cstdint>

#include "../check.hpp"

using namespace tcgemm;

namespace {

DeviceProperties with_l2(std::int64_t bytes) {
    DeviceProperties device;
    device.device = Device::cuda(0);
    device.l2_bytes = bytes;
    return device;
}

struct Lines {
    std::int64_t count, length, step;  // elements
    bool are_columns = false;
};

ValidProblem product(const Lines& lines, int alignment = 16) {
    GemmProblem p;
    p.m = lines.count;
    p.n = lines.length;
    p.k = 8;
    p.a = Operand::row_major(DType::f16, p.k);
    p.b = Operand::row_major(DType::f16, p.n);
    p.d = Operand::row_major(DType::f16, lines.step);
    p.d.alignment = alignment;
    p.c = p.d;
    const ValidProblem problem = ValidProblem::check(p);
    return lines.are_columns ? problem.as_transposed() : problem;
}

double bytes(const Lines& lines, std::int64_t rows, std::int64_t columns, int alignment = 16,
             std::int64_t l2_bytes = 0) {
    return stored_bytes(product(lines, alignment), rows, columns, with_l2(l2_bytes));
}

TEST(lines_at_sectors_are_stored_as_they_are) {
    for (const bool are_columns : {false, true}) {
        const Lines lines = {1000, 4096, 4112, are_columns};
        CHECK_EQ(bytes(lines, 32, 32), 1000 * 4096 * 2.0);
    }
}

TEST(lines_amid_sectors_cost_more_the_more_parts_they_are_stored_in) {
    const Lines lines = {1000, 4095, 4095};
    const double all = 1000 * 4095 * 2.0;
    CHECK(bytes(lines, 32, 256) > all);
    CHECK(bytes(lines, 32, 64) - all > 3.9 * (bytes(lines, 32, 256) - all));
    CHECK_EQ(bytes(lines, 8, 256), bytes(lines, 128, 256));
    // Whole lines are one part, however wide the tile.
    CHECK_EQ(bytes(lines, 8, 8192), bytes(lines, 8, 4096));
}

TEST(whole_lines_that_follow_each_other_are_stored_as_one) {
    const Lines lines = {100000, 49, 49};
    const double all = 100000 * 49 * 2.0;
    CHECK_EQ(bytes(lines, 64, 64) - all, (bytes(lines, 32, 64) - all) / 2);
    CHECK(bytes(lines, 32, 64) < bytes({100000, 49, 51}, 32, 64));
    CHECK(bytes(lines, 32, 64) < bytes(lines, 32, 32));  // in two parts
    CHECK_EQ(bytes({100000, 49, 49, true}, 64, 32), bytes(lines, 32, 64));
}

TEST(of_columns_that_are_contiguous_the_rows_of_a_tile_count) {
    const Lines lines = {1000, 4095, 4095, true};
    CHECK_EQ(bytes(lines, 256, 32), bytes({1000, 4095, 4095}, 32, 256));
}

TEST(addresses_amid_sectors_count_where_all_lines_have_them) {
    const Lines lines = {1000, 4096, 4096};
    CHECK(bytes(lines, 32, 256, 2) > bytes(lines, 32, 256));
    // Of lines a multiple of 16 bytes apart, every other one begins at a sector.
    const double all = 1000 * 4096 * 2.0;
    CHECK_EQ(bytes({1000, 4096, 4104}, 32, 256) - all, (bytes(lines, 32, 256, 2) - all) / 2);
}

TEST(a_result_that_l2_holds_costs_nothing_more) {
    const Lines lines = {1000, 4095, 4095};
    CHECK_EQ(bytes(lines, 32, 32, 16, 64 << 20), 1000 * 4095 * 2.0);
    CHECK(bytes(lines, 32, 32, 16, 4 << 20) < bytes(lines, 32, 32));
}

GemmArgs launched(const Lines& lines, std::uintptr_t address, std::int64_t k) {
    GemmArgs args;
    args.m = lines.are_columns ? lines.length : lines.count;
    args.n = lines.are_columns ? lines.count : lines.length;
    args.k = k;
    args.b.dtype = args.d.dtype = DType::f16;
    args.d.data = reinterpret_cast<void*>(address);
    args.d.row_stride = lines.are_columns ? 1 : lines.step;
    args.d.col_stride = lines.are_columns ? lines.step : 1;
    return args;
}

TEST(tiles_follow_rows_of_a_large_d_while_b_stays_in_l2) {
    CHECK(walks_along_rows(launched({4000, 4095, 4095}, 4096, 64)));
    CHECK(walks_along_rows(launched({4000, 4096, 4096}, 4096, 64)));
    CHECK(!walks_along_rows(launched({4000, 4095, 4095, true}, 4096, 64)));
    CHECK(!walks_along_rows(launched({1000, 4095, 4095}, 4096, 64)));
    CHECK(!walks_along_rows(launched({1000, 1 << 20, (1 << 20) + 1}, 4096, 64)));
}

}  // namespace

int main() { return check::run(); }
