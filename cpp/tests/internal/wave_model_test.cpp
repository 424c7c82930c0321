#include <cstdint>

#include "kernels/wave_model.hpp"

#include "../check.hpp"

using namespace tcgemm;
using wave::RowCost;

namespace {

// As in rows.hpp of sm70_wmma, which takes CUDA's headers.
const RowCost kLarge = {{128, 256, 32, 64, 64, 256}, 1, 0.76, 5.0, 0.5, 0.8};
const RowCost kMedium = {{128, 128, 32, 64, 64, 128}, 2, 0.415, 4.0, 0.5, 0.8};
const RowCost kSmall = {{64, 64, 64, 32, 32, 128}, 3, 0.34, 1.5, 0.5, 0.8};

DeviceProperties h200() {
    DeviceProperties device;
    device.cc_major = 9;
    device.sm_count = 132;
    device.clock_khz = 1980000;
    device.l2_bytes = 60 << 20;
    return device;
}

Schedule schedule(std::int64_t m, std::int64_t n, std::int64_t k, const RowCost& row,
                  const DeviceProperties& device = h200(),
                  Determinism determinism = Determinism::run_to_run) {
    GemmProblem problem;
    problem.determinism = determinism;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.a = Operand::row_major(DType::f16, k);
    problem.b = problem.c = problem.d = Operand::row_major(DType::f16, n);
    return wave::schedule_row(row, ValidProblem::check(problem), device);
}

double cost(std::int64_t m, std::int64_t n, std::int64_t k, const RowCost& row) {
    return schedule(m, n, k, row).cost_us;
}

TEST(a_full_device_is_not_split) {
    for (const auto* row : {&kLarge, &kMedium, &kSmall}) {
        CHECK_EQ(schedule(4096, 4096, 4096, *row).split_k, 1);
        CHECK_EQ(schedule(4096, 4096, 4096, *row).workspace_bytes, std::size_t{0});
    }
}

TEST(large_tiles_are_taken_where_l2_is_narrow) {
    DeviceProperties rtx3090;
    rtx3090.cc_major = 8;
    rtx3090.cc_minor = 6;
    rtx3090.sm_count = 82;
    rtx3090.clock_khz = 1695000;
    rtx3090.l2_bytes = 6 << 20;
    const auto on_it = [&](std::int64_t size, const RowCost& row) {
        return schedule(size, size, size, row, rtx3090).cost_us;
    };
    CHECK(on_it(4096, kMedium) < on_it(4096, kSmall));
    CHECK(on_it(256, kSmall) < on_it(256, kMedium));
}

TEST(few_fp64_units_take_as_long_on_tensor_cores) {
    for (const int cc : {86, 89, 120, 121}) {
        CHECK_EQ(tensor_rate(cc, DType::f64), 2 * fp64_lanes(cc));
    }
    for (const int cc : {80, 90, 100}) {
        CHECK_EQ(tensor_rate(cc, DType::f64), 4 * fp64_lanes(cc));
    }
    DeviceProperties rtx5090;  // 1.6 TFLOP/s in FP64
    rtx5090.cc_major = 12;
    rtx5090.sm_count = 170;
    rtx5090.clock_khz = 2407000;
    rtx5090.l2_bytes = 96 << 20;
    const RowCost doubles = {
        {128, 128, 16, 64, 32, 256}, 1, 1.055, 5.0, 1.06, 1.06, DType::f64, DType::f64};
    constexpr double kFlop = 2.0 * 4096 * 4096 * 4096;
    CHECK(schedule(4096, 4096, 4096, doubles, rtx5090).cost_us > kFlop / 1.7e6);
}

TEST(a_long_k_is_split_and_rows_of_partial_sums_are_padded) {
    const Schedule split = schedule(128, 126, 65536, kSmall);
    CHECK(split.split_k >= 16);
    CHECK_EQ(split.workspace_bytes, std::size_t(split.split_k) * 128 * 128 * 4);
}

TEST(n_and_k_alone_split_batch_invariant_products) {
    for (const RowCost& row : {kSmall, kLarge}) {
        for (const std::int64_t m : {1, 128, 4096, 1 << 20}) {
            const auto of_k = [&](std::int64_t k) {
                return schedule(m, 126, k, row, h200(), Determinism::batch_invariant);
            };
            CHECK_EQ(of_k(65536).split_k, 16);
            CHECK_EQ(of_k(65536).part_step, kInvariantStep);
            CHECK_EQ(of_k(65536).workspace_bytes, std::size_t(m) * 16 * 128 * 4);
            CHECK_EQ(of_k(16000).split_k, 1);
            CHECK_EQ(of_k(16000).workspace_bytes, std::size_t{0});
        }
    }
}

TEST(a_short_k_is_not_split) {
    CHECK_EQ(schedule(64, 64, 128, kSmall).split_k, 1);
    CHECK_EQ(schedule(64, 64, 0, kSmall).split_k, 1);
}

// What was the fastest on an H200.
TEST(tiles_suit_the_size) {
    for (const std::int64_t size : {64, 256, 512, 1024}) {
        CHECK(cost(size, size, size, kSmall) < cost(size, size, size, kMedium));
        CHECK(cost(size, size, size, kSmall) < cost(size, size, size, kLarge));
    }
    for (const std::int64_t size : {2048, 4096, 8192}) {
        CHECK(cost(size, size, size, kLarge) < cost(size, size, size, kMedium));
        CHECK(cost(size, size, size, kLarge) < cost(size, size, size, kSmall));
    }
    // One tile column more than four waves of the large tile.
    CHECK(cost(4096, 4100, 4096, kMedium) < cost(4096, 4100, 4096, kLarge));
    CHECK(cost(16, 8192, 8192, kSmall) < cost(16, 8192, 8192, kLarge));
}

TEST(the_choice_does_not_need_a_known_clock) {
    DeviceProperties device = h200();
    device.clock_khz = 0;
    CHECK(schedule(4096, 4096, 4096, kLarge, device).cost_us > 0);
}

}  // namespace

int main() { return check::run(); }
