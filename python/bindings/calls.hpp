// The functions that Python calls in loops, as CPython's vectorcall functions: pybind11's search
// for an overload, which costs a third of a microsecond, is left out.
#pragma once

#include <pybind11/pybind11.h>

#include "product.hpp"

namespace tcgemm::python {

// A product as Python asks for it.
struct Request {
    Arrays arrays;  // without scales that are numbers: those are in `modes`
    Modes modes;
    GemmScalars scalars;
    py::handle stream;  // borrowed
};
// Of the arguments of multiply(), plan() and explain(), all by position in the order of _api.py.
Request request_of(PyObject* const* args, Py_ssize_t count);

// Adds multiply() to the module and execute() to the class of BoundPlan.
void bind_calls(pybind11::module_& module, pybind11::handle plan_class);

}  // namespace tcgemm::python
