#include <cstdint>
#include <limits>

#include "../check.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/error.hpp"

using namespace tcgemm;

namespace {

GemmProblem row_major(std::int64_t m, std::int64_t n, std::int64_t k, DType in = DType::f32,
                      DType out = DType::f32) {
    GemmProblem p;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = Operand::row_major(in, k);
    p.b = Operand::row_major(in, n);
    p.c = p.d = Operand::row_major(out, n);
    return p;
}

template <class Change>
GemmProblem changed(const Change& change) {
    GemmProblem p = row_major(4, 5, 6);
    change(p);
    return p;
}

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 2;

TEST(takes_the_precision_of_the_operands) {
    const auto resolved = [](DType a, DType b, DType out) {
        GemmProblem p = row_major(4, 5, 6, a, out);
        p.b.dtype = b;
        const ValidProblem v = ValidProblem::check(p);
        return std::string(name(v->precision)) + "/" + name(v->accumulate) + "/" +
               name(v.compute_dtype());
    };
    CHECK_EQ(resolved(DType::f16, DType::f16, DType::f16), "fp16/fp32/float16");
    CHECK_EQ(resolved(DType::bf16, DType::bf16, DType::f32), "bf16/fp32/bfloat16");
    CHECK_EQ(resolved(DType::f16, DType::bf16, DType::f32), "fp32/fp32/float32");
    CHECK_EQ(resolved(DType::f16, DType::f32, DType::f16), "fp32/fp32/float32");
    CHECK_EQ(resolved(DType::f64, DType::f32, DType::f64), "fp64/fp64/float64");
    CHECK_EQ(resolved(DType::i8, DType::i8, DType::i32), "int8/int32/int8");
}

TEST(keeps_the_modes_that_are_asked_for) {
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp32}) {
        const ValidProblem v = ValidProblem::check(changed([&](GemmProblem& p) {
            p.precision = precision;
            p.accumulate = Accumulate::promoted;
            p.determinism = Determinism::batch_invariant;
        }));
        CHECK_EQ(std::string(name(v->accumulate)), "promoted");
        CHECK(v.batch_invariant());
    }
    CHECK(!ValidProblem::check(row_major(4, 5, 6)).batch_invariant());
}

TEST(names_what_is_wrong) {
    const auto check = [](const auto& change) { ValidProblem::check(changed(change)); };
    CHECK_THROWS(ShapeError, check([](GemmProblem& p) { p.m = -1; }), "m is -1");
    CHECK_THROWS(ShapeError, check([](GemmProblem& p) { p.batch_rank = 9; }), "batch_rank is 9");
    CHECK_THROWS(ShapeError, check([](GemmProblem& p) {
                     p.batch_rank = 1;
                     p.batch_shape[0] = -2;
                 }),
                 "batch_shape[0] is -2");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.b.dtype = DType::i8; }),
                 "mix an integer");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.a.dtype = DType::i32; }), "A is int32");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.d.dtype = DType::i32; }), "D is int32");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.c.dtype = DType::f16; }),
                 "C is float16 but D is float32");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.precision = Precision::int8; }),
                 "takes int8 operands");
    CHECK_THROWS(InvalidArgument,
                 check([](GemmProblem& p) { p.a.dtype = static_cast<DType>(200); }),
                 "dtype of operand A has the value 200");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.precision = Precision::fp8_e4m3; }),
                 "takes operands of float8_e4m3fn, but operand A is float32");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.a.dtype = DType::e4m3; }),
                 "mix FP8 with float32");
    CHECK_THROWS(DTypeError, check([](GemmProblem& p) { p.c.dtype = p.d.dtype = DType::e4m3; }),
                 "D is float8_e4m3fn");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.accumulate = Accumulate::fast; }),
                 "accumulate fast does not go with precision fp32");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.scale_b.kind = ScaleKind::tensor; }),
                 "scale_b is given, but the product is of precision fp32");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.scale_d = true; }), "scale_d");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.overflow = Overflow::nan; }),
                 "overflow nan is for a D of FP8");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.epilogue = Epilogue::scaled; }),
                 "epilogue scaled does not go with precision fp32");
    const auto int8 = [](GemmProblem& p) { p.a.dtype = p.b.dtype = DType::i8; };
    CHECK_THROWS(InvalidArgument, check([&](GemmProblem& p) {
                     int8(p);
                     p.c.dtype = p.d.dtype = DType::i32;
                     p.scale_a.kind = ScaleKind::vector;
                 }),
                 "D is int32");
    CHECK_THROWS(InvalidArgument, check([&](GemmProblem& p) {
                     int8(p);
                     p.scale_a.kind = ScaleKind::block_1x128;
                 }),
                 "block_1x128, which int8 products do not take");
    CHECK_THROWS(InvalidArgument,
                 check([](GemmProblem& p) { p.scale_a.kind = static_cast<ScaleKind>(99); }),
                 "kind of scale_a has the value 99; it must be 0 to 4, for none, tensor");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) {
                     p.precision = Precision::fp64;
                     p.accumulate = Accumulate::promoted;
                 }),
                 "accumulate promoted does not go with precision fp64");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.accumulate = Accumulate::fp16; }),
                 "accumulate fp16 does not go with precision fp32");
    CHECK_THROWS(InvalidArgument, check([](GemmProblem& p) { p.a.alignment = 3; }),
                 "alignment is 3");
    CHECK_THROWS(LayoutError, check([](GemmProblem& p) { p.b.alignment = 2; }),
                 "aligned to 2 bytes");
}

