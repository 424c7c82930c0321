#include "problem/scales.hpp"

#include <string>

#include "core/math.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm {
namespace {

void check_scale(const GemmProblem& p, const Scale& scale) {
    if (scale.kind == ScaleKind::none) return;
    const bool is_a = &scale == &p.scale_a;
    const std::string what = is_a ? "scale_a" : "scale_b";
    const bool int8 = p.precision == Precision::int8;
    if (!int8 && !is_fp8(p.precision)) {
        throw InvalidArgument(what + " is given, but the product is of precision " +
                              name(p.precision) +
                              instead_of_scale(p.a.dtype, p.b.dtype,
                                               scale.kind == ScaleKind::tensor ? "alpha"
                                               : is_a                          ? "operand A"
                                                                               : "operand B"));
    }
    if (int8 && is_blockwise(scale.kind)) {
        throw InvalidArgument(what + " has the kind " + name(scale.kind) +
                              ", which int8 products do not take; give one scale for the matrix, " +
                              "or one for each row of A and column of B");
    }
}

void canonicalise(Scale& scale) {
    if (scale.kind == ScaleKind::none || scale.kind == ScaleKind::tensor) scale.outer_stride = 0;
    if (!is_blockwise(scale.kind)) scale.k_stride = 0;
    if (scale.kind == ScaleKind::none) scale.batch_stride = {};
}

}  // namespace

Epilogue resolve_scales(GemmProblem& p) {
    check_scale(p, p.scale_a);
    check_scale(p, p.scale_b);
    const bool floats_of_int8 = p.precision == Precision::int8 && !is_integer(p.d.dtype);
    const bool takes_scales = is_fp8(p.precision) || floats_of_int8;
    const bool any_scale =
        p.scale_a.kind != ScaleKind::none || p.scale_b.kind != ScaleKind::none || p.scale_d;
    if (any_scale && !takes_scales) {
        if (p.precision == Precision::int8) {
            throw InvalidArgument(
                "scales are given, but D is int32, which is exact and unscaled; "
                "name float16, bfloat16 or float32 as D's dtype (out_dtype in Python)");
        }
        throw InvalidArgument(std::string("scale_d is given, but the product is of precision ") +
                              name(p.precision) +
                              instead_of_scale(p.a.dtype, p.b.dtype, "alpha and beta"));
    }
    if (p.overflow != Overflow::saturate && !is_fp8(p.d.dtype)) {
        throw InvalidArgument(std::string("overflow ") + name(p.overflow) +
                              " is for a D of FP8, but D is " + name(p.d.dtype) +
                              ", which overflows to Inf; leave it at saturate");
    }
    canonicalise(p.scale_a);
    canonicalise(p.scale_b);
    const bool is_scaled = any_scale || floats_of_int8 || is_fp8(p.d.dtype);
    return is_scaled ? Epilogue::scaled : Epilogue::linear;
}

ScaleMatrix scale_matrix(const Scale& scale, std::int64_t outer, std::int64_t k) {
    ScaleMatrix matrix;
    Operand& o = matrix.operand;
    o.dtype = DType::f32;
    o.row_stride = scale.outer_stride;
    o.col_stride = scale.k_stride;
    o.batch_stride = scale.batch_stride;
    o.alignment = size_of(DType::f32);
    if (scale.kind == ScaleKind::none) return matrix;
    matrix.rows = scale.kind == ScaleKind::tensor          ? 1
                  : scale.kind == ScaleKind::block_128x128 ? divide_up(outer, kScaleBlock)
                                                           : outer;
    matrix.cols = is_blockwise(scale.kind) ? divide_up(k, kScaleBlock) : 1;
    return matrix;
}

}  // namespace tcgemm
