#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace tcgemm::python {

// From now on the library's exceptions reach Python as the classes of tcgemm._errors.
void register_errors();

// In a catch block: makes the exception Python's.
void set_python_error();

// The new reference that CPython gave, or an exception of the error that it set.
inline pybind11::object checked(PyObject* made) {
    if (made == nullptr) throw pybind11::error_already_set();
    return pybind11::reinterpret_steal<pybind11::object>(made);
}

// str(value), in UTF-8; what has no place there (lone surrogates) as \udc80, so that a message
// about it can be made.
std::string shown(pybind11::handle value);

// The end of a message: what to pass instead: `converted`, but for `out`, where the result would be
// in the conversion only.
std::string instead(const char* operand, const std::string& converted, const std::string& out);

}  // namespace tcgemm::python
