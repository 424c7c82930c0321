// C++ exceptions become the classes of tcgemm._errors, one to one.
#include "errors.hpp"

#include <array>
#include <exception>
#include <iterator>
#include <new>

#include "tcgemm/error.hpp"

namespace tcgemm::python {

namespace py = pybind11;

namespace {

// In the order of ErrorCode. Filled once, when the module is loaded: finding them later, in a
// static initialiser, could wait for the GIL while another thread that has it waits for the
// initialiser.
std::array<PyObject*, 11> classes{};
constexpr const char* kClassNames[] = {"TcgemmError",   "InvalidArgument", "ShapeError",
                                       "DTypeError",    "LayoutError",     "UnsupportedError",
                                       "NoKernelError", "DeviceError",     "OutOfMemoryError",
                                       "CudaError",     "TcgemmError"};
static_assert(std::size(kClassNames) == static_cast<int>(ErrorCode::internal) + 1);

void set_library_error(const Error& error) {
    const auto type = py::reinterpret_borrow<py::object>(classes[static_cast<int>(error.code())]);
    const auto* text = dynamic_cast<const std::exception*>(&error);
    py::object instance = type(text != nullptr ? text->what() : "unknown error");
    if (const auto* cuda = dynamic_cast<const CudaError*>(&error)) {
        instance.attr("status") = cuda->status();
    }
    PyErr_SetObject(type.ptr(), instance.ptr());
}

}  // namespace

void register_errors() {
    const py::module_ errors = py::module_::import("tcgemm._errors");
    for (std::size_t i = 0; i < classes.size(); ++i) {
        classes[i] = py::object(errors.attr(kClassNames[i])).release().ptr();  // never unloaded
    }
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const Error& error) {
            set_library_error(error);
        }
    });
}

void set_python_error() {
    try {
        throw;
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (const py::builtin_exception& error) {
        error.set_error();
    } catch (const Error& error) {
        set_library_error(error);
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
    }
}

}  // namespace tcgemm::python
