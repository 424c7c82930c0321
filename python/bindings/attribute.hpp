// An attribute that a type computes in C, without the look-up by name of every access.
#pragma once

#include <pybind11/pybind11.h>

namespace tcgemm::python {

class Attribute {
   public:
    // Throws error_already_set where the type has no such attribute.
    Attribute(pybind11::handle type, const char* name)
        : type_(pybind11::reinterpret_borrow<pybind11::object>(type)), name_(name) {
        const pybind11::object found = type.attr(name_);
        if (Py_TYPE(found.ptr()) != &PyGetSetDescr_Type) return;
        const PyGetSetDef* const def =
            reinterpret_cast<PyGetSetDescrObject*>(found.ptr())->d_getset;
        get_ = def->get;
        closure_ = def->closure;
    }

    pybind11::object of(pybind11::handle instance) const {
        const bool direct = get_ != nullptr &&
                            Py_TYPE(instance.ptr()) == reinterpret_cast<PyTypeObject*>(type_.ptr());
        PyObject* const value =
            direct ? get_(instance.ptr(), closure_) : PyObject_GetAttr(instance.ptr(), name_.ptr());
        if (value == nullptr) throw pybind11::error_already_set();
        return pybind11::reinterpret_steal<pybind11::object>(value);
    }

   private:
    pybind11::object type_;
    pybind11::str name_;
    getter get_ = nullptr;  // of a descriptor that the type keeps
    void* closure_ = nullptr;
};

}  // namespace tcgemm::python
