// How D goes out and C comes in: one answer for launches, their prices and tiles across D.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"
#include "kernels/sm90_wgmma/params.hpp"
#include "tcgemm/problem.hpp"

namespace tcgemm::sm90_wgmma {

// D or C, of a problem or of a launch, in so many batch dimensions.
struct StoredMatrix {
    DType dtype;
    std::int64_t row_stride, col_stride;
    const std::int64_t* batch_stride;
    int batch_rank;
    bool is_aligned;  // to what the copy engine asks for
};
StoredMatrix stored_matrix(const Operand& operand, int batch_rank);
StoredMatrix stored_matrix(const MatrixView& view, int batch_rank);

// Whether the copy engine can store D, M x N, or load C, which may be broadcast over batches.
// `transposed`: columns are contiguous.
bool copy_engine_takes(const StoredMatrix& matrix, std::int64_t m, std::int64_t n, bool transposed);

// How D, M x N, is stored, in tiles of `n_step` columns. `c`: null where it is not read.
Store store_of(const StoredMatrix& d, const StoredMatrix* c, std::int64_t m, std::int64_t n,
               int n_step, bool transposed);

}  // namespace tcgemm::sm90_wgmma
