#include "calls.hpp"

#include <array>
#include <string>

#include "errors.hpp"

namespace tcgemm::python {
namespace {

py::object borrow(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

// Runs `call`; what it throws becomes Python's exception.
template <class Call>
PyObject* guarded(const Call& call) {
    try {
        return call().release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* multiply(PyObject*, PyObject* const* args, Py_ssize_t count) {
    return guarded([&] {
        const Request request = request_of(args, count);
        const Modes& modes = request.modes;
        Operands operands(request.arrays, request.stream, named_dtypes(modes));
        const GemmScalars factors = modes.scales.times(request.scalars);
        const auto prepared = prepare(operands, modes, factors);
        return execute(operands, prepared->statement, *prepared->plan, factors, nullptr);
    });
}

enum ExecuteArgument { kAlpha = kSlots, kBeta, kStream, kExecuteArguments };
constexpr const char* kExecuteNames[kExecuteArguments] = {
    "a", "b", "c", "out", "scale_a", "scale_b", "scale_d", "alpha", "beta", "stream"};
std::array<PyObject*, kExecuteArguments> execute_names;  // interned, never freed

int index_of_keyword(PyObject* keyword) {
    for (int i = 0; i < kExecuteArguments; ++i) {
        if (keyword == execute_names[i]) return i;
    }
    for (int i = 0; i < kExecuteArguments; ++i) {  // a name that nobody interned
        if (PyUnicode_CompareWithASCIIString(keyword, kExecuteNames[i]) == 0) return i;
    }
    throw py::type_error("execute() got an unexpected keyword argument '" + shown(keyword) + "'");
}

PyObject* execute_plan(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                       PyObject* keywords) {
    return guarded([&] {
        if (positional > kOut + 1) {
            throw py::type_error("execute() takes a, b, c and out by position, but " +
                                 std::to_string(positional) + " arguments were given");
        }
        std::array<PyObject*, kExecuteArguments> given{};
        for (Py_ssize_t i = 0; i < positional; ++i) given[i] = args[i];
        const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
        for (Py_ssize_t i = 0; i < named; ++i) {
            const int index = index_of_keyword(PyTuple_GET_ITEM(keywords, i));
            if (given[index] != nullptr) {
                throw py::type_error("execute() got multiple values for argument '" +
                                     std::string(kExecuteNames[index]) + "'");
            }
            given[index] = args[positional + i];
        }
        const auto value = [&](int index) {
            return borrow(given[index] == nullptr ? Py_None : given[index]);
        };
        return py::handle(self).cast<BoundPlan&>().run(
            {value(kA), value(kB), value(kC), value(kOut), value(kScaleA), value(kScaleB),
             value(kScaleD)},
            value(kAlpha), value(kBeta), value(kStream));
    });
}

constexpr const char* kExecuteDoc =
    R"(execute($self, /, a=None, b=None, c=None, out=None, *, scale_a=None, scale_b=None, scale_d=None, alpha=None, beta=None, stream=None)
--

Compute the product.

Parameters
----------
a, b, c : array, optional
    Operands in place of the bound ones, of the same shape, dtype, strides and device, at addresses
    at least as aligned.
out : array, optional
    Array for the result, likewise. Default: the bound `out`; if there is none, a new array for each
    call.
scale_a, scale_b, scale_d : array or float, optional
    Scales in place of the bound ones: arrays (likewise) in place of arrays, numbers in place
    of numbers.
alpha, beta : float, optional
    Factors in place of those of the plan. A `beta` other than 0 needs a plan that was made with
    a `c`.
stream : optional
    CUDA stream, as in :func:`tcgemm.matmul`. Default: that of the plan, if it was made with one.

Returns
-------
array
    `out`, or a new array of the framework of `a`.

Raises
------
LayoutError
    An array differs from the one that the plan was made for, or `out` is read-only or may share
    memory with an operand.
InvalidArgument
    An array or number where the plan was made without one, a `beta` without a `c`, a fraction as a
    factor of an int32 result, or a wrong value of an environment variable.
DTypeError
    A value that is not an array or not a real number, or a tensor whose gradient would be lost.
DeviceError, UnsupportedError
    Arrays on different devices; an array exported by a version of DLPack other than 1.
CudaError, OutOfMemoryError
    The device failed, or has too little memory.

Notes
-----
With operands on the GPU and an `out`, bound or given, nothing is allocated and nothing waits: the
call can be captured into a CUDA graph. A plan with a workspace (``workspace_bytes``) runs one
product at a time, whatever the streams; once captured, it must not be executed elsewhere while its
graph is replayed.)";

// CPython has one type for methods of every calling convention.
template <class Function>
PyCFunction as_method(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef multiply_method = {"multiply", as_method(&multiply), METH_FASTCALL, nullptr};
PyMethodDef execute_method = {"execute", as_method(&execute_plan), METH_FASTCALL | METH_KEYWORDS,
                              kExecuteDoc};

}  // namespace

Request request_of(PyObject* const* args, Py_ssize_t count) {
    enum { a, b, c, out, alpha, beta, trans_a, trans_b, out_dtype, precision, accumulate };
    enum { determinism = accumulate + 1, stream, overflow, a_dtype, b_dtype };
    enum { scale_a = b_dtype + 1, scale_b, scale_d, arguments };
    if (count != arguments) {
        throw py::type_error("a product has " + std::to_string(arguments) + " arguments");
    }
    Request request;
    request.arrays = {borrow(args[a]),      borrow(args[b]),       borrow(args[c]),
                      borrow(args[out]),    borrow(args[scale_a]), borrow(args[scale_b]),
                      borrow(args[scale_d])};
    request.modes = {args[trans_a] == Py_True, args[trans_b] == Py_True,
                     borrow(args[out_dtype]),  borrow(args[precision]),
                     borrow(args[accumulate]), borrow(args[determinism]),
                     borrow(args[overflow]),   borrow(args[a_dtype]),
                     borrow(args[b_dtype]),    take_number_scales(request.arrays)};
    request.scalars = {scalar_from_python(args[alpha], "alpha"),
                       scalar_from_python(args[beta], "beta")};
    request.stream = args[stream];
    return request;
}

void bind_calls(py::module_& module, py::handle plan_class) {
    for (int i = 0; i < kExecuteArguments; ++i) {
        execute_names[i] = checked(PyUnicode_InternFromString(kExecuteNames[i])).release().ptr();
    }
    module.attr("multiply") = checked(
        PyCFunction_NewEx(&multiply_method, nullptr, py::object(module.attr("__name__")).ptr()));
    plan_class.attr("execute") = checked(
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(plan_class.ptr()), &execute_method));
}

}  // namespace tcgemm::python
