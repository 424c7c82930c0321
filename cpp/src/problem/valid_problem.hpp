// A problem that was checked: the only way from GemmProblem to a Plan. Every later step trusts it.
#pragma once

#include <cstdint>
#include <optional>

#include "problem/footprint.hpp"
#include "tcgemm/problem.hpp"

namespace tcgemm {

// Canonical form, so that kernels see fewer cases:
//  - D has unit column stride wherever one of its strides is 1: a column-major D is computed as
//    D^T = B^T A^T (`is_transposed()`; A and B, m and n trade places and all strides with them);
//  - batch dimensions of extent 1 are gone, the others are in the order of their strides, and
//    neighbours that one stride can walk are merged; matrices that share B and follow each other
//    row by row, in any dimension, are one matrix of more rows, and few rows that do not follow
//    each other change places with a dimension that does;
//  - a single column is a row, where its elements follow each other or matrices share A;
//  - the stride of a dimension of extent 1 is what a packed matrix would have, row-major, or
//    column-major where it is a column whose elements follow each other;
//  - precision and accumulate are resolved, never `automatic`.
class ValidProblem {
   public:
    // The one maker. Throws InvalidArgument, ShapeError, DTypeError or LayoutError.
    static ValidProblem check(const GemmProblem& problem);

    const GemmProblem& operator*() const { return problem_; }
    const GemmProblem* operator->() const { return &problem_; }
    const GemmProblem& as_given() const { return given_; }

    bool is_transposed() const { return transposed_; }
    // The same as D^T = B^T A^T, whatever its strides are then: for kernels that can store that.
    ValidProblem as_transposed() const;
    // The same with matrices that share B as one, of more rows, where only those of A do not follow
    // each other: problem->a is as the plan has to pack it. None where no two would follow.
    std::optional<ValidProblem> gathered() const;
    bool is_gathered() const { return ungathered_.has_value(); }
    // Of a gathered problem the one that it is made of, with A where it lies; else the problem.
    const GemmProblem& ungathered() const { return ungathered_ ? *ungathered_ : problem_; }
    // See Determinism. A kernel that accepts such a problem adds up the products of an element in
    // an order that follows as_given().n, k, dtypes and precision alone. What decides that order,
    // split-K and the depth of a k-block, must not depend on as_given().m, the batch, strides,
    // alignment or is_transposed(). (Two kernels may serve one K and N only where they give the
    // same bits.) Sums of whole numbers are exact in any order.
    bool batch_invariant() const {
        return problem_.determinism == Determinism::batch_invariant &&
               problem_.d.dtype != DType::i32;
    }
    bool has_block_scales() const {
        return is_blockwise(problem_.scale_a.kind) || is_blockwise(problem_.scale_b.kind);
    }
    // What kernels take A and B in, unless they say otherwise: it holds all that the precision
    // leaves of them. float16 for FP8, float32 for tf32.
    DType compute_dtype() const { return compute_dtype_; }
    // Follows from scales and dtypes: see epilogue.hpp.
    Epilogue epilogue() const { return epilogue_; }
    std::int64_t batch_count() const { return batch_count_; }
    bool empty() const { return problem_.m == 0 || problem_.n == 0 || batch_count_ == 0; }

   private:
    ValidProblem() = default;
    GemmProblem problem_, given_;
    std::optional<GemmProblem> ungathered_;
    bool transposed_ = false;
    DType compute_dtype_ = DType::f32;
    Epilogue epilogue_ = Epilogue::linear;
    std::int64_t batch_count_ = 1;
};

// Of a rows x cols operand of `problem`'s batch. Throws ShapeError where it spans more than any
// memory; `operand_name` is for the message.
Footprint footprint(const GemmProblem& problem, const Operand& operand, std::int64_t rows,
                    std::int64_t cols, const char* operand_name);

}  // namespace tcgemm