TEST(fp8_int8_and_scales_are_resolved) {
    const auto fp8 = [](DType a, DType b, const auto& change) {
        return ValidProblem::check(changed([&](GemmProblem& p) {
            p.a.dtype = a, p.b.dtype = b;
            change(p);
        }));
    };
    const auto nothing = [](GemmProblem&) {};
    const ValidProblem e4m3 = fp8(DType::e4m3, DType::e4m3, nothing);
    CHECK(e4m3->precision == Precision::fp8_e4m3 && e4m3->accumulate == Accumulate::promoted);
    CHECK(e4m3->epilogue == Epilogue::linear && e4m3.compute_dtype() == DType::f16);
    CHECK(fp8(DType::e4m3, DType::e5m2, nothing)->precision == Precision::fp8);
    CHECK(fp8(DType::e5m2, DType::e5m2, nothing)->precision == Precision::fp8_e5m2);
    CHECK(fp8(DType::e5m2, DType::f16, nothing)->precision == Precision::fp16);
    const auto to_fp8 = [](GemmProblem& p) { p.c.dtype = p.d.dtype = DType::e5m2; };
    CHECK(fp8(DType::e4m3, DType::e4m3, to_fp8)->epilogue == Epilogue::scaled);
    CHECK(fp8(DType::i8, DType::i8, nothing)->epilogue == Epilogue::scaled);  // to float32

    // D^T = B^T A^T: the scales trade places with their operands.
    const ValidProblem transposed = fp8(DType::e4m3, DType::e4m3, [](GemmProblem& p) {
        p.c.row_stride = p.d.row_stride = 1, p.c.col_stride = p.d.col_stride = p.m;
        p.scale_a.kind = ScaleKind::block_1x128;
        p.scale_a.outer_stride = 7;
        p.scale_b.kind = ScaleKind::tensor;
        p.scale_b.outer_stride = 9;
    });
    CHECK(transposed.transposed() && transposed->scale_a.kind == ScaleKind::tensor);
    CHECK_EQ(transposed->scale_a.outer_stride, 0);  // one scale for all
    CHECK_EQ(transposed->scale_b.outer_stride, 7);

    // A batch that shares B is one matrix only where the scales go on from matrix to matrix.
    for (const std::int64_t step : {4, 5}) {
        const ValidProblem batch = fp8(DType::e4m3, DType::e4m3, [&](GemmProblem& p) {
            p.batch_rank = 1, p.batch_shape[0] = 3;
            p.a.batch_stride[0] = p.m * p.a.row_stride;
            p.c.batch_stride[0] = p.d.batch_stride[0] = p.m * p.d.row_stride;
            p.scale_a.kind = ScaleKind::vector;
            p.scale_a.batch_stride[0] = step;
        });
        CHECK_EQ(batch.batch_count(), step == 4 ? 1 : 3);
        CHECK_EQ(batch->m, step == 4 ? 12 : 4);
    }
}

