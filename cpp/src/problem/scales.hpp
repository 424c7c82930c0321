// Scales of operands and of D: their part of the validation.
#pragma once

#include "problem/valid_problem.hpp"

namespace tcgemm {

// Refuses scales that the precision and D's dtype do not take, and sets the strides that a kind has
// no use for to 0. Gives the epilogue that the product takes. The precision is resolved.
Epilogue resolve_scales(GemmProblem& problem);

// The scales of A (outer = m) or B (outer = n) as an operand: rows along `outer`, columns along K.
struct ScaleMatrix {
    Operand operand;
    std::int64_t rows = 0, cols = 0;
};
ScaleMatrix scale_matrix(const Scale& scale, std::int64_t outer, std::int64_t k);

}  // namespace tcgemm
