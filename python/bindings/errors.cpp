// C++ exceptions become the classes of tcgemm._errors, one to one.
#include "errors.hpp"

#include <array>
#include <exception>
#include <iterator>

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

PyObject* python_class(const Error& error) { return classes[static_cast<int>(error.code())]; }

}  // namespace

void register_errors() {
    const py::module_ errors = py::module_::import("tcgemm._errors");
    for (std::size_t i = 0; i < classes.size(); ++i) {
        classes[i] = py::object(errors.attr(kClassNames[i])).release().ptr();  // never unloaded
    }
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