TEST(refuses_an_output_that_overlaps_itself) {
    const auto check = [](std::int64_t row, std::int64_t col) {
        ValidProblem::check(changed([&](GemmProblem& p) {
            p.d.row_stride = row;
            p.d.col_stride = col;
        }));
    };
    CHECK_THROWS(LayoutError, check(0, 1), "share an address");
    CHECK_THROWS(LayoutError, check(4, 1), "share an address");
    CHECK_THROWS(LayoutError, check(5, 0), "share an address");
    check(-5, 1);  // reversed rows
    check(1, 4);   // column-major
    check(2, 16);
    GemmProblem broadcast = row_major(4, 5, 6);
    broadcast.batch_rank = 1;
    broadcast.batch_shape[0] = 3;
    CHECK_THROWS(LayoutError, ValidProblem::check(broadcast), "share an address");
}

// Also where strides of 0 name them, so that little memory holds them.
TEST(refuses_more_elements_than_can_be_counted) {
    const auto check = [](const auto& change) { ValidProblem::check(changed(change)); };
    for (const auto dim : {&GemmProblem::m, &GemmProblem::n, &GemmProblem::k}) {
        CHECK_THROWS(ShapeError, check([&](GemmProblem& p) {
                         p.a = p.b = {p.a.dtype, 0, 0};
                         p.*dim = kHuge;
                     }),
                     "must be at most 2^52");
    }
    CHECK_THROWS(ShapeError, check([](GemmProblem& p) { p.a.row_stride = kHuge; }),
                 "operand A (4 x 6, row stride");
    CHECK_THROWS(ShapeError, check([](GemmProblem& p) { p.b.col_stride = -kHuge; }), "operand B");
    CHECK_THROWS(ShapeError, check([](GemmProblem& p) {
                     p.batch_rank = 2;
                     p.batch_shape[0] = p.batch_shape[1] = kHuge;
                 }),
                 "number of batches");
    check([](GemmProblem& p) { p.m = 0, p.a.row_stride = kHuge; });  // no element, no offset
    check([](GemmProblem& p) {
        p.m = 0, p.batch_rank = 2;
        p.batch_shape[0] = p.batch_shape[1] = kHuge;
    });
}

// Strides of bytes, whose sums leave int64 though each of them and its walk do not.
TEST(refuses_an_output_that_no_memory_holds) {
    const auto check = [](std::int64_t row, std::int64_t col, std::int64_t batch) {
        ValidProblem::check(changed([&](GemmProblem& p) {
            p.m = 2, p.n = 3;
            p.a.dtype = p.b.dtype = DType::e4m3;
            p.c = p.d = {DType::e5m2, row, col, {batch}, 16};
            p.batch_rank = 1;
            p.batch_shape[0] = 2;
        }));
    };
    constexpr std::int64_t kTenth = (std::int64_t{1} << 61) / 10;
    CHECK_THROWS(ShapeError, check(15 * kTenth, -16 * kTenth, 17 * kTenth), "spans more than");
    CHECK_THROWS(ShapeError, check(std::numeric_limits<std::int64_t>::min(), 1, 3),
                 "correct its strides");
    check(-(std::int64_t{1} << 61), 1, 3);
    // A walk of all that an array may span, behind one that spans it already.
    for (const std::int64_t less : {0, 1}) {
        constexpr std::int64_t kAll = std::int64_t{1} << 60;
        const GemmProblem wide = changed([&](GemmProblem& p) {
            p.m = p.n = 2;
            p.c = p.d = {DType::f32, kAll - less, kAll - 1 + less, {}, 16};
        });
        CHECK_THROWS(ShapeError, ValidProblem::check(wide), "spans more than");
    }
}

TEST(computes_a_column_major_output_as_its_transpose) {
    GemmProblem p = row_major(4, 5, 6);
    p.d = p.c = Operand::col_major(DType::f32, 4);
    const ValidProblem v = ValidProblem::check(p);
    CHECK(v.transposed());
    CHECK_EQ(v->m, 5);
    CHECK_EQ(v->n, 4);
    CHECK_EQ(v->d.row_stride, 4);
    CHECK_EQ(v->d.col_stride, 1);
    CHECK_EQ(v->a.row_stride, 1);  // B, 6 x 5 row-major, transposed
    CHECK_EQ(v->a.col_stride, 5);
    CHECK_EQ(v.as_given().m, 4);
    CHECK(!ValidProblem::check(row_major(4, 5, 6)).transposed());
    GemmProblem neither = row_major(4, 5, 6);
    neither.d = {DType::f32, 100, 2, {}, 16};
    CHECK(!ValidProblem::check(neither).transposed());
    GemmProblem strided_row = row_major(1, 5, 6);
    strided_row.d = {DType::f32, 77, 3, {}, 16};
    const ValidProblem column = ValidProblem::check(strided_row);
    CHECK(column.transposed());
    CHECK_EQ(column->d.col_stride, 1);
    CHECK_EQ(column->d.row_stride, 3);
}

