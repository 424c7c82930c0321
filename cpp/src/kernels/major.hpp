// Which of an operand's dimensions is contiguous: what kernels are compiled for, four ways.
#pragma once

#include "kernels/gemm_args.hpp"

namespace tcgemm {

enum class Major { k, mn };  // k, or the other one: m of A, n of B

// Of operands that vectors of 16 bytes can be loaded from. Where both have unit stride, it is the
// one whose neighbours start where a vector may.
inline bool has_unit_columns(const MatrixView& view, std::int64_t rows) {
    const std::int64_t vector = 16 / size_of(view.dtype);  // elements
    return view.col_stride == 1 && (rows == 1 || view.row_stride % vector == 0);
}
inline Major major_of_a(const GemmArgs& args) {
    return has_unit_columns(args.a, args.m) ? Major::k : Major::mn;
}
inline Major major_of_b(const GemmArgs& args) {
    return has_unit_columns(args.b, args.k) ? Major::mn : Major::k;
}

// Of something for each pair, A's major first, the one for this pair.
template <class T>
T of_majors(Major a, Major b, T k_k, T k_mn, T mn_k, T mn_mn) {
    if (a == Major::k) return b == Major::k ? k_k : k_mn;
    return b == Major::k ? mn_k : mn_mn;
}

}  // namespace tcgemm
