#include "problem/canonical.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "core/math.hpp"

namespace tcgemm::canonical {
namespace {

using std::int64_t;

void set_strides_of_single_rows_and_columns(Operand& operand, int64_t rows, int64_t cols) {
    if (cols <= 1) operand.col_stride = operand.row_stride == 1 && rows > 1 ? rows : 1;
    if (rows <= 1) operand.row_stride = operand.col_stride == 1 ? std::max<int64_t>(cols, 1) : 1;
}

void set_all_strides(GemmProblem& p) {
    set_strides_of_single_rows_and_columns(p.a, p.m, p.k);
    set_strides_of_single_rows_and_columns(p.b, p.k, p.n);
    set_strides_of_single_rows_and_columns(p.c, p.m, p.n);
    set_strides_of_single_rows_and_columns(p.d, p.m, p.n);
}

bool share_b(const GemmProblem& p, int dim) {
    return p.b.batch_stride[dim] == 0 && p.scale_b.batch_stride[dim] == 0;
}
bool share_a_alone(const GemmProblem& p, int dim) {
    return p.a.batch_stride[dim] == 0 && p.scale_a.batch_stride[dim] == 0 && !share_b(p, dim);
}
bool any(const GemmProblem& p, bool (*share)(const GemmProblem& p, int dim)) {
    for (int dim = 0; dim < p.batch_rank; ++dim) {
        if (p.batch_shape[dim] > 1 && share(p, dim)) return true;
    }
    return false;
}

// Calls change(dims) for the shape of the batch and for each operand's and scale's strides.
template <class Change>
void change_batch(GemmProblem& p, const Change& change) {
    change(p.batch_shape);
    for (Operand* o : {&p.a, &p.b, &p.c, &p.d}) change(o->batch_stride);
    for (Scale* scale : {&p.scale_a, &p.scale_b}) change(scale->batch_stride);
}

// The order of batch dimensions is nobody's: those that share B come last, where they may go on as
// rows, and the matrices of D one behind the other.
void sort_batch_dimensions(GemmProblem& p) {
    std::array<int, kMaxBatchDims> order;
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int dim) {
        return std::pair(!share_b(p, dim), std::abs(p.d.batch_stride[dim]));
    };
    std::stable_sort(order.begin(), order.begin() + p.batch_rank,
                     [&](int one, int other) { return key(one) > key(other); });
    change_batch(p, [&](BatchDims& dims) {
        const BatchDims given = dims;
        for (int dim = 0; dim < p.batch_rank; ++dim) dims[dim] = given[order[dim]];
    });
}

void merge_batch_dimensions(GemmProblem& p) {
    int rank = 0;
    for (int dim = 0; dim < p.batch_rank; ++dim) {
        const int64_t extent = p.batch_shape[dim];
        if (extent == 1) continue;
        bool merges = rank > 0;
        change_batch(p, [&](const BatchDims& strides) {
            int64_t walked = 0;  // an overflow means: not the same stride
            merges = merges && (&strides == &p.batch_shape ||
                                (!__builtin_mul_overflow(strides[dim], extent, &walked) &&
                                 strides[rank - 1] == walked));
        });
        const int to = merges ? rank - 1 : rank++;
        const int64_t merged = (merges ? p.batch_shape[to] : 1) * extent;
        change_batch(p, [&](BatchDims& dims) { dims[to] = dims[dim]; });
        p.batch_shape[to] = merged;
    }
    p.batch_rank = rank;
    change_batch(p, [&](BatchDims& dims) { std::fill(dims.begin() + rank, dims.end(), 0); });
}

// Whether the scales of `m` rows go on as those of the next matrix in batch dimension `dim`.
bool scales_continue(const Scale& scale, int64_t m, int dim) {
    const int64_t step = scale.batch_stride[dim];
    switch (scale.kind) {
        case ScaleKind::none: return true;
        case ScaleKind::tensor: return step == 0;
        case ScaleKind::vector:
        case ScaleKind::block_1x128: return m == 1 || step == scale.outer_stride * m;
        case ScaleKind::block_128x128: return false;
    }
    return false;
}

constexpr int64_t kMaxRows = int64_t{1} << 30;  // of the result; kernels count rows in 32 bits

// Whether the matrices of batch dimension `dim` share B and follow each other row by row.
bool continues_as_rows(const GemmProblem& p, int dim) {
    const auto continues = [&](const Operand& o) {
        int64_t walked = 0;  // an overflow means: no
        return p.m == 1 || (!__builtin_mul_overflow(o.row_stride, p.m, &walked) &&
                            o.batch_stride[dim] == walked);
    };
    return p.m <= kMaxRows / p.batch_shape[dim] && share_b(p, dim) && continues(p.a) &&
           continues(p.c) && continues(p.d) && scales_continue(p.scale_a, p.m, dim);
}

// Such matrices are one: better tiles, and B is loaded once.
void fold_batch_into_rows(GemmProblem& p) {
    for (int dim = p.batch_rank - 1; dim >= 0; --dim) {
        if (!continues_as_rows(p, dim)) continue;
        if (p.m == 1) {
            for (Operand* o : {&p.a, &p.c, &p.d}) o->row_stride = o->batch_stride[dim];
            if (p.scale_a.kind != ScaleKind::tensor) {
                p.scale_a.outer_stride = p.scale_a.batch_stride[dim];
            }
        }
        p.m *= p.batch_shape[dim];
        change_batch(p, [&](BatchDims& dims) {
            std::copy(dims.begin() + dim + 1, dims.begin() + p.batch_rank, dims.begin() + dim);
            dims[p.batch_rank - 1] = 0;
        });
        dim = --p.batch_rank;  // all are asked again, of more rows
    }
}

// Whether the rows of A, C and D may change places with the matrices of batch dimension `dim`: all
// first rows are a matrix then, all second ones, and so on.
bool may_interchange(const GemmProblem& p, int dim) {
    const Scale& scale = p.scale_a;
    return share_b(p, dim) && p.batch_shape[dim] <= kMaxRows &&
           scale.kind != ScaleKind::block_128x128 &&
           (scale.kind != ScaleKind::tensor || scale.batch_stride[dim] == 0);
}

void interchange(GemmProblem& p, int dim) {
    for (Operand* o : {&p.a, &p.c, &p.d}) std::swap(o->row_stride, o->batch_stride[dim]);
    Scale& scale = p.scale_a;
    if (scale.kind != ScaleKind::tensor) std::swap(scale.outer_stride, scale.batch_stride[dim]);
    std::swap(p.m, p.batch_shape[dim]);
    // Rows become the outermost dimension, so that others may go on as the new ones.
    change_batch(p, [dim](BatchDims& dims) {
        std::rotate(dims.begin(), dims.begin() + dim, dims.begin() + dim + 1);
    });
}

// Of many matrices with few rows that share B and do not follow each other, such as x[:, :2] @ w,
// rows and matrices change places: tiles are filled, and B is loaded as often as a matrix had rows.
void swap_rows_and_batch(GemmProblem& p) {
    constexpr int64_t kTileRows = 128;
    if (p.m == 0 || p.m >= kTileRows || p.a.col_stride != 1 || p.c.col_stride != 1 ||
        p.d.col_stride != 1) {
        return;
    }
    int best = -1;  // the dimension with most matrices
    for (int dim = 0; dim < p.batch_rank; ++dim) {
        const int64_t matrices = p.batch_shape[dim];
        const bool fills_tiles = 2 * p.m * divide_up(matrices, kTileRows) <= matrices;
        if (fills_tiles && may_interchange(p, dim) &&
            (best < 0 || matrices > p.batch_shape[best])) {
            best = dim;
        }
    }
    if (best >= 0) interchange(p, best);
}

void make_many_rows(GemmProblem& p) {
    fold_batch_into_rows(p);
    swap_rows_and_batch(p);
    fold_batch_into_rows(p);
}

// Where the rows of D lie between those of the matrices of a dimension, they may be matrices
// instead, which follow each other.
void put_outer_rows_back(GemmProblem& p) {
    for (int dim = p.batch_rank - 1; dim >= 0; --dim) {
        const auto lies_between = [&](const Operand& o) {
            int64_t walked = 0;
            return !__builtin_mul_overflow(o.batch_stride[dim], p.batch_shape[dim], &walked) &&
                   o.row_stride == walked;
        };
        if (!may_interchange(p, dim) || !lies_between(p.c) || !lies_between(p.d)) continue;
        interchange(p, dim);
        return sort_batch_dimensions(p);
    }
}

// A as packing leaves it: row-major, the matrices that differ one below the other.
Operand packed(const GemmProblem& p) {
    Operand a = p.a;
    a.alignment = kPackedAlignment;
    a.col_stride = 1;
    a.row_stride = packed_row(p);
    int64_t rows = p.m;
    for (int dim = p.batch_rank - 1; dim >= 0; --dim) {
        if (a.batch_stride[dim] == 0) continue;
        a.batch_stride[dim] = rows * a.row_stride;
        rows *= p.batch_shape[dim];
    }
    return a;
}

}  // namespace

