// alpha, beta and the scales that are numbers: what may change from run to run with the same plan.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "operands.hpp"
#include "tcgemm/plan.hpp"

namespace tcgemm::python {

// A real number. Throws DTypeError, InvalidArgument (no double holds it); `what` is its name in the
// message.
double scalar_from_python(py::handle value, const char* what);

// The scales that are numbers rather than arrays in memory. The kernels see them as a part of alpha
// and beta.
struct NumberScales {
    std::optional<double> a, b, d;

    bool any() const { return a || b || d; }
    bool has(Slot slot) const {
        return (slot == kScaleA && a) || (slot == kScaleB && b) || (slot == kScaleD && d);
    }
    // With those that `others` has instead.
    NumberScales replaced_by(const NumberScales& others) const;
    // 0 stays 0, whatever the scales: what it stands before is not read.
    GemmScalars times(const GemmScalars& scalars) const;
};

// Takes them out of `arrays`. Throws as scalar_from_python() does.
NumberScales take_number_scales(Arrays& arrays);

}  // namespace tcgemm::python
