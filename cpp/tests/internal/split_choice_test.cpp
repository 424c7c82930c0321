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

ValidProblem invariant(std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmProblem problem = simt_test::product(m, n, k).as_given();
    problem.determinism = Determinism::batch_invariant;
    return ValidProblem::check(problem);
}

TEST(n_and_k_alone_choose_the_parts_of_a_batch_invariant_product) {
    constexpr InvariantSplit kSplit = {1024, 512, 32};
    CHECK_EQ(invariant_parts(simt_test::product(1, 40, 8192), kSplit), 1);  // it is none
    for (const std::int64_t m : {1, 7, 1000}) {
        CHECK_EQ(invariant_parts(invariant(m, 40, 1023), kSplit), 1);
        CHECK_EQ(invariant_parts(invariant(m, 40, 1024), kSplit), 2);
        CHECK_EQ(invariant_parts(invariant(m, 40, 8192), kSplit), 16);
        CHECK_EQ(invariant_parts(invariant(m, 40, 1 << 20), kSplit), 66);  // two blocks each
        CHECK_EQ(invariant_parts(invariant(m, 4000, 1 << 20), kSplit), 1);
    }
    // A column-major D is computed as D^T: N is still the user's.
    GemmProblem across = invariant(40, 4000, 8192).as_given();
    across.d = across.c = Operand::col_major(DType::f32, 40);
    const ValidProblem transposed = ValidProblem::check(across);
    CHECK(transposed.is_transposed());
    CHECK_EQ(invariant_parts(transposed, kSplit), 1);
}

TEST(parts_of_a_batch_invariant_product_are_none_empty_and_no_larger_than_a) {
    for (std::int64_t k = 1024; k < 9000; k += 37) {
        for (const std::int64_t n : {1, 33, 500, 1500}) {
            const std::int64_t parts = invariant_parts(invariant(1, n, k), {1024, 512, 32});
            const std::int64_t steps = divide_up(k, kInvariantStep);
            CHECK((parts - 1) * divide_up(steps, parts) < steps);
            CHECK(parts == 1 || 2 * parts * n <= k);
        }
    }
}

}  // namespace

int main() { return check::run(); }
