// tcgemm._core's access to single instructions of the tensor cores.
#pragma once

#include <pybind11/pybind11.h>

namespace tcgemm::python {

void bind_probe(pybind11::module_& module);

}  // namespace tcgemm::python