TEST(merges_batch_dimensions_that_one_stride_walks) {
    GemmProblem p = row_major(4, 5, 6);
    p.batch_rank = 4;
    p.batch_shape = {2, 1, 3, 7};
    p.a.batch_stride = {504, 9, 168, 24};
    p.b.batch_stride = {630, 9, 210, 30};
    p.c.batch_stride = p.d.batch_stride = {420, 9, 140, 20};
    const ValidProblem v = ValidProblem::check(p);
    CHECK_EQ(v.batch_count(), 42);
    CHECK_EQ(v->batch_rank, 1);
    CHECK_EQ(v->batch_shape[0], 42);
    CHECK_EQ(v->a.batch_stride[0], 24);
    CHECK_EQ(v->d.batch_stride[0], 20);
    p.b.batch_stride = {0, 0, 30, 30};
    CHECK_EQ(ValidProblem::check(p)->batch_rank, 3);
}

TEST(folds_matrices_that_share_b_into_one) {
    GemmProblem p = row_major(4, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {3, 7};
    p.a.batch_stride = {168, 24};
    p.c.batch_stride = p.d.batch_stride = {140, 20};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 4 * 21);
    CHECK_EQ(all->batch_rank, 0);
    CHECK_EQ(all.batch_count(), 1);
    CHECK_EQ(all->a.row_stride, 6);
    CHECK_EQ(all.as_given().m, 4);

    p.b.batch_stride = {30, 0};
    const ValidProblem inner = ValidProblem::check(p);
    CHECK_EQ(inner->m, 4 * 7);
    CHECK_EQ(inner.batch_count(), 3);

    p.b.batch_stride = {0, 0};
    p.d.batch_stride = p.c.batch_stride = {147, 21};  // a gap behind each matrix
    CHECK_EQ(ValidProblem::check(p)->m, 21);          // all first rows
    p.batch_shape = {1, 7};
    CHECK_EQ(ValidProblem::check(p)->m, 4);

    GemmProblem vectors = row_major(1, 5, 6);
    vectors.batch_rank = 1;
    vectors.batch_shape = {3};
    vectors.a.batch_stride = {100};
    vectors.c.batch_stride = vectors.d.batch_stride = {5};
    const ValidProblem rows = ValidProblem::check(vectors);
    CHECK_EQ(rows->m, 3);
    CHECK_EQ(rows->a.row_stride, 100);
    CHECK_EQ(rows->d.row_stride, 5);
}

// x[:, :, :2] @ w for an x of 3 x 300 x 10 rows.
TEST(few_rows_of_many_matrices_that_share_b_change_places_with_them) {
    GemmProblem p = row_major(2, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {3, 300};
    p.a.batch_stride = {300 * 60, 60};
    p.c.batch_stride = p.d.batch_stride = {300 * 10, 10};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 900);
    CHECK_EQ(all.batch_count(), 2);
    CHECK_EQ(all->a.row_stride, 60);
    CHECK_EQ(all->a.batch_stride[0], 6);
    CHECK_EQ(all->d.row_stride, 10);
    CHECK_EQ(all->d.batch_stride[0], 5);

    GemmProblem scaled = p;
    scaled.a.dtype = scaled.b.dtype = DType::i8;
    scaled.scale_a = {ScaleKind::vector, 1, 1, {300 * 20, 20}};
    const ValidProblem its = ValidProblem::check(scaled);
    CHECK_EQ(its->m, 900);
    CHECK_EQ(its->scale_a.outer_stride, 20);
    CHECK_EQ(its->scale_a.batch_stride[0], 1);
    scaled.scale_a = {ScaleKind::tensor, 1, 1, {1, 0}};  // another one for each of three
    const ValidProblem three = ValidProblem::check(scaled);
    CHECK_EQ(three->m, 300);
    CHECK_EQ(three->batch_shape[0], 2);
    CHECK_EQ(three->scale_a.batch_stride[0], 0);
    CHECK_EQ(three->scale_a.batch_stride[1], 1);

    p.b.batch_stride = {0, 30};
    CHECK_EQ(ValidProblem::check(p)->m, 2);
    p.b.batch_stride = {0, 0};
    p.batch_shape = {3, 3};  // no tiles would be saved
    CHECK_EQ(ValidProblem::check(p)->m, 2);
}

