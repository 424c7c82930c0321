#include "scales.hpp"

#include <string>
#include <utility>

#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

using std::int64_t;

int64_t blocks(int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

std::string pair(int64_t outer, int64_t k, bool outer_is_last) {
    if (outer_is_last) std::swap(outer, k);
    return "(" + std::to_string(outer) + ", " + std::to_string(k) + ")";
}

void check_dtype(const ArrayView& view, const char* what) {
    if (view.dtype == DType::f32) return;
    throw DTypeError(std::string(what) + " is " + name(view.dtype) +
                     "; scales are float32: convert it");
}

// The scales of an operand with `outer` rows of A or columns of B. `outer_is_last`: whether that is
// its last dimension.
Scale scale_of(const ArrayView& view, const ProductShape& shape, int64_t outer, bool outer_is_last,
               const char* what) {
    check_dtype(view, what);
    Scale scale;
    const int64_t outer_blocks = blocks(outer), k_blocks = blocks(shape.k);
    int64_t rows = 1, cols = 1;  // along outer, along K
    if (view.ndim == 1) {
        rows = view.shape[0];
        scale.outer_stride = view.stride[0];
    } else if (view.ndim >= 2) {
        const int o = view.ndim - (outer_is_last ? 1 : 2), k = view.ndim - (outer_is_last ? 2 : 1);
        rows = view.shape[o], cols = view.shape[k];
        scale.outer_stride = view.stride[o];
        scale.k_stride = view.stride[k];
    }
    if (rows == 1 && cols == 1) {
        scale.kind = ScaleKind::tensor;
    } else if (rows == outer && cols == 1) {
        scale.kind = ScaleKind::vector;
    } else if (rows == outer && cols == k_blocks) {
        scale.kind = ScaleKind::block_1x128;
    } else if (rows == outer_blocks && cols == k_blocks) {
        scale.kind = ScaleKind::block_128x128;
    } else {
        throw ShapeError(std::string(what) + " has shape " + text(view.ndim, view.shape) +
                         "; it must be () for one scale, " + pair(outer, 1, outer_is_last) +
                         " for one each " + (what == std::string("scale_a") ? "row" : "column") +
                         ", " + pair(outer, k_blocks, outer_is_last) + " for 128 k each, or " +
                         pair(outer_blocks, k_blocks, outer_is_last) +
                         " for blocks of 128 x 128, after dimensions of the batch");
    }
    const int batch_dims = view.ndim > 2 ? view.ndim - 2 : 0;
    for (int i = 0; i < batch_dims; ++i) {
        const int to = shape.batch_rank - batch_dims + i;
        if (view.shape[i] == 1) continue;
        if (to < 0 || view.shape[i] != shape.batch[to]) {
            throw ShapeError(std::string(what) + " has shape " + text(view.ndim, view.shape) +
                             ", whose dimensions before the last two do not broadcast to the "
                             "batch of the result, of shape " +
                             text(shape.out_ndim, shape.out) + "; give them its extents, or 1");
        }
        scale.batch_stride[to] = view.stride[i];
    }
    return scale;
}

}  // namespace

Scale scale_a_of(const Operands& operands, const ArrayView& seen, const ProductShape& shape,
                 bool transposed) {
    if (!operands.has(kScaleA)) return {};
    return scale_of(seen, shape, shape.m, transposed, "scale_a");
}

Scale scale_b_of(const Operands& operands, const ArrayView& seen, const ProductShape& shape,
                 bool transposed) {
    if (!operands.has(kScaleB)) return {};
    return scale_of(seen, shape, shape.n, !transposed, "scale_b");
}

bool has_scale_d(const Operands& operands) {
    if (!operands.has(kScaleD)) return false;
    const ArrayView& view = operands.view(kScaleD);
    check_dtype(view, "scale_d");
    if (view.element_count() == 1) return true;
    throw ShapeError("scale_d has shape " + text(view.ndim, view.shape) +
                     "; the result has one scale: pass a single float32 number");
}

}  // namespace tcgemm::python
