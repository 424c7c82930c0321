// Which of an operand's dimensions is contiguous: what kernels are compiled for, four ways.
#pragma once

#include <type_traits>

#include "kernels/gemm_args.hpp"

namespace tcgemm {

enum class Major { k, mn };  // k, or the other one: m of A, n of B

// Of operands that vectors of 16 bytes, or elements of 8, can be loaded from. Where both have unit
// stride, it is the one whose neighbours start where a vector may.
inline bool has_unit_columns(const MatrixView& view, std::int64_t rows) {
    const int item = size_of(view.dtype);
    const bool steps = item == 8 ? view.row_stride != 1 : view.row_stride * item % 16 == 0;
    return view.col_stride == 1 && (rows == 1 || steps);
}
inline Major major_of_a(const GemmArgs& args) {
    return has_unit_columns(args.a, args.m) ? Major::k : Major::mn;
}
inline Major major_of_b(const GemmArgs& args) {
    return has_unit_columns(args.b, args.k) ? Major::mn : Major::k;
}

template <Major major>
using MajorConstant = std::integral_constant<Major, major>;

// What `of_majors(a, b)`, of two MajorConstants, gives for these operands. Kernels are compiled for
// each pair or, without kAnyA or kAnyB, for contiguous k of that operand alone.
template <bool kAnyA, bool kAnyB, class OfMajors>
auto by_majors(const GemmArgs& args, const OfMajors& of_majors) {
    constexpr MajorConstant<Major::k> k;
    constexpr MajorConstant<Major::mn> mn;
    const auto with_a = [&](auto a) {
        if constexpr (kAnyB) {
            if (major_of_b(args) == Major::mn) return of_majors(a, mn);
        }
        return of_majors(a, k);
    };
    if constexpr (kAnyA) {
        if (major_of_a(args) == Major::mn) return with_a(mn);
    }
    return with_a(k);
}

}  // namespace tcgemm
