// What the schedules of sm90_wgmma promise of products whose K is split. A build without code for
// Hopper has no such rows and nothing to test.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../check.hpp"
#include "core/math.hpp"
#include "sm90_modes.hpp"

using namespace sm90_test;

namespace {

// Rows of one mode add up k in the same order, so that M may choose among them; the split is all
// that could make a difference.
TEST(the_split_of_a_batch_invariant_product_follows_n_and_k) {
    for (const Mode& mode : modes()) {
        bool any_split = false;
        for (const std::int64_t n : {1, 40, 128, 1000, 4096, 20000}) {
            for (const std::int64_t k : {0, 1, 2104, 16383, 16384, 65537, 262144, 4194304}) {
                const auto split = [&](const KernelInfo* row, const Shape& shape,
                                       bool transposed = false) {
                    const ValidProblem valid =
                        problem(mode, shape, Determinism::batch_invariant, transposed);
                    return row->schedule(valid, h200()).split_k;
                };
                const int expected = split(mode.rows.front(), {1, n, k});
                for (const KernelInfo* row : mode.rows) {
                    for (const std::int64_t m : {1, 2, 63, 300, 4096, 100000}) {
                        CHECK_EQ(split(row, {m, n, k}), expected);
                        CHECK_EQ(split(row, {m, n, k, 7}), expected);
                        CHECK_EQ(split(row, {m, n, k}, true), expected);
                        CHECK_EQ(split(row, {m, n, k, 7}, true), expected);
                    }
                }
                CHECK(expected >= 1);
                if (k < 16384) CHECK_EQ(expected, 1);
                any_split = any_split || expected > 1;
            }
        }
        CHECK(any_split);  // else this would show nothing
    }
}

TEST(the_workspace_of_a_split_product_holds_its_partial_sums_and_flags) {
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            int splits_seen = 0;
            for (const Shape& shape :
                 {Shape{1, 1, 65536}, Shape{13, 5, 262144}, Shape{128, 126, 65536},
                  Shape{16, 8192, 8192}, Shape{129, 257, 20000, 3}, Shape{4096, 4096, 4096}}) {
                const ValidProblem valid = problem(mode, shape);
                const Schedule schedule = row->schedule(valid, h200());
                if (schedule.split_k == 1 || schedule.in_cluster) {
                    CHECK_EQ(schedule.split_k, schedule.in_cluster ? 2 : 1);
                    CHECK_EQ(schedule.workspace_bytes, std::size_t{0});
                    continue;
                }
                ++splits_seen;
                CHECK(schedule.split_k <= divide_up(valid->k, row->tile.block_k));
                const std::int64_t rows = schedule.transposed ? valid->n : valid->m;
                const std::int64_t cols = schedule.transposed ? valid->m : valid->n;
                const std::int64_t width =
                    schedule.tile_n > 0 ? schedule.tile_n : row->tile.block_n;
                // In fours of eight columns.
                const std::int64_t summed = row->tile.block_n > 64 ? std::min(cols, width) : 64;
                const std::int64_t tile = row->tile.block_m * round_up(summed, 32);
                std::int64_t tiles = divide_up(rows, row->tile.block_m) * divide_up(cols, width) *
                                     valid.batch_count();
                // Blocks of one consumer share an SM.
                const int blocks_on_sm = row->tile.threads <= 256 ? 2 : 1;
                if (schedule.splits_rest) tiles %= h200().sm_count * blocks_on_sm;
                const std::int64_t parts = tiles * schedule.split_k;
                const std::int64_t flags =
                    static_cast<std::int64_t>(schedule.workspace_bytes) - parts * tile * 4;
                CHECK(flags >= parts * 8);  // each part has one of 8 bytes at least,
                // and no more than it has units in the rows of a warp
                CHECK(flags < parts * 8 * (tile / 512) * 4 * 2 + 256);
                CHECK_EQ(flags % 256, 0);  // partial sums begin aligned
            }
            CHECK(splits_seen > 0);
        }
    }
}

// The blocks that computed the parts of a small tile all add some of it up.
TEST(many_blocks_add_up_a_small_tile) {
    for (const Mode& mode : modes()) {
        const ValidProblem valid = problem(mode, {64, 64, 65536});
        for (const KernelInfo* row : mode.rows) {
            const Schedule schedule = row->schedule(valid, h200());
            if (schedule.split_k <= 16) continue;
            const std::int64_t tile = row->tile.block_m * 64;
            const std::int64_t flags =
                static_cast<std::int64_t>(schedule.workspace_bytes) - schedule.split_k * tile * 4;
            const std::int64_t pieces = tile / 128;  // of a warp
            const std::int64_t most = std::min<std::int64_t>(pieces, schedule.split_k);
            CHECK(flags / (8 * schedule.split_k) >= most / 2);  // a flag for each share of a part
        }
    }
}

