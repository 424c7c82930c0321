// What the schedules of sm90_wgmma promise of rows, tiles and costs, whatever its rows and their
// measured times are. A build without code for Hopper has no such rows and nothing to test.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../check.hpp"
#include "core/math.hpp"
#include "sm90_modes.hpp"

using namespace sm90_test;

namespace {

TEST(each_mode_has_rows_and_each_row_has_one_mode) {
    std::vector<const KernelInfo*> taken;
    for (const Mode& mode : modes()) {
        CHECK(!mode.rows.empty());
        taken.insert(taken.end(), mode.rows.begin(), mode.rows.end());
    }
    for (const RegisteredFamily& family : registered_families()) {
        if (std::string(family.name) != "sm90_wgmma") continue;
        for (int i = 0; i < family.family->kernel_count; ++i) {
            const KernelInfo& row = family.family->kernels[i];
            const bool is_16_bit = !row.needs.k_major_b && !row.needs.halves();
            CHECK_EQ(std::count(taken.begin(), taken.end(), &row), is_16_bit ? 1 : 0);
        }
    }
}

// Kernels count tiles in 31 bits: also those that a schedule makes more of.
TEST(no_schedule_has_more_tiles_than_are_counted) {
    constexpr std::int64_t kMost = 0x7fffffff, kColumns = 72;
    for (const Mode& mode : modes()) {
        GemmProblem p = *problem(mode, {1, kColumns, 64});
        p.batch_rank = 1;
        p.batch_shape[0] = kMost / 2 + 2;
        p.c.batch_stride[0] = p.d.batch_stride[0] = kColumns;
        const ValidProblem valid = ValidProblem::check(p);
        for (const KernelInfo* row : mode.rows) {
            if (!row->rejects(valid, h200()).empty()) continue;
            const Schedule schedule = row->schedule(valid, h200());
            const int width = schedule.tile_n > 0 ? schedule.tile_n : row->tile.block_n;
            const int along = schedule.transposed ? row->tile.block_m : width;  // kColumns
            CHECK(divide_up(kColumns, along) * valid.batch_count() * schedule.split_k <= kMost);
        }
    }
}

// The store of a tile narrower than a box is cut: those of 32 columns that fill the SMs lose to 64.
TEST(few_rows_of_fp8_have_tiles_of_whole_boxes) {
    if (modes().empty()) return;
    for (const std::int64_t m : {1, 16, 64}) {
        for (const std::int64_t size : {2048, 4096}) {
            const GemmProblem p =
                k_major_product(DType::e4m3, DType::bf16, Accumulate::fast, {m, size, size});
            CHECK_EQ(best_row(p).tile_n, 64);
        }
    }
}

// 4097 rows are 33 tiles of 128: 17 columns of tiles are 4.25 waves on 132 SMs, 20 are five full
// ones.
TEST(tiles_become_narrower_or_have_parts_where_whole_ones_leave_sms_idle) {
    for (const Mode& mode : modes()) {
        for (const Shape& shape : {Shape{1536, 1536, 1536}, Shape{4097, 4097, 4097}}) {
            for (const auto determinism : {Determinism::run_to_run, Determinism::batch_invariant}) {
                int narrow = 0, split = 0;
                for (const KernelInfo* row : mode.rows) {
                    const Schedule schedule =
                        row->schedule(problem(mode, shape, determinism), h200());
                    narrow += schedule.tile_n > 0;
                    split += schedule.splits_rest;
                    if (schedule.tile_n == 0) continue;
                    CHECK(schedule.split_k == 1 || schedule.splits_rest);
                    CHECK_EQ(schedule.tile_n % 16, 0);
                    CHECK(4 * schedule.tile_n >= row->tile.block_n);
                    CHECK(schedule.tile_n < row->tile.block_n);
                }
                if (mode.accumulate == Accumulate::fp32) CHECK(narrow + split > 0);
                if (determinism == Determinism::batch_invariant) CHECK_EQ(split, 0);
                if (mode.accumulate == Accumulate::fp16) CHECK_EQ(narrow, 0);
            }
        }
        for (const KernelInfo* row : mode.rows) {  // 132 whole tiles
            const std::int64_t n = 11 * row->tile.block_n;
            const ValidProblem full = problem(mode, {12 * row->tile.block_m, n, 8192});
            CHECK_EQ(row->schedule(full, h200()).tile_n, 0);
        }
    }
}

// Some hundred rows and thousands of columns: each SM has one narrow tile, and pairs of blocks load
// the weights together. An even number of tiles lies side by side then.
TEST(few_rows_of_many_weights_share_them) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        for (const Shape& shape : {Shape{320, 4096, 4096}, Shape{136, 8192, 8192}}) {
            const Schedule schedule = best(mode, problem(mode, shape));
            CHECK(schedule.shares_a && !schedule.shares_b && schedule.transposed);
            CHECK_EQ(schedule.split_k, 1);
            CHECK_EQ(schedule.tile_n, 80);
            CHECK_EQ(divide_up(shape.m, schedule.tile_n) % 2, 0);
        }
        for (const Shape& shape : {Shape{64, 4096, 4096}, Shape{2048, 2048, 2048},
                                   Shape{4096, 4096, 4096}, Shape{16, 16, 65536}}) {
            CHECK(!best(mode, problem(mode, shape)).shares_a);
        }
    }
}

