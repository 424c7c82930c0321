// Products of row-major matrices.
#pragma once

#include <cstdint>

#include "tcgemm/problem.hpp"

namespace tcgemm {

inline GemmProblem row_major(std::int64_t m, std::int64_t n, std::int64_t k, DType in = DType::f32,
                             DType out = DType::f32) {
    GemmProblem p;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = Operand::row_major(in, k);
    p.b = Operand::row_major(in, n);
    p.c = p.d = Operand::row_major(out, n);
    return p;
}

}  // namespace tcgemm
