#include "kernels/rejects.hpp"

#include <cstdint>

#include "../check.hpp"

using namespace tcgemm;

namespace {

struct Asked {
    DType operands;
    Accumulate accumulate;
    Precision precision = Precision::automatic;
    Determinism determinism = Determinism::run_to_run;
};

bool keeps_at(Accumulate has, const Asked& asked, std::int64_t k, int cc = 90) {
    GemmProblem p;
    p.m = p.n = 64;
    p.k = k;
    p.a = Operand::row_major(asked.operands, p.k);
    p.b = Operand::row_major(asked.operands, p.n);
    p.c = p.d = Operand::row_major(DType::f16, p.n);
    p.accumulate = asked.accumulate;
    p.precision = asked.precision;
    p.determinism = asked.determinism;
    DeviceProperties device;
    device.device = Device::cuda(0);
    device.cc_major = cc / 10;
    device.cc_minor = cc % 10;
    return keeps(has, ValidProblem::check(p), device);
}

// Whether promoted sums may be of another kind up to a K of `longest`, and not of a longer one.
void check_longest(Accumulate has, Asked asked, std::int64_t longest) {
    asked.accumulate = Accumulate::promoted;
    CHECK(keeps_at(Accumulate::promoted, asked, longest + 1));
    CHECK(keeps_at(has, asked, longest));
    CHECK(!keeps_at(has, asked, longest + 1));
    asked.determinism = Determinism::batch_invariant;
    CHECK(!keeps_at(has, asked, longest));
}

TEST(one_accumulator_keeps_promoted_sums_of_a_short_k) {
    check_longest(Accumulate::fp32, {DType::f16, {}}, 256);
    check_longest(Accumulate::fp32, {DType::bf16, {}}, 256);
    check_longest(Accumulate::fp32, {DType::f32, {}}, 1024);
    check_longest(Accumulate::fp32, {DType::e4m3, {}}, 65536);
}

// What Hopper's kernels add to the second accumulator at once.
TEST(fast_sums_are_promoted_ones_of_128_k_on_hopper) {
    check_longest(Accumulate::fast, {DType::e4m3, {}}, 128);
    check_longest(Accumulate::fast, {DType::e5m2, {}}, 128);
    const Asked promoted = {DType::e4m3, Accumulate::promoted};
    CHECK(!keeps_at(Accumulate::fast, promoted, 128, 89));
    CHECK(!keeps_at(Accumulate::fast, promoted, 128, 120));
}

TEST(better_sums_keep_what_fast_ones_and_those_in_fp16_promise) {
    for (const Accumulate has : {Accumulate::fp32, Accumulate::promoted}) {
        CHECK(keeps_at(has, {DType::e4m3, Accumulate::fast}, 1 << 20));
    }
    const Asked fp16 = {DType::f16, Accumulate::fp16};
    CHECK(keeps_at(Accumulate::fp32, fp16, 1 << 20));
    CHECK(keeps_at(Accumulate::fp32, fp16, 1 << 20, 80));
    CHECK(!keeps_at(Accumulate::fp32, fp16, 16, 86));
    CHECK(!keeps_at(Accumulate::fp16, {DType::f16, Accumulate::fp32}, 16));
}

}  // namespace

int main() { return check::run(); }
