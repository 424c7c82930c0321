// C++ exceptions become the classes of tcgemm._errors, one to one.
#include "errors.hpp"

#include <array>
#include <exception>
#include <iterator>
#include <new>
#include <string_view>

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

// What fails on the way is Python's error instead: nothing may be thrown out of a catch block.
void set_library_error(const Error& error) {
    try {
        const auto type =
            py::reinterpret_borrow<py::object>(classes[static_cast<int>(error.code())]);
        // An environment variable, say, may have bytes that are not UTF-8.
        const std::string_view text = error.what();
        const py::object instance = type(checked(PyUnicode_DecodeUTF8(
            text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace")));
        if (const auto* cuda = dynamic_cast<const CudaError*>(&error)) {
            instance.attr("status") = cuda->status();
        }
        PyErr_SetObject(type.ptr(), instance.ptr());
    } catch (py::error_already_set& python_error) {
        python_error.restore();
    }
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

std::string shown(py::handle value) {
    const py::object bytes =
        checked(PyUnicode_AsEncodedString(py::str(value).ptr(), "utf-8", "backslashreplace"));
    return {PyBytes_AS_STRING(bytes.ptr()),
            static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

std::string instead(const char* operand, const std::string& converted, const std::string& out) {
    return "; pass " + (operand == std::string("out") ? "an out " + out : converted);
}

}  // namespace tcgemm::python
