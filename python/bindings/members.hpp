// Attributes and methods that a type computes in C, without the look-up by name of every access.
#pragma once

#include <pybind11/pybind11.h>

#include "errors.hpp"

namespace tcgemm::python {

// Something of a type, to be asked of its exact instances; other objects are asked by its name.
class Member {
   public:
    // Throws error_already_set where the type has no such member.
    Member(pybind11::handle type, const char* name)
        : type_(pybind11::reinterpret_borrow<pybind11::object>(type)),
          name_(pybind11::reinterpret_steal<pybind11::str>(PyUnicode_InternFromString(name))),
          found_(type.attr(name_)) {}

   protected:
    bool is_own(pybind11::handle instance) const {
        return reinterpret_cast<PyObject*>(Py_TYPE(instance.ptr())) == type_.ptr();
    }

    pybind11::object type_;
    pybind11::str name_;
    pybind11::object found_;  // a descriptor, as a rule
};

class Attribute : Member {
   public:
    Attribute(pybind11::handle type, const char* name) : Member(type, name) {
        if (Py_TYPE(found_.ptr()) != &PyGetSetDescr_Type) return;
        definition_ = reinterpret_cast<PyGetSetDescrObject*>(found_.ptr())->d_getset;
    }
    pybind11::object of(pybind11::handle instance) const {
        return checked(definition_ != nullptr && is_own(instance)
                           ? definition_->get(instance.ptr(), definition_->closure)
                           : PyObject_GetAttr(instance.ptr(), name_.ptr()));
    }

   private:
    const PyGetSetDef* definition_ = nullptr;
};

// Without arguments.
class Method : Member {
   public:
    Method(pybind11::handle type, const char* name) : Member(type, name) {
        if (Py_TYPE(found_.ptr()) != &PyMethodDescr_Type) return;
        const PyMethodDef* const definition =
            reinterpret_cast<PyMethodDescrObject*>(found_.ptr())->d_method;
        if (definition->ml_flags == METH_NOARGS) call_ = definition->ml_meth;
    }
    pybind11::object of(pybind11::handle instance) const {
        return checked(call_ != nullptr && is_own(instance)
                           ? call_(instance.ptr(), nullptr)
                           : PyObject_CallMethodNoArgs(instance.ptr(), name_.ptr()));
    }

   private:
    PyCFunction call_ = nullptr;
};

}  // namespace tcgemm::python
