#include <algorithm>

#include "core/l2.hpp"
#include "core/math.hpp"
#include "pack/conversions.hpp"
#include "pack/halves.hpp"
#include "pack/pack.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::pack {
namespace {

// Rows of packed operands start at multiples of 16 bytes at least: the widest access of a thread.
constexpr int kMinVectorBytes = 16;
// Whole lines of L2 are not worth more than this part of a row. What is read amid its sectors costs
// more than either.
constexpr int kMostPadding = 8;

std::int64_t product(std::int64_t left, std::int64_t right) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(left, right, &result)) {
        throw ShapeError(
            "an operand has to be packed (converted or copied into another layout), which takes "
            "more bytes than int64 can count; give it in the dtype that the precision computes in, "
            "without broadcast rows or columns");
    }
    return result;
}

// Elements from a row of `inner` to the next.
std::int64_t padded(std::int64_t inner, int vector_bytes, int element_bytes) {
    const auto to_multiple_of = [&](std::int64_t bytes) {
        const std::int64_t vector = bytes / element_bytes;
        return product(divide_up(inner, vector), vector);
    };
    const std::int64_t whole = to_multiple_of(std::max(vector_bytes, kMinVectorBytes));
    if (vector_bytes <= kSectorBytes || whole - inner <= inner / kMostPadding) return whole;
    return to_multiple_of(kSectorBytes);
}

}  // namespace

bool converts(DType from, DType to) {
#define TCGEMM_ROW(from_id, to_id) \
    if (from == DType::from_id && to == DType::to_id) return true;
    TCGEMM_CONVERSIONS(TCGEMM_ROW)
#undef TCGEMM_ROW
    return from == to && is_fp8(from);  // copied as bytes
}

PackLayout packed_layout(const MatrixView& source, std::int64_t rows, std::int64_t cols,
                         const BatchShape& batch, DType to, int vector_bytes, Order order) {
    const bool col_major =
        is_packed_col_major(source.row_stride, source.col_stride, rows, cols, order);
    const std::int64_t inner = col_major ? rows : cols, outer = col_major ? cols : rows;
    const std::int64_t leading_dimension = padded(inner, vector_bytes, size_of(to));

    PackLayout layout;
    layout.view.dtype = to;
    layout.view.row_stride = col_major ? 1 : leading_dimension;
    layout.view.col_stride = col_major ? leading_dimension : 1;
    layout.batch.rank = batch.rank;
    std::int64_t elements = product(outer, leading_dimension);
    for (int dim = batch.rank - 1; dim >= 0; --dim) {
        const bool broadcast = source.batch_stride[dim] == 0;
        layout.batch.extent[dim] = broadcast ? 1 : batch.extent[dim];
        layout.batch.count *= layout.batch.extent[dim];
        layout.view.batch_stride[dim] = broadcast ? 0 : elements;
        elements = product(elements, layout.batch.extent[dim]);
    }
    layout.bytes = static_cast<std::size_t>(product(elements, size_of(to)));
    return layout;
}

HalvesTask halves_task(const MatrixView& source, bool is_b, std::int64_t rows, std::int64_t k,
                       int block, const BatchShape& batch) {
    HalvesTask task;
    task.source = source;
    task.is_b = is_b;
    task.rows = rows;
    task.k = k;
    task.block = block;
    const std::int64_t packed = halves::packed_k(k, block);
    task.target = is_b ? packed_layout(source, packed, rows, batch, DType::f16, 0, Order::col)
                       : packed_layout(source, rows, packed, batch, DType::f16, 0, Order::row);
    return task;
}

std::int64_t exponents_bytes(const HalvesTask& task) {
    return task.rows * task.target.batch.count * static_cast<std::int64_t>(sizeof(int));
}

}  // namespace tcgemm::pack
