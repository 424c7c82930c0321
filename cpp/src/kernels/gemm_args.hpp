// What a kernel is given: plain data, passed by value to the GPU. Strides count elements.
#pragma once

#include <cstdint>
#include <utility>

#include "core/host_device.hpp"
#include "tcgemm/dtype.hpp"
#include "tcgemm/problem.hpp"

namespace tcgemm {

struct BatchShape {
    int rank = 0;
    std::int64_t count = 1;  // product of the extents
    std::int64_t extent[kMaxBatchDims] = {};
};

struct MatrixView {
    void* data = nullptr;
    std::int64_t row_stride = 0;
    std::int64_t col_stride = 0;
    std::int64_t batch_stride[kMaxBatchDims] = {};
    DType dtype = DType::f32;
};

// The scales of A or B: see Scale (problem.hpp). `outer` counts rows of A or columns of B. Strides
// that the kind has no use for are 0, so that every kind is read in one way.
struct ScaleView {
    const float* data = nullptr;  // null: 1 everywhere
    std::int64_t outer_stride = 0;
    std::int64_t k_stride = 0;
    std::int64_t batch_stride[kMaxBatchDims] = {};
    int outer_block = 1;   // rows or columns that share a scale
    bool along_k = false;  // it differs from block to block of kScaleBlock k
};

struct ScaleArgs {
    ScaleView a, b;
    const float* d = nullptr;  // null: 1
    Overflow overflow = Overflow::saturate;
};

// A launch that is wanted only for some values of the operands: what a pass before it reported in
// device memory decides (kernels/halves.hpp). Every kernel of such a launch asks wanted() first.
namespace halves {
struct Report;
}
struct RunIf {
    const halves::Report* report = nullptr;  // null: always wanted
    int max_spans = 0;
    bool fits = true;  // wanted where the operands fit halves; false: where they do not
};

struct GemmArgs {
    std::int64_t m = 0, n = 0, k = 0;  // k = 0 where alpha = 0: A and B are not read then
    BatchShape batch;
    MatrixView a, b;  // never written
    MatrixView c;     // read only where beta != 0; dtype equals d's
    MatrixView d;     // unit column stride unless neither stride of the user's D is 1
    double alpha = 1.0, beta = 0.0;
    void* workspace = nullptr;  // Schedule::workspace_bytes of it, aligned to 256
    // On the host, for the duration of the launch; set where the epilogue is `scaled`. A launcher
    // copies what its kernels take.
    const ScaleArgs* scales = nullptr;
    // Of operands in halves: for each row of A and column of B, in the order of their batches.
    const int *exponents_a = nullptr, *exponents_b = nullptr;
    RunIf run_if;
};

// The product as D^T = B^T A^T, without its scales.
inline GemmArgs transposed(GemmArgs args) {
    std::swap(args.m, args.n);
    std::swap(args.a, args.b);
    std::swap(args.exponents_a, args.exponents_b);
    for (MatrixView* const view : {&args.a, &args.b, &args.c, &args.d}) {
        std::swap(view->row_stride, view->col_stride);
    }
    return args;
}

// Element offset of a batch: `index` counts the batches in row-major order of the extents.
TCGEMM_HOST_DEVICE std::int64_t batch_offset(const BatchShape& shape, const std::int64_t* stride,
                                             std::int64_t index) {
    std::int64_t offset = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // a division of 64 bits is long code
#endif
    for (int dim = shape.rank - 1; dim > 0; --dim) {
        const std::int64_t rest = index / shape.extent[dim];
        offset += (index - rest * shape.extent[dim]) * stride[dim];
        index = rest;
    }
    return shape.rank > 0 ? offset + index * stride[0] : offset;
}
// The same from the index in each dimension, 0 in those that the shape does not have.
template <int kDims>
TCGEMM_HOST_DEVICE std::int64_t batch_offset(const BatchShape&, const std::int64_t* stride,
                                             const int (&index)[kDims]) {
    std::int64_t offset = 0;
    for (int dim = 0; dim < kDims; ++dim) offset += index[dim] * stride[dim];
    return offset;
}
// Of element (row, col) of a matrix; `batch`: what batch_offset() takes.
template <class Index>
TCGEMM_HOST_DEVICE std::int64_t element_offset(const BatchShape& shape, const MatrixView& view,
                                               const Index& batch, std::int64_t row,
                                               std::int64_t col) {
    return batch_offset(shape, view.batch_stride, batch) + row * view.row_stride +
           col * view.col_stride;
}

}  // namespace tcgemm
