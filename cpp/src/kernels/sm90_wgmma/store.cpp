#include "kernels/sm90_wgmma/store.hpp"

#include <algorithm>

#include "core/runtime.hpp"
#include "kernels/sm90_wgmma/policy.hpp"

namespace tcgemm::sm90_wgmma {
namespace {

bool is_tensor_stride(std::int64_t stride, DType dtype) {
    const std::int64_t bytes = stride * size_of(dtype);
    return bytes % kTensorBytes == 0 && bytes < runtime::kTensorMapStrides;
}

}  // namespace

StoredMatrix stored_matrix(const Operand& operand, int batch_rank) {
    return {operand.dtype,      operand.row_stride,
            operand.col_stride, operand.batch_stride.data(),
            batch_rank,         operand.alignment >= kTensorBytes};
}

StoredMatrix stored_matrix(const MatrixView& view, int batch_rank) {
    return {view.dtype,      view.row_stride,
            view.col_stride, view.batch_stride,
            batch_rank,      reinterpret_cast<std::uintptr_t>(view.data) % kTensorBytes == 0};
}

bool copy_engine_takes(const StoredMatrix& matrix, std::int64_t m, std::int64_t n,
                       bool transposed) {
    const std::int64_t lines = transposed ? n : m, elements = transposed ? m : n;
    const std::int64_t line_stride = transposed ? matrix.col_stride : matrix.row_stride;
    const std::int64_t element_stride = transposed ? matrix.row_stride : matrix.col_stride;
    const auto can_step = [&](std::int64_t stride) {
        return stride >= 0 && is_tensor_stride(stride, matrix.dtype);
    };
    // It writes kTensorBytes, also where the last element of a line ends within them.
    return matrix.dtype != DType::f64 && !(transposed && is_fp8(matrix.dtype)) &&
           matrix.is_aligned && element_stride == 1 &&
           elements * size_of(matrix.dtype) % kTensorBytes == 0 &&
           (lines == 1 || (line_stride > 0 && can_step(line_stride))) &&
           std::all_of(matrix.batch_stride, matrix.batch_stride + matrix.batch_rank, can_step);
}

Store store_of(const StoredMatrix& d, const StoredMatrix* c, std::int64_t m, std::int64_t n,
               int n_step, bool transposed) {
    // A C of FP8 is rare, and as much code again.
    if (c != nullptr && is_fp8(d.dtype)) return Store::elements;
    const auto both = [&](const auto& fit) { return fit(d) && (c == nullptr || fit(*c)); };
    // Where a tile ends and the next one begins.
    const bool meets_amid = n_step < n && n_step * size_of(d.dtype) % kTensorBytes != 0;
    if (!meets_amid && both([&](const StoredMatrix& matrix) {
            return copy_engine_takes(matrix, m, n, transposed);
        })) {
        return transposed ? Store::transposed : Store::tensor;
    }
    // Of a tile that is narrower than a box single elements are stored sooner.
    const bool has_boxes = n_step * size_of(d.dtype) >= kRowBytes;
    const bool has_rows = both([](const StoredMatrix& matrix) {
        return matrix.dtype != DType::f64 && matrix.col_stride == 1;
    });
    return has_boxes && has_rows ? Store::rows : Store::elements;
}

}  // namespace tcgemm::sm90_wgmma
