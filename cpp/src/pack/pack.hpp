// Packing: operands into the form that a kernel takes. One pass over the bytes: dtype conversion
// (to nearest even), padding of the leading dimension and gathering of any strides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/gemm_args.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::pack {

// Where a packed operand lies in its own buffer. `view.data` is null until the plan runs.
struct PackLayout {
    MatrixView view;   // strides and dtype of the packed operand; stride 0 for broadcasts
    BatchShape batch;  // the batches that are really there: broadcast ones have extent 1
    std::size_t bytes = 0;
};

// Of a packed matrix: columns (row) or rows (col) are contiguous.
enum class Order : std::uint8_t { either, row, col };

// Whether columns of what is packed are contiguous. Without an order the major order of the source
// stays: column-major if its row stride is 1 and its column stride is not, otherwise row-major; a
// single row or column lies along its elements.
constexpr bool is_packed_col_major(std::int64_t row_stride, std::int64_t col_stride,
                                   std::int64_t rows, std::int64_t cols, Order order) {
    if (order != Order::either) return order == Order::col;
    if (rows == 1 || cols == 1) return rows != 1;
    return row_stride == 1 && col_stride != 1;
}
// The layout of `source` (rows x cols) as dtype `to`, leading dimension a multiple of
// `vector_bytes`, or of a sector of L2 where that makes short rows much shorter.
PackLayout packed_layout(const MatrixView& source, std::int64_t rows, std::int64_t cols,
                         const BatchShape& batch, DType to, int vector_bytes,
                         Order order = Order::either);

// True where the pack table has the conversion.
bool converts(DType from, DType to);

// An operand whose neighbours change in the pass goes through shared memory in tiles: of the outer
// elements, neighbours in the source, 2^log_beside vectors of 16 bytes, the fewest that hold them
// all; of the inner ones, neighbours in the target, 128 where that is 8 vectors, the more the fewer
// vectors there are. See across.cuh.
inline constexpr int kTransposedVector = 16, kLogMostBeside = 3, kTransposedInner = 128;
constexpr int log_beside(std::int64_t outer_bytes) {
    int log = 0;
    while (log < kLogMostBeside && kTransposedVector << log < outer_bytes) ++log;
    return log;
}
inline double transposed_tiles(std::int64_t outer, std::int64_t inner, DType from) {
    const std::int64_t outer_bytes = outer * size_of(from);
    const int log = log_beside(outer_bytes);
    return static_cast<double>(divide_up(outer_bytes, kTransposedVector << log)) *
           static_cast<double>(divide_up(inner, kTransposedInner << (kLogMostBeside - log)));
}

// One operand and where it goes; converts(source.dtype, target.view.dtype). rounds_to_tf32: float32
// or float64 to float32, in which TF32's 11 significant bits are left.
struct Task {
    MatrixView source;
    std::int64_t rows = 0, cols = 0;
    PackLayout target;
    bool rounds_to_tf32 = false;
};

// Packs one operand or two on `stream`, in one launch where both have the same dtypes. All `data`
// is set; the padding's content is unspecified. Reads whole blocks of 16 aligned bytes that hold an
// element. The kernel overlaps the end of the one before it in the stream where the GPU can do that
// (cc 9.0), and lets the next one do so: see device::LaunchConfig.
void launch(const Task* tasks, int count, StreamView stream);

}  // namespace tcgemm::pack
