#pragma once

#include <pybind11/pybind11.h>

namespace tcgemm::python {

// From now on the library's exceptions reach Python as the classes of tcgemm._errors.
void register_errors();

// In a catch block: makes the exception Python's.
void set_python_error();

}  // namespace tcgemm::python
