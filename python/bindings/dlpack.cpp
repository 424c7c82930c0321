#include "dlpack.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cupy_array.hpp"
#include "dlpack/dlpack.h"
#include "elements.hpp"
#include "errors.hpp"
#include "members.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

using std::int64_t;

// CuPy (14.2) exports a negative stride divided by the element size as if it were unsigned: times
// the size it wraps around to the true stride in bytes. No array can have such a positive stride.
int64_t true_stride(int64_t stride, int64_t size) {
    const auto bytes =
        static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(size));
    return stride > 0 && bytes < 0 ? bytes / size : stride;
}

Device device_of(DLDevice device, const char* operand) {
    switch (device.device_type) {
        case kDLCPU:
        case kDLCUDAHost: return Device::cpu();
        case kDLCUDA:
        case kDLCUDAManaged:
            if (device.device_id < 0) {
                throw DeviceError(std::string(operand) + " is on CUDA device " +
                                  std::to_string(device.device_id) +
                                  "; devices are counted from 0: its producer is wrong");
            }
            return Device::cuda(device.device_id);
        default:
            throw DeviceError(
                std::string(operand) + " is on a device of DLPack type " +
                std::to_string(static_cast<int>(device.device_type)) +
                "; tcgemm computes on the CPU (1) and on CUDA devices (2): move it there");
    }
}

ArrayView view_of(const DLTensor& tensor, uint64_t flags, const TypeInfo& type,
                  const char* operand) {
    ArrayView view;
    view.device = device_of(tensor.device, operand);
    set_dtype(view, tensor.dtype, flags, type, operand);
    view.read_only = (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    check_rank(tensor.ndim, operand);
    view.ndim = tensor.ndim;
    if (view.ndim > 0 && tensor.shape == nullptr) {
        throw ShapeError(std::string(operand) + " was exported with " + std::to_string(view.ndim) +
                         " dimensions, but without a shape (NULL); its producer is wrong");
    }
    for (int dim = 0; dim < view.ndim; ++dim) view.shape[dim] = tensor.shape[dim];
    if (view.ndim < 0 || std::any_of(
                             view.shape.begin(), view.shape.begin() + view.ndim,
                             [](int64_t extent) { return extent < 0; })) {
        throw ShapeError(std::string(operand) + " was exported with " +
                         (view.ndim < 0 ? std::to_string(view.ndim) + " dimensions"
                                        : "the shape " + text(view.ndim, view.shape)) +
                         "; sizes are 0 or more");
    }
    if (tensor.strides != nullptr) {
        for (int dim = 0; dim < view.ndim; ++dim) {
            view.stride[dim] = true_stride(tensor.strides[dim], size_of(view.dtype));
        }
        normalise_strides(view);
    } else {
        view.stride = packed(view.dtype, view.ndim, view.shape, view.device).stride;
    }
    if (tensor.data != nullptr) view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    settle_address(view, operand);
    return view;
}

// What an array of PyTorch or JAX can be that has no matrix in memory, by an attribute or method
// that says so: their exporters speak of their own insides.
struct Obstacle {
    const char* attribute;
    const char* what;
    const char* fix;  // behind the operand's name
};
constexpr Obstacle kObstacles[] = {
    {"is_nested", "is nested: its matrices have shapes of their own", ".unbind()[0] etc."},
    {"is_quantized", "is quantized", ".dequantize()"},
    {"is_meta", "is on the device meta, where tensors have no values", " on another device"},
    {"is_deleted", "was deleted, or donated to a function of jax.jit", " as copied before that"},
};

bool is_true_of(py::handle array, const char* attribute) {
    py::object value = py::getattr(array, attribute, py::none());
    if (PyCallable_Check(value.ptr())) value = value();
    return value.ptr() == Py_True;
}

// A producer says why it can't export in an exception of its own. That there is no memory, or that
// somebody interrupts, says nothing of the array.
[[noreturn]] void producer_refused(const py::error_already_set& error, py::handle array,
                                   const TypeInfo& type, const char* operand) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) {
        throw py::error_already_set(error);
    }
    const bool is_torch = type.framework == Framework::torch;
    for (const Obstacle& one : kObstacles) {
        if (!is_torch && type.framework != Framework::jax) break;
        if (!is_true_of(array, one.attribute)) continue;
        throw DTypeError(std::string(operand) + " " + one.what + "; pass " + operand + one.fix);
    }
    const std::string reason = shown(error.value());
    if (is_torch) {
        const auto layout = shown(array.attr("layout"));
        if (layout != "torch.strided") {
            throw LayoutError(std::string(operand) + " has the layout " + layout + "; pass " +
                              operand + ".to_dense()");
        }
        if (reason.find("have storage") != std::string::npos) {
            throw DTypeError(std::string(operand) +
                             " has no memory of its own, as under vmap, grad and jvp of "
                             "torch.func; call tcgemm outside of them");
        }
    }
    throw DTypeError(std::string(operand) + " (" + type.name +
                     ") can't be exported through DLPack: " +
                     reason.substr(0, reason.find('\n')));  // torch adds its C++ stack
}

