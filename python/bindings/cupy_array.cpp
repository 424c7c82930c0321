#include "cupy_array.hpp"

#include "elements.hpp"
#include "members.hpp"
#include "streams.hpp"

namespace tcgemm::python {
namespace {

// Documented attributes of cupy.ndarray and of the cupy.cuda.MemoryPointer that is its `data`.
struct Attributes {
    Attributes()
        : ndarray(py::module_::import("cupy").attr("ndarray")),
          pointer(py::module_::import("cupy.cuda.memory").attr("MemoryPointer")),
          data(ndarray, "data"),
          dtype(ndarray, "dtype"),
          shape(ndarray, "shape"),
          strides(ndarray, "strides"),
          address(pointer, "ptr"),
          ordinal(pointer, "device_id") {}

    py::object ndarray, pointer;
    Attribute data, dtype, shape, strides;
    Attribute address, ordinal;
};

// Never freed, as it holds Python objects; guarded by the GIL.
const Attributes& attributes() {
    static const Attributes* known = nullptr;
    if (known == nullptr) known = new Attributes;
    return *known;
}

std::int64_t integer(py::handle value) {
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
    return number;
}

using CurrentStream = std::intptr_t (*)();

// What Cython's `cimport` of the function finds: its name and its signature are checked.
CurrentStream find_current_stream() {
    try {
        const py::module_ module = py::module_::import("cupy_backends.cuda.stream");
        const py::object function = module.attr("__pyx_capi__")["get_current_stream_ptr"];
        constexpr const char* kSignature = "intptr_t (void)";
        if (!PyCapsule_IsValid(function.ptr(), kSignature)) return nullptr;
        return reinterpret_cast<CurrentStream>(PyCapsule_GetPointer(function.ptr(), kSignature));
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        return nullptr;  // a CuPy that is built in another way
    }
}

}  // namespace

bool is_cupy_ndarray(py::handle type) {
    try {
        const py::module_ cupy = py::module_::import("cupy");
        return type.is(cupy.attr("ndarray")) &&
               !py::cast<bool>(cupy.attr("cuda").attr("runtime").attr("is_hip"));
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        return false;  // something that only calls itself cupy
    }
}

ImportedArray import_cupy(py::handle array, const TypeInfo& type, const char* operand) {
    const Attributes& known = attributes();
    const py::object data = known.data.of(array);
    ImportedArray imported;
    ArrayView& view = imported.view;
    view.device = Device::cuda(static_cast<int>(integer(known.ordinal.of(data))));
    set_dtype(view, py::reinterpret_steal<py::dtype>(known.dtype.of(array).release()), type,
              operand);
    const auto shape = py::reinterpret_steal<py::tuple>(known.shape.of(array).release());
    const auto strides = py::reinterpret_steal<py::tuple>(known.strides.of(array).release());
    check_rank(static_cast<std::int64_t>(shape.size()), operand);
    view.ndim = static_cast<int>(shape.size());
    for (int dim = 0; dim < view.ndim; ++dim) {
        view.shape[dim] = integer(PyTuple_GET_ITEM(shape.ptr(), dim));
        set_stride(view, dim, integer(PyTuple_GET_ITEM(strides.ptr(), dim)), type, operand);
    }
    normalise_strides(view);
    view.data = reinterpret_cast<void*>(integer(known.address.of(data)));
    settle_address(view, operand);
    return imported;
}

std::optional<StreamHandle> cupy_current_stream() {
    static const CurrentStream* current = nullptr;  // guarded by the GIL
    if (current == nullptr) current = new CurrentStream(find_current_stream());
    if (*current == nullptr) return std::nullopt;
    const std::intptr_t stream = (*current)();
    if (PyErr_Occurred()) throw py::error_already_set();
    return stream_from_integer(static_cast<std::uintptr_t>(stream));
}

}  // namespace tcgemm::python
