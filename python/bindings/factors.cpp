#include "factors.hpp"

#include <string>
#include <utility>

#include "core/floating_point.hpp"
#include "dlpack.hpp"
#include "errors.hpp"
#include "frameworks.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

// What every call has, as a rule: nothing is asked of it.
bool is_pythons(py::handle value) {
    return PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr());
}

// What has a value of its own. An array has memory, which is read when the kernel runs, and what
// has a length is none, or one that Operands tells how to pass.
bool is_number(py::handle value) {
    if (is_pythons(value)) return true;
    return PyNumber_Check(value.ptr()) && !py::hasattr(value, "__len__") &&
           !py::hasattr(value, "__dlpack__") && !py::hasattr(value, "__cuda_array_interface__");
}

// Complex scalars would lose their imaginary part, NumPy's strings be read as numbers, what is
// masked be NaN, and an array of one number is none.
bool is_scalar_of_no_real_number(py::handle value) {
    if (is_pythons(value)) return false;
    if (is_masked(value)) return true;
    if (const py::object ndim = py::getattr(value, "ndim", py::none());
        py::isinstance<py::int_>(ndim) && ndim.cast<py::ssize_t>() > 0) {
        return true;
    }
    const py::object dtype = py::getattr(value, "dtype", py::none());
    if (py::getattr(dtype, "is_complex", py::none()).ptr() == Py_True) return true;  // PyTorch's
    const py::object kind = py::getattr(dtype, "kind", py::none());
    return py::isinstance<py::str>(kind) &&
           std::string("cSUmMO").find(shown(kind)) != std::string::npos;
}

// What repr() says, unless it says too much, or cannot.
std::string brief(py::handle value) {
    constexpr std::size_t kMost = 200;
    try {
        const py::str text = py::repr(value);
        if (py::len(text) <= kMost) return shown(text);
        return shown(text[py::slice(0, kMost, 1)]) + "...";
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        return "a " + shown(py::type::handle_of(value).attr("__name__"));
    }
}

}  // namespace

double scalar_from_python(py::handle value, const char* what) {
    if (!is_scalar_of_no_real_number(value)) {
        if (!is_pythons(value) &&
            py::getattr(value, "requires_grad", py::none()).ptr() == Py_True) {  // PyTorch's
            check_gradient(value, what);
        }
        const double number = PyFloat_AsDouble(value.ptr());
        if (number != -1.0 || !PyErr_Occurred()) return number;
        const py::error_already_set error;         // clears it
        if (error.matches(PyExc_OverflowError)) {  // no repr: it may have 1000s of digits
            throw InvalidArgument(std::string(what) +
                                  " is a number beyond the range of a float; it must be at most "
                                  "1.8e308 in magnitude");
        }
        if (error.matches(PyExc_ValueError)) {
            throw DTypeError(std::string(what) + " has no value that could be taken: " +
                             shown(error.value()) + "; it must be a real number");
        }
        if (!error.matches(PyExc_TypeError)) throw error;
    }
    throw DTypeError(std::string(what) + " is " + brief(value) + "; it must be a real number");
}

NumberScales NumberScales::replaced_by(const NumberScales& others) const {
    return {others.a ? others.a : a, others.b ? others.b : b, others.d ? others.d : d};
}

GemmScalars NumberScales::times(const GemmScalars& scalars) const {
    const DefaultFloatingPoint environment;
    GemmScalars result = scalars;
    const double of_result = d.value_or(1.0);
    if (result.alpha != 0) result.alpha *= a.value_or(1.0) * b.value_or(1.0) * of_result;
    if (result.beta != 0) result.beta *= of_result;
    return result;
}

NumberScales take_number_scales(Arrays& arrays) {
    NumberScales scales;
    for (const auto& [slot, scale] :
         {std::pair{kScaleA, &scales.a}, {kScaleB, &scales.b}, {kScaleD, &scales.d}}) {
        py::object& given = arrays[slot];
        if (given.is_none() || !is_number(given)) continue;
        *scale = scalar_from_python(given, kSlotNames[slot]);
        given = py::none();
    }
    return scales;
}

}  // namespace tcgemm::python