// 65 rows of tiles: the row of idle tiles that pairs of blocks need costs less than B read twice.
TEST(an_odd_number_of_rows_of_many_tiles_is_loaded_in_pairs) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        const KernelInfo& large = *mode.rows.front();  // 65 rows of its tiles
        const auto shares_b = [&](const Shape& shape) {
            return large.schedule(problem(mode, shape), h200()).shares_b;
        };
        CHECK_EQ(large.tile.block_m, 128);
        CHECK(shares_b({8193, 8192, 8192}));
        CHECK(!shares_b({8192, 8192, 8192}));  // pairs without being asked
        CHECK(!shares_b({1025, 3072, 1024}));  // few tiles
    }
}

// Each k of an A of 8 rows along m is 16 bytes, which narrow tiles on all SMs would ask for at
// once.
TEST(few_rows_along_m_are_read_by_fewer_tiles) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        GemmProblem p = *problem(mode, {8, 2112, 512});
        p.b = Operand::col_major(mode.dtype, 512);
        CHECK(best(mode, ValidProblem::check(p)).transposed);  // k of A side by side
        p.a = Operand::col_major(mode.dtype, 8);
        CHECK(best(mode, ValidProblem::check(p)).transposed);
    }
}

// Rows of odd length: the copy engine takes none of A, B and D.
TEST(b_of_odd_rows_is_packed_as_it_lies) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        for (const std::int64_t size : {255, 1023, 1025, 2047, 4095, 8191}) {
            CHECK(!best(mode, problem(mode, {size, size, size})).packs_b_k_major);
        }
    }
}

// What each tile takes besides its k-blocks does not shrink with its columns.
TEST(tall_products_of_a_short_k_have_no_tiles_wider_than_d) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        for (const std::int64_t k : {64, 128, 256}) {
            const ValidProblem tall = problem(mode, {131072, 128, k});
            const double least = best(mode, tall).cost_us;
            for (const KernelInfo* row : mode.rows) {
                if (row->schedule(tall, h200()).cost_us == least) CHECK(row->tile.block_n <= 128);
            }
        }
    }
}

// The copy engine leaves out what D does not have; who stores rows by themselves gains nothing.
TEST(tiles_in_ping_pong_are_stored_for_the_columns_of_d) {
    const auto cost = [](std::int64_t n, const Mode& mode) {
        for (const KernelInfo* row : mode.rows) {
            if (std::string(row->name).find("_128x128_pp") == std::string::npos) continue;
            return row->schedule(problem(mode, {500000, n, 16}), h200()).cost_us;
        }
        return 0.0;
    };
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        CHECK(cost(32, mode) < 0.7 * cost(128, mode));
        CHECK(cost(67, mode) > 0.9 * cost(127, mode));
    }
}

