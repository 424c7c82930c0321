// What is known of an array's Python type: its framework, and how its memory is reached.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "dlpack/dlpack.h"

namespace tcgemm::python {

namespace py = pybind11;

enum class Framework { numpy, torch, cupy, jax, other };

enum class Protocol {
    numpy,         // numpy.ndarray, through NumPy's own C interface (bfloat16 and read-only)
    cupy,          // cupy.ndarray, through its attributes
    exchange_api,  // DLPack's C exchange API, found on the type
    dlpack,        // __dlpack__ and __dlpack_device__
    cuda_array_interface,  // __cuda_array_interface__, version 3
};

// Found once for each type and kept.
struct TypeInfo {
    Framework framework = Framework::other;
    Protocol protocol = Protocol::dlpack;
    const DLPackExchangeAPI* exchange = nullptr;
    bool takes_max_version = true;  // false: __dlpack__ of before DLPack 1.0
    py::object adapter;             // an object of tcgemm._frameworks; None for Framework::other
    std::string name;               // "torch.Tensor"
    bool keeps_arrays = false;      // the adapter holds some until the GPU is done with them
};

// Throws DTypeError where the object is no array; `operand` is its name in the message. Outlives
// the type, which may end while it is asked: an array may change its class.
std::shared_ptr<TypeInfo> type_info(py::handle array, const char* operand);

// Whether it is an array of numpy.ma, whose mask NumPy's C interface does not show.
bool is_masked(py::handle array);

}  // namespace tcgemm::python