// --- torch: what an exported pointer would lose -------------------------------------------------

struct TorchMembers {
    explicit TorchMembers(const py::module_& torch)
        : requires_grad(torch.attr("Tensor"), "requires_grad"),
          is_neg(torch.attr("Tensor"), "is_neg"),
          is_inference(torch.attr("Tensor"), "is_inference"),
          is_grad_enabled(torch.attr("is_grad_enabled")),
          increment_version(
              py::getattr(torch.attr("autograd").attr("graph"), "increment_version", py::none())) {}
    Attribute requires_grad;
    Method is_neg, is_inference;
    py::object is_grad_enabled;    // false under no_grad() and inference_mode()
    py::object increment_version;  // None before PyTorch 2.1
};

const TorchMembers& torch_members() {
    // Never freed, as it holds Python objects; guarded by the GIL.
    static const TorchMembers* members = nullptr;
    if (members == nullptr) {
        members = new TorchMembers(py::module_::import("torch"));
    }
    return *members;
}

bool requires_gradient(py::handle array) {
    return torch_members().requires_grad.of(array).ptr() == Py_True;
}

}  // namespace

// Of `out` always: what is written to it has no gradient.
void check_gradient(py::handle array, const char* operand) {
    if (!requires_gradient(array)) return;
    if (std::string(operand) == "out") {
        throw DTypeError(std::string(operand) +
                         " requires a gradient, which tcgemm does not compute; pass " + operand +
                         ".detach()");
    }
    if (torch_members().is_grad_enabled().ptr() == Py_True) {
        throw DTypeError(std::string(operand) +
                         " requires a gradient, which tcgemm does not compute; pass " + operand +
                         ".detach(), or call tcgemm under torch.no_grad()");
    }
}

namespace {

void check_negative_bit(py::handle array, const char* operand) {
    if (torch_members().is_neg.of(array).ptr() == Py_True) {
        throw DTypeError(std::string(operand) +
                         " has its negative bit set: its memory holds the negated " +
                         "values; pass " + operand + ".resolve_neg()");
    }
}

// PyTorch before 2.10 can't export its FP8 tensors, only their bytes.
struct Fp8Bytes {
    py::object bytes;  // or the tensor itself, where it is none of FP8
    std::optional<DType> dtype;