// Short tiles have more stagings, of 128 x 256 where their boxes are few and the ring holds them.
TEST(large_results_of_a_short_k_have_the_tiles_that_are_stored_soonest) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        const auto cost = [&](const char* tile, const Shape& shape, DType result) {
            GemmProblem p = *problem(mode, shape);
            p.c.dtype = p.d.dtype = result;
            for (const KernelInfo* row : mode.rows) {
                if (std::string(row->name).find(tile) == std::string::npos) continue;
                return row->schedule(ValidProblem::check(p), h200()).cost_us;
            }
            return 0.0;
        };
        const auto wide_is_faster = [&](const Shape& shape, DType result) {
            return cost("_128x256", shape, result) < cost("_128x128_pp", shape, result);
        };
        CHECK(wide_is_faster({16384, 4096, 192}, mode.dtype));
        CHECK(!wide_is_faster({8192, 8192, 256}, mode.dtype));
        CHECK(!wide_is_faster({8192, 8192, 128}, DType::f32));
    }
}

TEST(costs_grow_with_m_n_and_k) {
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            const auto cost = [&](const Shape& shape) {
                return row->schedule(problem(mode, shape), h200()).cost_us;
            };
            for (const std::int64_t size : {2048, 4096, 8192, 16384}) {  // many waves of tiles
                CHECK(cost({2 * size, 8192, 8192}) > cost({size, 8192, 8192}));
                CHECK(cost({8192, 2 * size, 8192}) > cost({8192, size, 8192}));
                CHECK(cost({8192, 8192, 2 * size}) > cost({8192, 8192, size}));
                CHECK(cost({1024, 1024, 1024, 2 * size}) > cost({1024, 1024, 1024, size}));
            }
            for (std::int64_t size = 256; size <= 16384; size *= 2) {
                CHECK(cost({2 * size, 2 * size, 2 * size}) > cost({size, size, size}));
            }
        }
    }
}

TEST(every_cost_is_a_time) {
    constexpr std::int64_t kLargest = 0x7fffffff - 2047;
    for (const Mode& mode : modes()) {
        int taken = 0;
        for (const Shape& shape :
             {Shape{1, 1, 1}, Shape{1, 1, 0}, Shape{kLargest, 1, 1}, Shape{1, kLargest, 1},
              Shape{1, 1, kLargest}, Shape{kLargest, 64, 1 << 20}, Shape{64, kLargest, 1 << 20},
              Shape{4, 4, 4, 1000000}, Shape{1, 1, kLargest, 1000000}, Shape{1, 1, 1, kLargest}}) {
            for (const auto determinism : {Determinism::run_to_run, Determinism::batch_invariant}) {
                const ValidProblem valid = problem(mode, shape, determinism);
                for (const KernelInfo* row : mode.rows) {
                    for (const int sm_count : {132, 114, 16, 1}) {  // slices of a GPU too
                        const DeviceProperties device = h200(sm_count);
                        if (!row->rejects(valid, device).empty()) continue;
                        const Schedule schedule = row->schedule(valid, device);
                        CHECK(std::isfinite(schedule.cost_us) && schedule.cost_us > 0);
                        CHECK(schedule.split_k >= 1);
                        ++taken;
                    }
                }
            }
        }
        CHECK(taken > 0);
    }
}

