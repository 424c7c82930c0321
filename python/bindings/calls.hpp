// The functions that Python calls in loops, as CPython's vectorcall functions: pybind11's search
// for an overload, which costs a third of a microsecond, is left out.
#pragma once

#include <pybind11/pybind11.h>

namespace tcgemm::python {

// Adds multiply() to the module and execute() to the class of BoundPlan.
void bind_calls(pybind11::module_& module, pybind11::handle plan_class);

}  // namespace tcgemm::python
