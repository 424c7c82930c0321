// The epilogue `scaled`, which the GPU kernels share, on the host: which scale an element gets.
#include "kernels/epilogue/scaled.hpp"

#include <vector>

#include "../check.hpp"

using namespace tcgemm;

namespace {

struct Fixture {
    std::vector<float> a, b;
    float d = 0.5f;
    ScaleArgs scales;
    GemmArgs args;

    Fixture() : a(64), b(64) {
        for (int i = 0; i < 64; ++i) a[i] = static_cast<float>(1 + i), b[i] = 1.0f / (1 + i);
        args.alpha = 2, args.beta = 3;
        args.batch.rank = 1, args.batch.count = args.batch.extent[0] = 3;
        args.scales = &scales;
    }
    epilogue::ScaledBatch batch(int index) const {
        return epilogue::Scaled(args).in_batch(args.batch, index);
    }
};

TEST(without_scales_it_is_linear) {
    const Fixture f;
    const epilogue::ScaledBatch policy = f.batch(2);
    CHECK_EQ(policy.scaled(5, policy.row_factor(100) * policy.col_factor(200)), 10);
    CHECK_EQ(policy.scaled(5, 1, 7), 31);
    CHECK_EQ(policy.a_partial_factor(1, 2) * policy.b_partial_factor(3, 4), 1);
    CHECK(policy.saturates && policy.reads_c());
}

TEST(scales_that_do_not_differ_along_k_act_on_the_whole_sum) {
    Fixture f;
    f.scales.a.data = f.a.data();
    f.scales.a.outer_stride = 2;
    f.scales.a.batch_stride[0] = 20;
    f.scales.b.data = f.b.data();  // one for the tensor
    f.scales.d = &f.d;
    f.scales.overflow = Overflow::nan;
    const epilogue::ScaledBatch policy = f.batch(1);
    const float factor = policy.row_factor(4) * policy.col_factor(9);
    CHECK_EQ(factor, f.a[20 + 8]);
    CHECK_EQ(policy.scaled(1, factor), 2 * 29 * 0.5f);
    CHECK_EQ(policy.scaled(1, factor, 10), (2 * 29 + 30) * 0.5f);
    CHECK_EQ(policy.a_partial_factor(4, 0), 1);
    CHECK(!policy.saturates);
}

TEST(scales_of_k_blocks_act_on_partial_sums) {
    Fixture f;
    f.scales.a = {f.a.data(), 3, 1, {}, kScaleBlock, true};  // 128 x 128
    f.scales.b = {f.b.data(), 1, 8, {7}, 1, true};           // 1 x 128, of batches 7 apart
    const epilogue::ScaledBatch policy = f.batch(2);
    CHECK_EQ(policy.row_factor(5) * policy.col_factor(5), 1);
    CHECK_EQ(policy.a_partial_factor(127, 2), f.a[2]);
    CHECK_EQ(policy.a_partial_factor(128, 2), f.a[3 + 2]);
    CHECK_EQ(policy.b_partial_factor(6, 4), f.b[14 + 6 + 32]);
}

}  // namespace

int main() { return check::run(); }
