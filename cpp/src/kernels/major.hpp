// Which of an operand's dimensions is contiguous: what kernels are compiled for, four ways.
#pragma once

#include <type_traits>

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

template <Major major>
using MajorConstant = std::integral_constant<Major, major>;

// What `of_majors(a, b)`, of two MajorConstants, gives for these operands. Row's kernels are
// compiled for each pair or, unless Row::any_major, for contiguous k alone.
template <class Row, class OfMajors>
auto by_majors(const GemmArgs& args, const OfMajors& of_majors) {
    constexpr MajorConstant<Major::k> k;
    if constexpr (Row::any_major) {
        constexpr MajorConstant<Major::mn> mn;
        const bool k_in_a = major_of_a(args) == Major::k, k_in_b = major_of_b(args) == Major::k;
        if (!k_in_a) return k_in_b ? of_majors(mn, k) : of_majors(mn, mn);
        if (!k_in_b) return of_majors(k, mn);
    }
    return of_majors(k, k);
}

}  // namespace tcgemm