    ImportedArray named(ImportedArray imported, const TypeInfo& type, const char* operand) const {
        if (dtype) settle_dtype(imported.view, dtype, type, operand);
        return imported;
    }
};

Fp8Bytes fp8_bytes(py::handle array, const TypeInfo& type) {
    Fp8Bytes result{py::reinterpret_borrow<py::object>(array), std::nullopt};
    if (type.framework != Framework::torch) return result;
    const std::string name = shown(array.attr("dtype"));
    const std::string prefix = "torch.";
    if (name.rfind(prefix + "float8", 0) != 0) return result;
    result.dtype = dtype_named(name.substr(prefix.size()));
    if (result.dtype) {
        result.bytes = array.attr("view")(py::module_::import("torch").attr("uint8"));
    }
    return result;
}

// --- NumPy

ImportedArray import_numpy(py::handle handle, const TypeInfo& type, const char* operand) {
    const auto array = py::reinterpret_borrow<py::array>(handle);
    ImportedArray imported;
    ArrayView& view = imported.view;
    set_dtype(view, array.dtype(), type, operand);
    view.device = Device::cpu();
    view.read_only = !array.writeable();
    check_rank(array.ndim(), operand);
    view.ndim = static_cast<int>(array.ndim());
    for (int dim = 0; dim < view.ndim; ++dim) {
        view.shape[dim] = array.shape(dim);
        set_stride(view, dim, array.strides(dim), type, operand);
    }
    normalise_strides(view);
    view.data = const_cast<void*>(array.data());
    settle_address(view, operand);
    return imported;
}

// --- DLPack capsules

template <class Managed>
std::shared_ptr<void> own(Managed* managed) {
    return std::shared_ptr<void>(managed, [managed](void*) {
        if (managed->deleter != nullptr) managed->deleter(managed);
    });
}

ImportedArray take_versioned(DLManagedTensorVersioned* managed, const TypeInfo& type,
                             const char* operand) {
    ImportedArray imported;
    imported.owner = own(managed);  // from here on every way out calls the deleter
    if (managed->version.major != DLPACK_MAJOR_VERSION) {
        throw UnsupportedError(std::string(operand) + " came as DLPack " +
                               std::to_string(managed->version.major) + "." +
                               std::to_string(managed->version.minor) + "; tcgemm reads version 1");
    }
    imported.view = view_of(managed->dl_tensor, managed->flags, type, operand);
    imported.is_copy = (managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
    return imported;
}

ImportedArray take_capsule(const py::object& capsule, const TypeInfo& type, const char* operand) {
    // Renaming the capsule takes its managed tensor over: its own destructor then leaves it alone.
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
        auto* managed = static_cast<DLManagedTensorVersioned*>(
            PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
        PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
        return take_versioned(managed, type, operand);
    }
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
        auto* managed =
            static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
        ImportedArray imported;
        imported.owner = own(managed);
        imported.view = view_of(managed->dl_tensor, 0, type, operand);
        return imported;
    }
    throw DTypeError(std::string(operand) + " (" + type.name +
                     "): __dlpack__ returned no DLPack capsule, or one that was used before");
}

// Of before DLPack 1.0. Each kind of function has its own words for it: "unexpected keyword
// argument", "invalid keyword argument", "incompatible function arguments". Our own errors come out
// of a producer that calls tcgemm: it would be called twice for each of its calls.
bool refuses_an_argument(const py::error_already_set& error) {
    return error.matches(PyExc_TypeError) &&
           !error.matches(py::module_::import("tcgemm._errors").attr("TcgemmError")) &&
           shown(error.value()).find("argument") != std::string::npos;
}

py::object call_dlpack(py::handle array, TypeInfo& type, DlpackStream stream) {
    const py::object export_array = array.attr("__dlpack__");
    const py::object stream_value = stream ? py::object(py::int_(*stream)) : py::none();
    const auto with_max_version = [&] {
        return export_array(
            py::arg("stream") = stream_value,
            py::arg("max_version") = py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
    };
    if (type.takes_max_version) {
        try {
            return with_max_version();
        } catch (py::error_already_set& error) {
            if (!refuses_an_argument(error)) throw;
        }
        py::object capsule = export_array(py::arg("stream") = stream_value);
        type.takes_max_version = false;
        return capsule;
    }
    try {
        return export_array(py::arg("stream") = stream_value);
    } catch (py::error_already_set& refused) {
        // One object of a class that forwards need not refuse what another does.
        if (!refused.matches(PyExc_BufferError)) throw;
        try {
            py::object capsule = with_max_version();
            type.takes_max_version = true;
            return capsule;
        } catch (py::error_already_set& error) {
            if (!refuses_an_argument(error)) throw;
        }
        throw;
    }
}

ImportedArray import_dlpack(py::handle array, TypeInfo& type, const char* operand, Device device,
                            DlpackStream stream) {
    py::object capsule;
    const Fp8Bytes fp8 = fp8_bytes(array, type);
    try {
        capsule = call_dlpack(fp8.bytes, type, stream);
    } catch (const py::error_already_set& error) {
        producer_refused(error, array, type, operand);
    }
    ImportedArray imported = take_capsule(capsule, type, operand);
    if (!(imported.view.device == device)) {
        throw DeviceError(std::string(operand) + " (" + type.name + ") is on " + text(device) +
                          " by its __dlpack_device__, but on " + text(imported.view.device) +
                          " by what __dlpack__ exported; its producer must name one device");
    }
    return fp8.named(std::move(imported), type, operand);
}

// --- DLPack's C exchange API

ImportedArray as_before(const ArrayView& known) {
    ImportedArray imported;
    imported.view = known;
    return imported;
}

// Whether the tensor is what `view` was made of.
bool describes(const ArrayView& view, const DLTensor& tensor, Device device) {
    const DTypeInfo& dtype = info(view.dtype);
    if (static_cast<char*>(tensor.data) + tensor.byte_offset != view.data ||
        !(device == view.device) || tensor.dtype.code != dtype.dlpack_code ||
        tensor.dtype.bits != dtype.bits || tensor.dtype.lanes != 1 || tensor.ndim != view.ndim ||
        tensor.strides == nullptr) {
        return false;
    }
    for (int dim = 0; dim < view.ndim; ++dim) {
        if (tensor.shape[dim] != view.shape[dim]) return false;
        if (view.shape[dim] != 1 && tensor.strides[dim] != view.stride[dim]) return false;
    }
    return true;
}

ImportedArray import_exchange(py::handle array, const TypeInfo& type, const char* operand,
                              const ArrayView* known) {
    // A borrowed view has no flags (read-only), so it is only taken from torch, which sets none.
    if (type.framework == Framework::torch && type.exchange->dltensor_from_py_object_no_sync) {
        DLTensor tensor;
        if (type.exchange->dltensor_from_py_object_no_sync(array.ptr(), &tensor) != 0) {
            const py::error_already_set error;
            const Fp8Bytes fp8 = fp8_bytes(array, type);
            if (!fp8.dtype) producer_refused(error, array, type, operand);
            return fp8.named(import_exchange(fp8.bytes, type, operand, nullptr), type, operand);
        }
        const Device device = device_of(tensor.device, operand);
        // Of what is bound to a plan either may have been set since.
        check_gradient(array, operand);
        check_negative_bit(array, operand);
        if (known != nullptr && describes(*known, tensor, device)) return as_before(*known);
        ImportedArray imported;
        imported.view = view_of(tensor, 0, type, operand);
        return imported;
    }
    DLManagedTensorVersioned* managed = nullptr;
    if (type.exchange->managed_tensor_from_py_object_no_sync(array.ptr(), &managed) != 0) {
        producer_refused(py::error_already_set(), array, type, operand);
    }
    return take_versioned(managed, type, operand);
}

// --- CUDA Array Interface, version 3

ImportedArray import_cuda_array_interface(py::handle array, const TypeInfo& type,
                                          const char* operand, Device device) {
    const auto interface = py::cast<py::dict>(array.attr("__cuda_array_interface__"));
    const auto get = [&](const char* key) -> py::object {
        return interface.contains(key) ? py::object(interface[key]) : py::none();
    };
    if (!get("mask").is_none()) {
        throw DTypeError(std::string(operand) +
                         " has a mask, which would be ignored; pass an array without one");
    }
    ImportedArray imported;
    ArrayView& view = imported.view;
    set_dtype(view, py::dtype::from_args(get("typestr")), type, operand);
    view.device = device;
    const auto shape = py::cast<py::tuple>(get("shape"));
    check_rank(static_cast<int64_t>(shape.size()), operand);
    view.ndim = static_cast<int>(shape.size());
    for (int dim = 0; dim < view.ndim; ++dim) view.shape[dim] = py::cast<int64_t>(shape[dim]);
    view.stride = packed(view.dtype, view.ndim, view.shape, device).stride;
    if (const py::object strides = get("strides"); !strides.is_none()) {
        for (int dim = 0; dim < view.ndim; ++dim) {
            set_stride(view, dim, py::cast<int64_t>(py::cast<py::tuple>(strides)[dim]), type,
                       operand);
        }
        normalise_strides(view);
    }
    const auto data = py::cast<py::tuple>(get("data"));
    view.data = reinterpret_cast<void*>(py::cast<std::uintptr_t>(data[0]));
    view.read_only = py::cast<bool>(data[1]);
    settle_address(view, operand);
    if (const py::object stream = get("stream"); !stream.is_none()) {
        const auto handle = py::cast<std::uintptr_t>(stream);  // 1: the legacy default stream
        imported.ready_on = handle == 1 ? nullptr : reinterpret_cast<StreamHandle>(handle);
    }
    return imported;
}

}  // namespace

void note_written(py::handle tensor) {
    const TorchMembers& torch = torch_members();
    if (torch.increment_version.is_none() || torch.is_inference.of(tensor).ptr() == Py_True) return;
    checked(PyObject_CallOneArg(torch.increment_version.ptr(), tensor.ptr()));
}

bool tells_at_once(Protocol protocol) {
    return protocol == Protocol::numpy || protocol == Protocol::cupy ||
           protocol == Protocol::exchange_api;
}

ImportedArray import_at_once(py::handle array, const TypeInfo& type, const char* operand,
                             const ArrayView* known) {
    switch (type.protocol) {
        case Protocol::numpy: return import_numpy(array, type, operand);
        case Protocol::cupy:
            // CuPy never gives an array other memory; a `shape` set since is that of another view.
            if (known != nullptr) return as_before(*known);
            return import_cupy(array, type, operand);
        default: return import_exchange(array, type, operand, known);
    }
}

Device locate(py::handle array, const TypeInfo& type, const char* operand) {
    if (type.protocol == Protocol::cuda_array_interface) {
        // The interface does not name the device.
        if (cuda_device_count() <= 1) return Device::cuda(0);
        const auto data = py::cast<py::tuple>(array.attr("__cuda_array_interface__")["data"]);
        const auto address = py::cast<std::uintptr_t>(data[0]);  // may be 0 of an empty array
        try {
            return address == 0 ? Device::cuda(0)
                                : device_holding(reinterpret_cast<const void*>(address));
        } catch (const DeviceError& error) {
            throw DeviceError(std::string(operand) + " (" + type.name + "): " + error.what() +
                              "; pass an array in GPU memory");
        }
    }
    py::object answer;
    try {
        answer = array.attr("__dlpack_device__")();
    } catch (const py::error_already_set& error) {
        producer_refused(error, array, type, operand);
    }
    int kind = 0, ordinal = 0;  // kind is an enum.IntEnum in most frameworks
    if (!PyTuple_Check(answer.ptr()) || !PyArg_ParseTuple(answer.ptr(), "ii", &kind, &ordinal)) {
        PyErr_Clear();
        throw DTypeError(std::string(operand) + " (" + type.name +
                         "): __dlpack_device__ returned " + shown(py::repr(answer)) +
                         "; it must be a pair of integers (device type, device number)");
    }
    return device_of({static_cast<DLDeviceType>(kind), ordinal}, operand);
}

ImportedArray import_array(py::handle array, TypeInfo& type, const char* operand, Device device,
                           DlpackStream stream) {
    if (type.protocol == Protocol::cuda_array_interface) {
        return import_cuda_array_interface(array, type, operand, device);
    }
    if (type.framework != Framework::torch) {
        return import_dlpack(array, type, operand, device, stream);
    }
    check_gradient(array, operand);
    check_negative_bit(array, operand);
    // __dlpack__ refuses what requires a gradient, even where gradients are disabled.
    const auto exported = requires_gradient(array) ? py::object(array.attr("detach")())
                                                   : py::reinterpret_borrow<py::object>(array);
    return import_dlpack(exported, type, operand, device, stream);
}

}  // namespace tcgemm::python
