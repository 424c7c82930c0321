// The Array API's rules of matmul, and the GemmProblem that they make of arrays.
#pragma once

#include "array_view.hpp"
#include "tcgemm/problem.hpp"

namespace tcgemm::python {

// Sizes of a product of stacks of matrices. A 1-D operand counts as a matrix of one row (A) or one
// column (B), and that dimension is missing in the result.
struct ProductShape {
    std::int64_t m = 0, n = 0, k = 0;
    int batch_rank = 0;
    BatchDims batch{};
    bool a_is_vector = false, b_is_vector = false;
    int out_ndim = 0;
    Dims out{};
};

// Throws ShapeError. trans_*: the last two dimensions trade places.
ProductShape product_shape(const ArrayView& a, const ArrayView& b, bool trans_a, bool trans_b);

// The operands as the library sees them, broadcast to the batch.
Operand operand_a(const ArrayView& a, const ProductShape& shape, bool transposed);
Operand operand_b(const ArrayView& b, const ProductShape& shape, bool transposed);
// C and D; `view` is broadcast to the shape of the result. Throws ShapeError where it can't be;
// `operand` is its name in the message.
Operand operand_out(const ArrayView& view, const ProductShape& shape, const char* operand);

}  // namespace tcgemm::python
