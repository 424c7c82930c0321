// Scales of operands and of D: their part of the validation.
#pragma once

#include <string>

#include "problem/valid_problem.hpp"

namespace tcgemm {

// Refuses scales that the precision and D's dtype do not take, and sets the strides that a kind has
// no use for to 0. Gives the epilogue that the product takes. The precision is resolved.
Epilogue resolve_scales(GemmProblem& problem);

// The end of a message that refuses a scale: which precisions take one, and what to do instead.
inline std::string instead_of_scale(DType a, DType b, const char* multiplied) {
    const bool default_takes_it = (is_fp8(a) && is_fp8(b)) || (is_integer(a) && is_integer(b));
    return std::string(
               "; only products of precision int8, fp8, fp8_e4m3 and fp8_e5m2 take "
               "scales: ") +
           (default_takes_it ? "leave precision out, or " : "") + "multiply " + multiplied +
           " by it";
}

// The scales of A (outer = m) or B (outer = n) as an operand: rows along `outer`, columns along K.
struct ScaleMatrix {
    Operand operand;
    std::int64_t rows = 0, cols = 0;
};
ScaleMatrix scale_matrix(const Scale& scale, std::int64_t outer, std::int64_t k);

}  // namespace tcgemm
