#include "scales.hpp"

#include <algorithm>
#include <string>

#include "core/math.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

using std::int64_t;

int64_t blocks(int64_t extent) { return divide_up(extent, kScaleBlock); }

// Which shapes scales may have, each once: the arguments are those of scale_of().
std::string accepted(const ProductShape& shape, int64_t outer, bool outer_is_last,
                     bool takes_blocks, const char* what) {
    const auto scales = [&](int64_t rows, int64_t cols, int batch_rank) {
        Dims dims{};
        std::copy_n(shape.batch.begin(), batch_rank, dims.begin());
        dims[batch_rank] = outer_is_last ? cols : rows;
        dims[batch_rank + 1] = outer_is_last ? rows : cols;
        return text(batch_rank + 2, dims);
    };
    const std::string each = what == std::string("scale_a") ? "row" : "column";
    std::string result = "() for one scale";
    const int64_t outer_blocks = blocks(outer), k_blocks = blocks(shape.k);
    if (outer != 1) {
        Dims vector{};
        vector[0] = outer;
        result +=
            ", " + text(1, vector) + " or " + scales(outer, 1, 0) + " for one for each " + each;
    }
    if (takes_blocks && k_blocks != 1) {
        result += ", " + scales(outer, k_blocks, 0) + " for 128 k each";
    }
    if (takes_blocks && outer_blocks != outer && (outer_blocks != 1 || k_blocks != 1)) {
        result += ", " + scales(outer_blocks, k_blocks, 0) + " for blocks of 128 x 128";
    }
    if (shape.batch_rank > 0) {
        result += "; where each matrix of the batch has its own, " +
                  scales(1, 1, shape.batch_rank) + " for one scale or " +
                  scales(outer, 1, shape.batch_rank) + " for one for each " + each;
    }
    return result;
}

// The scales of an operand with `outer` rows of A or columns of B. `outer_is_last`: whether that is
// its last dimension. `takes_blocks`: whether its dtype goes with scales of blocks.
Scale scale_of(const ArrayView& view, const ProductShape& shape, int64_t outer, bool outer_is_last,
               bool takes_blocks, const char* what) {
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
    } else if (view.ndim > 1 && rows == outer_blocks && cols == k_blocks) {
        scale.kind = ScaleKind::block_128x128;
    } else {
        throw ShapeError(std::string(what) + " has shape " + text(view.ndim, view.shape) +
                         "; it must be " +
                         accepted(shape, outer, outer_is_last, takes_blocks, what));
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
    const bool takes_blocks = !is_integer(operands.view(kA).dtype);
    return scale_of(seen, shape, shape.m, transposed, takes_blocks, "scale_a");
}

Scale scale_b_of(const Operands& operands, const ArrayView& seen, const ProductShape& shape,
                 bool transposed) {
    if (!operands.has(kScaleB)) return {};
    const bool takes_blocks = !is_integer(operands.view(kB).dtype);
    return scale_of(seen, shape, shape.n, !transposed, takes_blocks, "scale_b");
}

bool has_scale_d(const Operands& operands) {
    if (!operands.has(kScaleD)) return false;
    const ArrayView& view = operands.view(kScaleD);
    if (view.element_count() == 1) return true;
    throw ShapeError("scale_d has shape " + text(view.ndim, view.shape) +
                     "; the result has one scale: pass a single float32 number");
}

}  // namespace tcgemm::python