TEST(sizes_beyond_32_bits_are_refused_by_name) {
    constexpr std::int64_t kTooLarge = std::int64_t{1} << 31;
    const auto says = [](const std::string& reason, const char* part) {
        return reason.find(part) != std::string::npos;
    };
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            const auto reason = [&](const Shape& shape) {
                return row->rejects(problem(mode, shape), h200());
            };
            CHECK(says(reason({kTooLarge, 2, 1}), "takes m up to"));
            CHECK(says(reason({1, kTooLarge, 1}), "takes n up to"));
            CHECK(says(reason({1, 1, kTooLarge}), "takes k up to"));
            CHECK(says(reason({1, 1, 1, kTooLarge}), "takes batch up to"));
            CHECK(says(reason({1 << 24, 1 << 24, 1}), "tiles"));
        }
    }
}

// An NN product whose A and B have `pad` elements behind each row.
ValidProblem padded(const Mode& mode, const Shape& shape, std::int64_t pad_a, std::int64_t pad_b) {
    GemmProblem p = *problem(mode, shape);
    p.a.row_stride += pad_a;
    p.b.row_stride += pad_b;
    return ValidProblem::check(p);
}

TEST(rows_that_begin_amid_sectors_of_l2_cost_more_and_are_shared) {
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            const Shape shape{2048, 2048, 2048};
            const auto schedule = [&](std::int64_t pad_a, std::int64_t pad_b) {
                return row->schedule(padded(mode, shape, pad_a, pad_b), h200());
            };
            const Schedule whole = schedule(0, 0), amid = schedule(8, 8);
            for (const std::int64_t pad : {64, 128}) {  // whole lines of 128 bytes
                CHECK_EQ(schedule(pad, pad).cost_us, whole.cost_us);
                CHECK_EQ(schedule(pad, pad).shares_b, whole.shares_b);
            }
            for (const std::int64_t pad : {16, 48}) {  // whole sectors of 32 bytes
                CHECK(schedule(pad, pad).cost_us >= whole.cost_us);
                CHECK(schedule(pad, pad).cost_us <= amid.cost_us);
            }
            CHECK(schedule(8, 0).cost_us >= whole.cost_us);
            CHECK(schedule(0, 8).cost_us >= whole.cost_us);
            CHECK(amid.cost_us >= whole.cost_us);
            // Pairs of large tiles may hide it, small ones cannot.
            if (row->tile.block_m >= 128) CHECK(amid.shares_b || amid.shares_a);
            if (row->tile.block_n == 64) CHECK(amid.cost_us > whole.cost_us);
            CHECK(!schedule(1, 1).shares_b);  // packed, at sectors
        }
    }
}

// D of some hundred rows and many columns.
TEST(tiles_lie_across_d_where_that_is_cheaper) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        for (const std::int64_t m : {136, 200, 264, 320}) {
            const Schedule schedule = best(mode, problem(mode, {m, 8192, 8192}));
            CHECK(schedule.transposed);
            // No dearer than as many columns, of whose B boxes of 64 columns are loaded.
            const Schedule other = best(mode, problem(mode, {8192, m, 8192}));
            CHECK(!other.transposed);
            CHECK(schedule.cost_us <= other.cost_us);
        }
        // As cheap either way: B, which is larger, is read half as often.
        CHECK(best(mode, problem(mode, {200, 4096, 4096})).transposed);
        // What the copy engine cannot store so is not.
        GemmProblem p = *problem(mode, {264, 8192, 8192});
        p.c.row_stride = p.d.row_stride = 8193;
        p.c.alignment = p.d.alignment = 2;
        CHECK(!best(mode, ValidProblem::check(p)).transposed);
    }
}

// They are launched as rows or element by element, and cost as much.
TEST(matrices_of_d_at_odd_distances_are_not_priced_as_copied) {
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            const auto schedule = [&](std::int64_t pad) {
                GemmProblem p = problem(mode, {1000, 520, 64, 6}).as_given();
                p.b.batch_stride[0] = p.k * p.n;
                p.c.batch_stride[0] = p.d.batch_stride[0] = p.m * p.n + pad;
                return row->schedule(ValidProblem::check(p), h200());
            };
            CHECK_EQ(schedule(8).cost_us, schedule(0).cost_us);
            CHECK(schedule(1).cost_us > schedule(0).cost_us);
            CHECK(!schedule(1).transposed);
        }
    }
}

