// C++ exceptions become the classes of tcgemm._errors, one to one.
#include "errors.hpp"

#include <exception>

#include "tcgemm/error.hpp"

namespace tcgemm::python {

namespace py = pybind11;

namespace {

// Borrowed from tcgemm._errors, which is never unloaded.
PyObject* python_class(const Error& error) {
    static const auto find = [](const char* name) {
        return py::object(py::module_::import("tcgemm._errors").attr(name)).release().ptr();
    };
    static PyObject* const base = find("TcgemmError");
    static PyObject* const invalid_argument = find("InvalidArgument");
    static PyObject* const shape = find("ShapeError");
    static PyObject* const dtype = find("DTypeError");
    static PyObject* const layout = find("LayoutError");
    static PyObject* const unsupported = find("UnsupportedError");
    static PyObject* const no_kernel = find("NoKernelError");
    static PyObject* const device = find("DeviceError");
    static PyObject* const out_of_memory = find("OutOfMemoryError");
    static PyObject* const cuda = find("CudaError");
    switch (error.code()) {
        case ErrorCode::invalid_argument:
            return invalid_argument;
        case ErrorCode::invalid_shape:
            return shape;
        case ErrorCode::invalid_dtype:
            return dtype;
        case ErrorCode::invalid_layout:
            return layout;
        case ErrorCode::unsupported:
            return unsupported;
        case ErrorCode::no_kernel:
            return no_kernel;
        case ErrorCode::device:
            return device;
        case ErrorCode::out_of_memory:
            return out_of_memory;
        case ErrorCode::cuda:
            return cuda;
        default:
            return base;
    }
}

}  // namespace

void register_errors() {
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const CudaError& error) {
            const py::object type = py::reinterpret_borrow<py::object>(python_class(error));
            py::object instance = type(error.what());
            instance.attr("status") = error.status();
            PyErr_SetObject(type.ptr(), instance.ptr());
        } catch (const Error& error) {
            const auto* text = dynamic_cast<const std::exception*>(&error);
            PyErr_SetString(python_class(error), text != nullptr ? text->what() : "unknown error");
        }
    });
}

}  // namespace tcgemm::python
