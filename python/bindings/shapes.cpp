#include "shapes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

using std::int64_t;

void check_dimensions(const ArrayView& view, const char* operand, bool transposed) {
    if (view.ndim == 0) {
        throw ShapeError(std::string(operand) +
                         " is 0-dimensional; matrix products take 1 dimension or " +
                         "more: multiply scalars with *");
    }
    if (view.ndim == 1 && transposed) {
        throw ShapeError(std::string("trans_") + operand + " is True, but " + operand +
                         " of shape " + text(view.ndim, view.shape) +
                         " has no two dimensions to swap");
    }
}

void broadcast_batch(ProductShape& shape, const ArrayView& a, const ArrayView& b) {
    const int a_rank = std::max(a.ndim - 2, 0), b_rank = std::max(b.ndim - 2, 0);
    shape.batch_rank = std::max(a_rank, b_rank);
    for (int dim = 0; dim < shape.batch_rank; ++dim) {
        const int a_dim = dim - (shape.batch_rank - a_rank),
                  b_dim = dim - (shape.batch_rank - b_rank);
        const int64_t x = a_dim < 0 ? 1 : a.shape[a_dim];
        const int64_t y = b_dim < 0 ? 1 : b.shape[b_dim];
        if (x != y && x != 1 && y != 1) {
            throw ShapeError("batch dimensions do not broadcast: a has shape " +
                             text(a.ndim, a.shape) + ", b has shape " + text(b.ndim, b.shape) +
                             "; " + std::to_string(x) + " and " + std::to_string(y) +
                             " must be equal, or one of them 1");
        }
        shape.batch[dim] = x == 1 ? y : x;
    }
}

// Strides of the batch dimensions of `view`, whose last batch dimension is `last`.
void set_batch_strides(Operand& operand, const ArrayView& view, int last,
                       const ProductShape& shape) {
    for (int dim = shape.batch_rank - 1, from = last; dim >= 0 && from >= 0; --dim, --from) {
        operand.batch_stride[dim] = view.shape[from] == 1 ? 0 : view.stride[from];
    }
}

Operand describe(const ArrayView& view, int64_t row_stride, int64_t col_stride) {
    Operand operand;
    operand.dtype = view.dtype;
    operand.row_stride = row_stride;
    operand.col_stride = col_stride;
    operand.alignment = view.alignment();
    return operand;
}

}  // namespace

ProductShape product_shape(const ArrayView& a, const ArrayView& b, bool trans_a, bool trans_b) {
    check_dimensions(a, "a", trans_a);
    check_dimensions(b, "b", trans_b);
    ProductShape shape;
    shape.a_is_vector = a.ndim == 1;
    shape.b_is_vector = b.ndim == 1;
    shape.m = shape.a_is_vector ? 1 : a.shape[a.ndim - (trans_a ? 1 : 2)];
    shape.n = shape.b_is_vector ? 1 : b.shape[b.ndim - (trans_b ? 2 : 1)];
    shape.k = a.shape[a.ndim - (trans_a ? 2 : 1)];
    const int64_t b_rows = shape.b_is_vector ? b.shape[0] : b.shape[b.ndim - (trans_b ? 1 : 2)];
    if (shape.k != b_rows) {
        throw ShapeError("inner dimensions differ: a of shape " + text(a.ndim, a.shape) +
                         (trans_a ? " (transposed)" : "") + " has " + std::to_string(shape.k) +
                         " columns, b of shape " + text(b.ndim, b.shape) +
                         (trans_b ? " (transposed)" : "") + " has " + std::to_string(b_rows) +
                         " rows; they must be equal");
    }
    broadcast_batch(shape, a, b);
    for (int dim = 0; dim < shape.batch_rank; ++dim) shape.out[shape.out_ndim++] = shape.batch[dim];
    if (!shape.a_is_vector) shape.out[shape.out_ndim++] = shape.m;
    if (!shape.b_is_vector) shape.out[shape.out_ndim++] = shape.n;
    return shape;
}

Operand operand_a(const ArrayView& a, const ProductShape& shape, bool transposed) {
    if (shape.a_is_vector) return describe(a, 0, a.stride[0]);
    int64_t row = a.stride[a.ndim - 2], col = a.stride[a.ndim - 1];
    if (transposed) std::swap(row, col);
    Operand operand = describe(a, row, col);
    set_batch_strides(operand, a, a.ndim - 3, shape);
    return operand;
}

Operand operand_b(const ArrayView& b, const ProductShape& shape, bool transposed) {
    if (shape.b_is_vector) return describe(b, b.stride[0], 0);
    int64_t row = b.stride[b.ndim - 2], col = b.stride[b.ndim - 1];
    if (transposed) std::swap(row, col);
    Operand operand = describe(b, row, col);
    set_batch_strides(operand, b, b.ndim - 3, shape);
    return operand;
}

Operand operand_out(const ArrayView& view, const ProductShape& shape, const char* operand) {
    Dims stride{};  // of the result's dimensions; 0 where `view` is repeated
    bool fits = view.ndim <= shape.out_ndim;
    for (int dim = shape.out_ndim - 1, from = view.ndim - 1; fits && from >= 0; --dim, --from) {
        fits = view.shape[from] == shape.out[dim] || view.shape[from] == 1;
        stride[dim] = view.shape[from] == 1 ? 0 : view.stride[from];
    }
    if (!fits) {
        throw ShapeError(std::string(operand) + " has shape " + text(view.ndim, view.shape) +
                         ", which does not broadcast to the result's " +
                         text(shape.out_ndim, shape.out) +
                         "; give it that shape, or dimensions of 1 in it");
    }
    int last = shape.out_ndim - 1;
    const int64_t col = shape.b_is_vector ? 0 : stride[last--];
    const int64_t row = shape.a_is_vector ? 0 : stride[last--];
    Operand result = describe(view, row, col);
    for (int dim = 0; dim < shape.batch_rank; ++dim) result.batch_stride[dim] = stride[dim];
    return result;
}

}  // namespace tcgemm::python
