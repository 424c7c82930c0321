#include "frameworks.hpp"

#include <memory>
#include <unordered_map>

#include "cupy_array.hpp"
#include "errors.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

// A class may have anything at all as its __module__.
std::string text_of(py::handle type, const char* attribute) { return shown(type.attr(attribute)); }

std::string type_name(py::handle type) {
    return text_of(type, "__module__") + "." + text_of(type, "__qualname__");
}

Framework framework_of(py::handle type) {
    for (py::handle base : type.attr("__mro__")) {
        const std::string module = text_of(base, "__module__");
        const std::string root = module.substr(0, module.find('.'));
        if (root == "numpy") return Framework::numpy;
        if (root == "torch") return Framework::torch;
        if (root == "cupy") return Framework::cupy;
        if (root == "jax" || root == "jaxlib") return Framework::jax;
    }
    return Framework::other;
}

py::object adapter_of(Framework framework) {
    const py::module_ adapters = py::module_::import("tcgemm._frameworks");
    switch (framework) {
        case Framework::torch: return adapters.attr("torch");
        case Framework::cupy: return adapters.attr("cupy");
        case Framework::jax: return adapters.attr("jax");
        default: return py::none();
    }
}

// The table of a type that has one with a layout we know, or null.
const DLPackExchangeAPI* exchange_api_of(py::handle type) {
    for (const char* attribute : {"__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"}) {
        const py::object capsule = py::getattr(type, attribute, py::none());
        if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) continue;
        const auto* header = static_cast<const DLPackExchangeAPIHeader*>(
            PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
        while (header && header->version.major != DLPACK_MAJOR_VERSION) header = header->prev_api;
        if (header) return reinterpret_cast<const DLPackExchangeAPI*>(header);
    }
    return nullptr;
}

// Subclasses of torch.Tensor may have no memory of their own (fake, functional): they are asked
// through __dlpack__, which they can override or refuse.
bool trusts_exchange_api(Framework framework, const std::string& name) {
    return framework != Framework::torch || name == "torch.Tensor" ||
           name == "torch.nn.parameter.Parameter";
}

[[noreturn]] void not_an_array(py::handle array, const char* operand, const std::string& name,
                               Framework framework) {
    std::string fix =
        "; pass an array of NumPy, CuPy, PyTorch or JAX, or any object with __dlpack__ or "
        "__cuda_array_interface__";
    if (framework == Framework::jax && name.find("Tracer") != std::string::npos) {
        fix = ", which has no memory while JAX traces; call tcgemm outside jit, grad and vmap";
    } else if (py::hasattr(array, "toarray")) {  // SciPy's and CuPy's, which asarray() would wrap
        fix = ", a sparse matrix; pass " + std::string(operand) + ".toarray()";
    } else if (framework == Framework::other && operand != std::string("out")) {
        fix += std::string(" (numpy.asarray(") + operand + ") makes one of a list or a buffer)";
    }
    throw DTypeError(std::string(operand) + " is a " + name + fix);
}

TypeInfo inspect(py::handle array, const char* operand) {
    const py::handle type = py::type::handle_of(array);
    TypeInfo info;
    info.name = type_name(type);
    info.framework = framework_of(type);
    if (info.framework == Framework::numpy) {
        if (!py::isinstance(array, py::module_::import("numpy").attr("ndarray"))) {
            not_an_array(array, operand, info.name, Framework::other);
        }
        if (is_masked(array)) {
            throw DTypeError(
                std::string(operand) + " is a masked array, whose mask would be ignored" +
                instead(operand, std::string(operand) + ".filled(0)", "without a mask"));
        }
        info.protocol = Protocol::numpy;
    } else if (info.framework == Framework::cupy && is_cupy_ndarray(type)) {
        info.protocol = Protocol::cupy;
    } else if (trusts_exchange_api(info.framework, info.name) &&
               (info.exchange = exchange_api_of(type)) != nullptr) {
        info.protocol = Protocol::exchange_api;
    } else if (py::hasattr(array, "__dlpack__") && py::hasattr(array, "__dlpack_device__")) {
        info.protocol = Protocol::dlpack;
    } else if (py::hasattr(array, "__cuda_array_interface__")) {
        info.protocol = Protocol::cuda_array_interface;
    } else {
        not_an_array(array, operand, info.name, info.framework);
    }
    info.adapter = adapter_of(info.framework);
    return info;
}

}  // namespace

// There is none where nobody imported numpy.ma, whose import takes memory and milliseconds.
bool is_masked(py::handle array) {
    const py::dict modules = py::module_::import("sys").attr("modules");
    return modules.contains("numpy.ma") && py::hasattr(modules["numpy.ma"], "MaskedArray") &&
           py::isinstance(array, modules["numpy.ma"].attr("MaskedArray"));
}

std::shared_ptr<TypeInfo> type_info(py::handle array, const char* operand) {
    // Never freed, as it holds Python objects; guarded by the GIL. A type that ends leaves no
    // entry, so that another at its address is inspected anew.
    static auto& known = *new std::unordered_map<PyTypeObject*, std::shared_ptr<TypeInfo>>;
    PyTypeObject* const type = Py_TYPE(array.ptr());
    const auto found = known.find(type);
    if (found != known.end()) return found->second;
    const py::object held = py::type::of(array);
    auto info = std::make_shared<TypeInfo>(inspect(array, operand));
    py::weakref(held, py::cpp_function([type](py::handle itself) {
                    known.erase(type);
                    itself.dec_ref();
                }))
        .release();
    return known.emplace(type, std::move(info)).first->second;
}

}  // namespace tcgemm::python