TEST(a_long_k_with_few_tiles_is_split_where_k_is_contiguous_too) {
    struct KMajor {
        DType operand, result;
        Accumulate accumulate;
    };
    for (const auto& [operand, result, accumulate] :
         {KMajor{DType::i8, DType::i32, Accumulate::int32},
          {DType::f32, DType::f32, Accumulate::fp32},
          {DType::e4m3, DType::f16, Accumulate::promoted},
          {DType::e5m2, DType::bf16, Accumulate::fast}}) {
        GemmProblem p = k_major_product(operand, result, accumulate, {128, 128, 65536});
        if (modes().empty()) continue;
        const Schedule schedule = best_row(p);
        CHECK(schedule.split_k >= 16);
        CHECK(schedule.workspace_bytes >= std::size_t{128 * 128 * 4} * schedule.split_k);
        GemmProblem large = p;
        large.m = large.n = 4096;
        large.c = large.d = Operand::row_major(result, large.n);
        const Schedule of_large = best_row(large);
        CHECK(of_large.split_k == 1 || of_large.splits_rest);
        // Only small rows split, so that the choice of a row would show in the bits.
        p.determinism = Determinism::batch_invariant;
        if (operand != DType::i8) CHECK_EQ(best_row(p).split_k, 1);
        p.determinism = Determinism::run_to_run;
        if (!is_fp8(operand)) continue;
        p.scale_a.kind = ScaleKind::tensor;
        CHECK_EQ(best_row(p).split_k, schedule.split_k);
        if (accumulate != Accumulate::promoted) continue;
        p.scale_a.kind = ScaleKind::block_1x128;
        p.scale_a.outer_stride = p.k / kScaleBlock;
        const Schedule scaled = best_row(p);
        CHECK(scaled.split_k >= 16);
        CHECK(scaled.workspace_bytes >= std::size_t{128 * 128 * 4} * scaled.split_k);
    }
}

// 704 tiles of 128 x 192 are five waves of 132 and 44 tiles, which three blocks each share (of
// 16-bit results six waves are as fast, for tiles are begun ahead). Not where the number of rows
// must not show in the bits.
TEST(the_k_of_tiles_behind_the_last_whole_wave_is_split) {
    if (modes().empty()) return;
    GemmProblem p =
        k_major_product(DType::e4m3, DType::f32, Accumulate::promoted, {4096, 4096, 4096});
    p.scale_a.kind = ScaleKind::block_1x128;
    p.scale_a.outer_stride = p.k / kScaleBlock;
    const Schedule schedule = best_row(p);
    CHECK(schedule.splits_rest);
    CHECK_EQ(schedule.split_k, 3);
    CHECK(schedule.workspace_bytes >= std::size_t{44} * 3 * 128 * 192 * 4);
    CHECK(schedule.workspace_bytes < std::size_t{45} * 3 * 128 * 192 * 4);
    p.determinism = Determinism::batch_invariant;
    CHECK_EQ(best_row(p).split_k, 1);
    CHECK(!best_row(p).splits_rest);
}

// A launch for each matrix of the outermost batch dimension has other tiles left over than all
// together, and the workspace would not hold their parts.
TEST(batches_of_several_launches_have_no_rests) {
    for (const Mode& mode : modes()) {
        for (const int rank : {3, 4}) {
            GemmProblem p = problem(mode, {1152, 768, 4096}).as_given();
            std::int64_t stride = std::int64_t{1} << 26;
            p.batch_rank = rank;
            for (int dim = 0; dim < rank; ++dim, stride *= 8) {
                p.batch_shape[dim] = 2;
                for (Operand* const operand : {&p.a, &p.b, &p.c, &p.d}) {
                    operand->batch_stride[dim] = stride;
                }
            }
            const ValidProblem valid = ValidProblem::check(p);
            int rests = 0;
            for (const KernelInfo* row : mode.rows) {
                rests += row->schedule(valid, h200()).splits_rest;
            }
            if (rank == 4) CHECK_EQ(rests, 0);
            if (rank == 3 && mode.accumulate == Accumulate::fp32) CHECK(rests > 0);
        }
    }
}

TEST(a_full_device_is_not_split) {
    for (const Mode& mode : modes()) {
        for (const std::int64_t size : {4096, 8192, 16384}) {
            const Schedule schedule = best(mode, problem(mode, {size, size, size}));
            CHECK(schedule.split_k == 1 || schedule.splits_rest);
        }
    }
}

TEST(a_long_k_with_few_tiles_is_split) {
    for (const Mode& mode : modes()) {
        for (const Shape& shape : {Shape{1, 40, 65536}, Shape{16, 1024, 16384},
                                   Shape{128, 128, 65536}, Shape{8, 40, 262144, 4}}) {
            const Schedule schedule = best(mode, problem(mode, shape));
            CHECK(schedule.split_k > 1);
            CHECK(schedule.workspace_bytes > 0);
        }
    }
}

TEST(a_short_k_is_not_split) {
    for (const Mode& mode : modes()) {
        for (const std::int64_t k : {0, 1, 64, 100}) {
            for (const KernelInfo* row : mode.rows) {
                CHECK_EQ(row->schedule(problem(mode, {64, 64, k}), h200()).split_k, 1);
            }
        }
    }
}

}  // namespace

int main() { return check::run(); }
