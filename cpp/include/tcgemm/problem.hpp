// The statement of a matrix product: D = alpha * A B + beta * C, for a batch of matrices.
#pragma once

#include <array>
#include <cstdint>

#include "tcgemm/dtype.hpp"
#include "tcgemm/epilogue.hpp"

namespace tcgemm {

inline constexpr int kMaxBatchDims = 8;
using BatchDims = std::array<std::int64_t, kMaxBatchDims>;

// How an operand lies in memory. Element (i, j) of batch (p, q, ..) is at
//   data[p * batch_stride[0] + q * batch_stride[1] + .. + i * row_stride + j * col_stride].
// Strides count elements and may be negative; 0 repeats an element (not allowed for D).
struct Operand {
    DType dtype = DType::f32;
    std::int64_t row_stride = 0;
    std::int64_t col_stride = 0;
    BatchDims batch_stride{};
    // Bytes: 1, 2, 4, 8 or 16, at least the size of an element. The address of element (0, 0) must
    // be a multiple of it in every run.
    int alignment = 16;

    static constexpr Operand row_major(DType dtype, std::int64_t leading_dimension) {
        return {dtype, leading_dimension, 1, {}, 16};
    }
    static constexpr Operand col_major(DType dtype, std::int64_t leading_dimension) {
        return {dtype, 1, leading_dimension, {}, 16};
    }
};

// How the scales of A or B lie in memory, float32 numbers. With (o, k) for (row of A, k) or (column
// of B, k), counted in the elements or blocks that `kind` says, scale (o, k) of batch (p, q, ..) is
// at data[p * batch_stride[0] + q * batch_stride[1] + .. + o * outer_stride + k * k_stride].
// Strides count elements; those that `kind` has no use for are not read.
struct Scale {
    ScaleKind kind = ScaleKind::none;
    std::int64_t outer_stride = 1;
    std::int64_t k_stride = 1;
    BatchDims batch_stride{};
};

// A plain description without pointers: products with equal problems can share a Plan.
struct GemmProblem {
    std::int64_t m = 0;  // rows of A, C and D
    std::int64_t n = 0;  // columns of B, C and D
    std::int64_t k = 0;  // columns of A, rows of B
    int batch_rank = 0;  // 0: one product
    BatchDims batch_shape{};
    Operand a, b, d;
    // Has the dtype of D, also if beta = 0 and it is not read: without a C, describe it as D. A
    // bias of N numbers, one for each column, is a C with row_stride 0 (and beta = 1); one for each
    // row a C with col_stride 0.
    Operand c;
    Precision precision = Precision::automatic;
    Accumulate accumulate = Accumulate::automatic;
    Determinism determinism = Determinism::run_to_run;
    Scale scale_a, scale_b;  // of FP8 and INT8 operands; blocks go with FP8 only
    bool scale_d = false;    // whether D is multiplied by a float32 number in memory
    Overflow overflow = Overflow::saturate;  // of a D in FP8
};

}  // namespace tcgemm