void transpose(GemmProblem& p) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.scale_a, p.scale_b);
    for (Operand* const o : {&p.a, &p.b, &p.c, &p.d}) std::swap(o->row_stride, o->col_stride);
}

bool bring_into_form(GemmProblem& p) {
    // A column is a row, too, and matrices that share A share B then. Rows that share B stay rows.
    const bool lies_across =
        p.d.col_stride != 1 && (p.m > 1 ? p.d.row_stride == 1 : !any(p, share_b));
    bool transposed = p.n > 1 ? lies_across : p.m > 1 && any(p, share_a_alone);
    if (transposed) transpose(p);
    set_all_strides(p);
    sort_batch_dimensions(p);
    merge_batch_dimensions(p);
    make_many_rows(p);
    // A single column is a row, and matrices may have become rows of a column-major D.
    const bool still_across = p.d.row_stride == 1 && (p.n == 1 || (p.n > 1 && p.d.col_stride != 1));
    if (p.m > 1 && still_across) {
        transpose(p);
        transposed = !transposed;
        if (p.m == 1) fold_batch_into_rows(p);  // what shared A shares B now
    }
    set_all_strides(p);
    return transposed;
}

std::optional<GemmProblem> gather_rows(GemmProblem& p) {
    if (p.batch_rank == 0 || p.m == 1) return std::nullopt;  // a row goes on wherever A lies
    put_outer_rows_back(p);
    GemmProblem gathered = p;
    gathered.a = packed(p);
    make_many_rows(gathered);
    // Rows that are all the same one, of matrices that share A too, no tensor map can describe.
    if (gathered.m == p.m || gathered.a.row_stride == 0) return std::nullopt;
    merge_batch_dimensions(gathered);
    set_all_strides(gathered);
    return gathered;
}

int64_t packed_row(const GemmProblem& p) {
    return round_up(p.k, kPackedAlignment / size_of(p.a.dtype));
}

int64_t count_batches(const GemmProblem& p) {
    int64_t count = 1;
    for (int dim = 0; dim < p.batch_rank; ++dim) count *= p.batch_shape[dim];
    return count;
}

}  // namespace tcgemm::canonical
