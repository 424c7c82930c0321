// CuPy's arrays through their public attributes, and its current stream, in C. DLPack would tell
// the same, but CuPy's (14.2) has no C exchange API, asks the driver about the pointer twice a call
// and loses the sign of strides.
#pragma once

#include "dlpack.hpp"

namespace tcgemm::python {

// Whether the class is cupy.ndarray itself, of a CuPy that computes with CUDA.
bool is_cupy_ndarray(py::handle type);

// Throws as import_array() does.
ImportedArray import_cupy(py::handle array, const TypeInfo& type, const char* operand);

// Of the current device and the calling thread. Nothing where this CuPy does not say it in C.
std::optional<StreamHandle> cupy_current_stream();

}  // namespace tcgemm::python
