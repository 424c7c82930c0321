#pragma once

#include <pybind11/pybind11.h>

namespace tcgemm::python {

// From now on the library's exceptions reach Python as the classes of tcgemm._errors.
void register_errors();

}  // namespace tcgemm::python
