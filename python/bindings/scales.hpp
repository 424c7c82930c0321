// From arrays of scales to the problem's: which elements share one follows from the array's shape.
#pragma once

#include "operands.hpp"
#include "shapes.hpp"

namespace tcgemm::python {

// `seen`: the array as the kernels see it, after staging. A scale's dimensions are those of the
// operand as it is given, and trade places with them. Throws DTypeError, ShapeError.
Scale scale_a_of(const Operands& operands, const ArrayView& seen, const ProductShape& shape,
                 bool transposed);
Scale scale_b_of(const Operands& operands, const ArrayView& seen, const ProductShape& shape,
                 bool transposed);
bool has_scale_d(const Operands& operands);

}  // namespace tcgemm::python