TEST(a_single_column_is_a_row) {
    GemmProblem p = row_major(8, 1, 6);
    p.b.row_stride = p.b.col_stride = 1;
    p.c.row_stride = p.d.row_stride = 1;
    const ValidProblem row = ValidProblem::check(p);
    CHECK(row.transposed());
    CHECK_EQ(row->m, 1);
    CHECK_EQ(row->n, 8);
    CHECK_EQ(row->b.row_stride, 1);
    CHECK_EQ(row->b.col_stride, 6);
    CHECK_EQ(row->d.col_stride, 1);
    p.d.row_stride = p.c.row_stride = 3;  // not next to each other either way
    CHECK(!ValidProblem::check(p).transposed());
}

// w @ x for many vectors x is x @ w^T.
TEST(columns_that_share_a_are_rows_that_share_b) {
    GemmProblem p = row_major(8, 1, 6);
    p.batch_rank = 1;
    p.batch_shape = {10};
    p.b.row_stride = p.b.col_stride = 1;
    p.b.batch_stride = {6};
    p.c.row_stride = p.d.row_stride = 1;
    p.c.batch_stride = p.d.batch_stride = {8};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 10);
    CHECK_EQ(all->n, 8);
    CHECK_EQ(all.batch_count(), 1);
    CHECK_EQ(all->a.row_stride, 6);
    CHECK_EQ(all->b.col_stride, 6);
    CHECK_EQ(all->d.row_stride, 8);
    CHECK_EQ(all.as_given().n, 1);
    p.a.batch_stride = {48};  // a row each
    CHECK_EQ(ValidProblem::check(p)->m, 1);
    CHECK_EQ(ValidProblem::check(p)->n, 8);
}

// x of 64 x 32 x 8 rows by 32 matrices w; and A and D in another order than the batch is given in.
TEST(the_order_of_batch_dimensions_does_not_matter) {
    GemmProblem p = row_major(8, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {64, 32};
    p.a.batch_stride = {32 * 48, 48};
    p.b.batch_stride = {0, 30};
    p.c.batch_stride = p.d.batch_stride = {32 * 40, 40};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 64);
    CHECK_EQ(all.batch_count(), 8 * 32);

    p.b.batch_stride = {0, 0};
    p.a.batch_stride = {48, 64 * 48};
    p.c.batch_stride = p.d.batch_stride = {40, 64 * 40};
    const ValidProblem one = ValidProblem::check(p);
    CHECK_EQ(one->m, 8 * 64 * 32);
    CHECK_EQ(one.batch_count(), 1);

    // Rows go on in the dimension that D's matrices are further apart in.
    p.batch_shape = {8, 8};  // z, x of arrays [x, row, z, column]
    p.a.row_stride = 8 * 6;
    p.c.row_stride = p.d.row_stride = 8 * 5;
    p.a.batch_stride = {6, 8 * 48};
    p.c.batch_stride = p.d.batch_stride = {5, 8 * 40};
    const ValidProblem rows = ValidProblem::check(p);
    CHECK_EQ(rows->m, 64);
    CHECK_EQ(rows.batch_count(), 8);
}

TEST(sets_the_strides_of_single_rows_and_columns) {
    GemmProblem p = row_major(1, 5, 6);
    p.a.row_stride = kHuge;  // never walked
    p.d.row_stride = p.c.row_stride = -3;
    const ValidProblem v = ValidProblem::check(p);
    CHECK_EQ(v->a.row_stride, 6);
    CHECK_EQ(v->d.row_stride, 5);
}

TEST(knows_the_offsets_that_an_operand_touches) {
    GemmProblem p = row_major(4, 5, 6);
    p.a = {DType::f32, -10, 2, {}, 16};
    const Footprint found = footprint(p, p.a, 4, 6, "A");
    CHECK_EQ(found.low, -30 * 4);
    CHECK_EQ(found.high, (10 + 1) * 4);
}

TEST(an_empty_problem_is_valid) {
    GemmProblem p = row_major(4, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {0, kHuge};
    CHECK(ValidProblem::check(p).empty());
    CHECK(ValidProblem::check(row_major(0, 5, 6)).empty());
    CHECK(!ValidProblem::check(row_major(4, 5, 0)).empty());
}

}  // namespace

int main() { return check::run(); }
