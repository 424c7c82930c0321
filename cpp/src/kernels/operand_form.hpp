// Whether a kernel takes A or B where it lies, or a plan packs it first.
#pragma once

#include <cstdint>

#include "core/runtime.hpp"
#include "kernels/kernel_info.hpp"
#include "pack/pack.hpp"
#include "problem/valid_problem.hpp"

namespace tcgemm {

// Whether a kernel can load its vectors from the operand where it lies.
inline bool is_loadable(const GemmProblem& problem, const Operand& operand, std::int64_t rows,
                        std::int64_t cols, const OperandNeeds& needs, pack::Order order) {
    if (needs.vector_bytes == 0) return true;
    if (operand.alignment % needs.vector_bytes != 0) return false;
    const auto steps_by_vectors = [&](std::int64_t extent, std::int64_t stride,
                                      std::int64_t lowest = 1) {
        if (extent <= 1) return true;
        const std::int64_t bytes = stride * size_of(operand.dtype);
        if (needs.tensor_map && (stride < lowest || bytes >= runtime::kTensorMapStrides)) {
            return false;
        }
        return bytes % needs.vector_bytes == 0;
    };
    const bool row_major = operand.col_stride == 1 && steps_by_vectors(rows, operand.row_stride);
    const bool col_major = operand.row_stride == 1 && steps_by_vectors(cols, operand.col_stride);
    if (order == pack::Order::row && !row_major) return false;
    if (order == pack::Order::col && !col_major) return false;
    if (!row_major && !col_major) return false;
    for (int dim = 0; dim < problem.batch_rank; ++dim) {
        if (!steps_by_vectors(problem.batch_shape[dim], operand.batch_stride[dim], 0)) return false;
    }
    return true;
}

// Matrices of an operand that differ: those that a batch shares are packed, and come from memory,
// once.
inline double distinct_matrices(const GemmProblem& problem, const Operand& operand) {
    double count = 1;
    for (int dim = 0; dim < problem.batch_rank; ++dim) {
        if (operand.batch_stride[dim] != 0) count *= static_cast<double>(problem.batch_shape[dim]);
    }
    return count;
}

// Rows of A and columns of B that differ, and their bytes in elements of so many.
inline double operand_lines(const ValidProblem& problem) {
    return static_cast<double>(problem->m) * distinct_matrices(*problem, problem->a) +
           static_cast<double>(problem->n) * distinct_matrices(*problem, problem->b);
}
inline double operand_bytes(const ValidProblem& problem, int element_bytes) {
    return operand_lines(problem) * static_cast<double>(problem->k) * element_bytes;
}

// Whether packing rounds the operand to TF32. Of narrower dtypes, float32 holds what TF32 holds.
inline bool is_rounded_to_tf32(const ValidProblem& problem, const Operand& operand,
                               const OperandNeeds& needs) {
    return problem->precision == Precision::tf32 && !needs.any_dtype &&
           (operand.dtype == DType::f32 || operand.dtype == DType::f64);
}

// The order in which a kernel needs the problem's A, M x K, or its B, K x N. `transposed`: it
// computes D^T.
inline pack::Order order_of_a(const OperandNeeds& needs, bool transposed) {
    const bool is_k_major = transposed ? needs.k_major_b : needs.k_major_a;
    return is_k_major ? pack::Order::row : pack::Order::either;
}
inline pack::Order order_of_b(const OperandNeeds& needs, bool transposed) {
    const bool is_k_major = transposed ? needs.k_major_a : needs.k_major_b;
    return is_k_major ? pack::Order::col : pack::Order::either;
}

inline bool is_packed(const ValidProblem& problem, const Operand& operand, std::int64_t rows,
                      std::int64_t cols, const OperandNeeds& needs, pack::Order order) {
    if (rows == 0 || cols == 0) return false;
    const bool right_dtype = operand.dtype == operand_dtype(needs, problem, operand.dtype) &&
                             (!is_rounded_to_tf32(problem, operand, needs) || needs.rounds_to_tf32);
    return !right_dtype || !is_loadable(*problem, operand, rows, cols, needs, order);
}
// The problem's A, M x K, and its B, K x N, for a kernel that computes D.
inline bool packs_a(const ValidProblem& problem, const OperandNeeds& needs) {
    return is_packed(problem, problem->a, problem->m, problem->k, needs, order_of_a(needs, false));
}
inline bool packs_b(const ValidProblem& problem, const OperandNeeds& needs) {
    return is_packed(problem, problem->b, problem->k, problem->n, needs, order_of_b(needs, false));
}

// What a plan packs operands for, with pack::launch: halves are made of float32 with any strides.
constexpr OperandNeeds packed_needs(const OperandNeeds& needs) {
    return needs.halves() ? OperandNeeds{} : needs;
}

}  // namespace tcgemm
