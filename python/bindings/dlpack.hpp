// The one consumer of arrays: NumPy's C interface, CuPy's attributes, DLPack (C exchange API,
// versioned and legacy capsules) and the CUDA Array Interface all end in an ArrayView.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "array_view.hpp"
#include "frameworks.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::python {

// A view, and what keeps its memory and its description alive. Needs the GIL when it dies.
struct ImportedArray {
    ArrayView view;
    bool is_copy = false;  // made by the producer for us: writing into it would be lost
    std::optional<StreamHandle> ready_on;  // a stream whose work must be waited for, if any
    std::shared_ptr<void> owner;           // a DLPack managed tensor; its deleter runs once
};

// Whether such an array tells all at once, without being told a stream: then import_at_once(),
// otherwise locate() and import_array().
bool tells_at_once(Protocol protocol);
// Throws as locate() and import_array() do. `known`, if given, is what an earlier import of the
// same array gave: checks that it passed then are left out where memory and layout are still the
// same.
ImportedArray import_at_once(py::handle array, const TypeInfo& type, const char* operand,
                             const ArrayView* known = nullptr);

// Where the memory is; pinned host memory counts as the CPU. Throws DeviceError for a device that
// is neither a CPU nor a CUDA GPU.
Device locate(py::handle array, const TypeInfo& type, const char* operand);

// What is passed as __dlpack__'s stream: none for the CPU, kNoSynchronisation, or a stream that the
// producer makes wait for its pending work.
inline constexpr std::intptr_t kNoSynchronisation = -1;
using DlpackStream = std::optional<std::intptr_t>;

// Throws DTypeError (dtypes that no operand has, tensors with a gradient, ...), LayoutError or
// UnsupportedError; messages begin with `operand`. `device` as locate() found it.
ImportedArray import_array(py::handle array, TypeInfo& type, const char* operand, Device device,
                           DlpackStream stream);

// Throws DTypeError where a PyTorch tensor has a gradient that would be lost.
void check_gradient(py::handle tensor, const char* operand);

// Tells PyTorch that the elements of a tensor have changed: backward() then refuses to use them as
// what they were. Tensors of inference mode have no versions.
void note_written(py::handle tensor);

}  // namespace tcgemm::python