// As rows of A weights come to pairs of SMs at a rate of their own, and 80 or 96 tiles are two for
// some of the 66 pairs: 51 and 61 us on an H200, where columns of B take 38 and 51.
TEST(weights_that_pairs_of_sms_share_unevenly_come_as_b) {
    const auto lie_across = [](std::int64_t n, std::int64_t k) {
        return best_row(k_major_product(DType::f16, DType::f16, Accumulate::fp32, {16, n, k}))
            .transposed;
    };
    if (modes().empty()) return;
    CHECK(!lie_across(5120, 13824));
    CHECK(!lie_across(6144, 16384));
    CHECK(!lie_across(14336, 4096));
    CHECK(lie_across(8192, 8192));  // two for nearly all
    CHECK(lie_across(2048, 2048));  // one for half of them
}

// Rows of A and columns of B that are 2 MB apart come to an SM more slowly: on an H200 128 x 128 x
// 1 M took 202 us on 66 of them, and 131 on all.
TEST(a_k_of_rows_in_pages_of_their_own_is_split_over_all_sms) {
    if (modes().empty()) return;
    const auto parts = [](std::int64_t mn, std::int64_t k) {
        const GemmProblem p =
            k_major_product(DType::f16, DType::f16, Accumulate::fp32, {mn, mn, k});
        const Schedule schedule = best_row(p);
        CHECK(!schedule.in_cluster);
        return schedule.split_k;
    };
    CHECK(parts(64, 1 << 20) > 66);
    CHECK(parts(64, (1 << 20) - 64) <= 66);
    CHECK(parts(128, 1 << 20) > 66);
}

// 256 x 256 x 1 M in tiles of 128 x 128 keeps multiplications and memory equally busy, and takes
// longer than either: 304 us on an H200, where tiles of 128 x 256 take 271.
TEST(parts_of_k_do_not_hide_multiplications_that_take_as_long_as_memory) {
    for (const Mode& mode : modes()) {
        if (mode.accumulate != Accumulate::fp32) continue;
        const Schedule schedule = best(mode, problem(mode, {256, 256, 1 << 20}));
        CHECK_EQ(schedule.split_k, 66);
    }
}

// Promoted sums of FP8: two small tiles on an SM hide what each waits for, and large ones have
// parts of a long K (22 us of 28, and 32 of 42, on an H200).
TEST(promoted_fp8_by_few_rows_fills_the_sms) {
    if (modes().empty()) return;
    const auto schedule = [](std::int64_t m, std::int64_t n, std::int64_t k) {
        return best_row(k_major_product(DType::e4m3, DType::bf16, Accumulate::promoted, {m, n, k}));
    };
    CHECK_EQ(schedule(128, 8192, 8192).tile_n, 64);
    CHECK_EQ(schedule(128, 8192, 8192).split_k, 1);
    CHECK_EQ(schedule(256, 4096, 4096).tile_n, 64);
    CHECK(schedule(192, 4096, 14336).split_k > 1);
    CHECK_EQ(schedule(4096, 4096, 4096).split_k, 1);
}

// 72 us on an H200 in 64 x 128; 78 in 128 x 256 with 64 of the columns.
TEST(tf32_of_128_rows_by_large_weights_has_tiles_of_64_rows) {
    if (modes().empty()) return;
    const Shape shape{128, 8192, 8192};
    const GemmProblem p = k_major_product(DType::f32, DType::f32, Accumulate::fp32, shape);
    CHECK_EQ(best_row(p).tile_n, 0);
}

