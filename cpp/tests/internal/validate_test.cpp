#include <cstdint>
#include <limits>

#include "../check.hpp"
#include "../row_major.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/error.hpp"

using namespace tcgemm;

namespace {

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
    CHECK(e4m3.epilogue() == Epilogue::linear && e4m3.compute_dtype() == DType::f16);
    CHECK(fp8(DType::e4m3, DType::e5m2, nothing)->precision == Precision::fp8);
    CHECK(fp8(DType::e5m2, DType::e5m2, nothing)->precision == Precision::fp8_e5m2);
    CHECK(fp8(DType::e5m2, DType::f16, nothing)->precision == Precision::fp16);
    const auto to_fp8 = [](GemmProblem& p) { p.c.dtype = p.d.dtype = DType::e5m2; };
    CHECK(fp8(DType::e4m3, DType::e4m3, to_fp8).epilogue() == Epilogue::scaled);
    CHECK(fp8(DType::i8, DType::i8, nothing).epilogue() == Epilogue::scaled);  // to float32

    const auto one_scale = [](GemmProblem& p) { p.scale_b.kind = ScaleKind::tensor; };
    CHECK(fp8(DType::e4m3, DType::e4m3, one_scale).epilogue() == Epilogue::scaled);
    const auto of_d = [](GemmProblem& p) { p.scale_d = true; };
    CHECK(fp8(DType::e4m3, DType::e4m3, of_d).epilogue() == Epilogue::scaled);
    CHECK(fp8(DType::e4m3, DType::e4m3, of_d).as_transposed().epilogue() == Epilogue::scaled);
    const auto to_i32 = [](GemmProblem& p) { p.c.dtype = p.d.dtype = DType::i32; };
    CHECK(fp8(DType::i8, DType::i8, to_i32).epilogue() == Epilogue::linear);

    // D^T = B^T A^T: the scales trade places with their operands.
    const ValidProblem transposed = fp8(DType::e4m3, DType::e4m3, [](GemmProblem& p) {
        p.c.row_stride = p.d.row_stride = 1, p.c.col_stride = p.d.col_stride = p.m;
        p.scale_a.kind = ScaleKind::block_1x128;
        p.scale_a.outer_stride = 7;
        p.scale_b.kind = ScaleKind::tensor;
        p.scale_b.outer_stride = 9;
    });
    CHECK(transposed.is_transposed() && transposed->scale_a.kind == ScaleKind::tensor);
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