// A tall D of few columns: where boxes of B lie along them, the copy engine clips each of their
// rows, for every tile again: taller tiles do with half as many, and to pack B with contiguous k
// costs those of 64 rows less. (In FP32: a D of 16 bits has tiles across it.)
GemmProblem into_fp32(const Mode& mode, const Shape& shape) {
    GemmProblem p = *problem(mode, shape);
    p.c.dtype = p.d.dtype = DType::f32;
    return p;
}
TEST(boxes_that_are_clipped_cost) {
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            if (row->tile.block_m != 64) continue;
            for (const std::int64_t n : {16, 48}) {
                for (const std::int64_t m : {32768, 131072}) {
                    GemmProblem p = into_fp32(mode, {m, n, 512});
                    const Schedule along_n = row->schedule(ValidProblem::check(p), h200());
                    p.b = Operand::col_major(mode.dtype, p.k);
                    const Schedule k_major = row->schedule(ValidProblem::check(p), h200());
                    CHECK(along_n.packs_b_k_major && !k_major.packs_b_k_major);
                    // The pass takes as long whatever M is.
                    CHECK(along_n.cost_us > (m == 32768 ? 1.1 : 1.03) * k_major.cost_us);
                }
            }
            const auto us = [&](std::int64_t n) {
                const GemmProblem p = into_fp32(mode, {131072, n, 512});
                return row->schedule(ValidProblem::check(p), h200()).cost_us;
            };
            CHECK(us(48) > us(64));
        }
    }
}

// As wide as what D has, boxes are cheap, but for the many tiles of a tall D.
TEST(a_b_of_few_columns_is_packed_for_many_tiles) {
    for (const Mode& mode : modes()) {
        for (const std::int64_t n : {8, 24}) {
            const auto packs = [&](std::int64_t m) {
                const Schedule schedule =
                    best(mode, ValidProblem::check(into_fp32(mode, {m, n, 1024})));
                return schedule.packs_a_k_major || schedule.packs_b_k_major;
            };
            CHECK(packs(32768) && !packs(2048));
        }
    }
}

TEST(only_a_b_that_is_packed_anyway_is_transposed) {
    bool any = false;
    for (const Mode& mode : modes()) {
        for (const KernelInfo* row : mode.rows) {
            for (const std::int64_t size : {64, 1024, 1536, 4096, 4097, 8193}) {
                const std::int64_t odd = 1 - size % 2;
                const Shape shape{size, size, size};
                const auto transposes = [&](std::int64_t pad_a, std::int64_t pad_b) {
                    return row->schedule(padded(mode, shape, pad_a, pad_b), h200()).packs_b_k_major;
                };
                if (size % 8 == 0) CHECK(!transposes(0, 0));
                if (size % 8 == 0) CHECK(!transposes(1, 0));
                any = any || transposes(0, odd);
            }
        }
    }
    CHECK(any || modes().empty());
}

// One operand of a TF32 product may have contiguous m or n: it is the kernel's A.
TEST(tf32_lies_across_d_where_that_spares_packing_b) {
    if (modes().empty()) return;
    const auto transposed = [](Shape shape, bool a_along_m, bool b_along_n, DType result) {
        GemmProblem p = k_major_product(DType::f32, result, Accumulate::automatic, shape);
        if (a_along_m) p.a = Operand::col_major(DType::f32, p.m);
        if (b_along_n) p.b = Operand::row_major(DType::f32, p.n);
        return best_row(p).transposed;
    };
    for (const std::int64_t size : {256, 1024, 4096}) {
        const Shape square{size, size, size};
        for (const DType result : {DType::f32, DType::f16, DType::f64}) {  // of f64 are no boxes
            CHECK(!transposed(square, false, false, result));
            CHECK(!transposed(square, true, false, result));
            CHECK(transposed(square, false, true, result));
        }
        // Where both would have to be packed, the smaller one is.
        CHECK(transposed({size, 8 * size, size}, true, true, DType::f32));
        CHECK(!transposed({8 * size, size, size}, true, true, DType::f32));
    }
}

}  // namespace

int main() { return check::run(); }
