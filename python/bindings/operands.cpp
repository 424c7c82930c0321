#include "operands.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cupy_array.hpp"
#include "elements.hpp"
#include "errors.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

py::dtype numpy_dtype(DType dtype) {
    if (dtype != DType::bf16 && !is_fp8(dtype)) return py::dtype(std::string(name(dtype)));
    try {
        return py::dtype::from_args(py::module_::import("ml_dtypes").attr(name(dtype)));
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_ImportError)) throw;
        throw DTypeError(std::string("the result is ") + name(dtype) +
                         ", which NumPy only has with the package ml_dtypes; install it, or name "
                         "another out_dtype");
    }
}

py::tuple shape_tuple(int ndim, const Dims& shape) {
    py::tuple result(ndim);
    for (int dim = 0; dim < ndim; ++dim) result[dim] = shape[dim];
    return result;
}

py::object new_numpy_array(DType dtype, int ndim, const Dims& shape) {
    return py::array(numpy_dtype(dtype),
                     std::vector<py::ssize_t>(shape.begin(), shape.begin() + ndim));
}

// NumPy and CuPy raise a MemoryError, PyTorch a RuntimeError (on a GPU: a class of its own), as
// JAX.
bool is_out_of_memory(const py::error_already_set& error) {
    if (error.matches(PyExc_MemoryError)) return true;
    const auto name = shown(error.type().attr("__name__"));
    const auto message = shown(error.value());
    return name == "OutOfMemoryError" ||
           (name == "RuntimeError" && message.find("allocate memory") != std::string::npos) ||
           message.rfind("RESOURCE_EXHAUSTED", 0) == 0;
}

void throw_set_error(void*, const char* kind, const char* message) {
    const py::gil_scoped_acquire gil;
    PyErr_SetString(PyExc_RuntimeError, (std::string(kind) + ": " + message).c_str());
}

// By the type's own allocator, on its framework's current stream.
py::object new_exchange_array(const DLPackExchangeAPI& api, DType dtype, int ndim, Dims shape,
                              Device device) {
    DLTensor prototype{};
    prototype.device = device.is_cpu() ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, device.ordinal};
    prototype.ndim = ndim;
    prototype.dtype = {info(dtype).dlpack_code, static_cast<std::uint8_t>(info(dtype).bits), 1};
    prototype.shape = shape.data();
    DLManagedTensorVersioned* managed = nullptr;
    void* object = nullptr;
    if (api.managed_tensor_allocator(&prototype, &managed, nullptr, throw_set_error) != 0 ||
        api.managed_tensor_to_py_object_no_sync(managed, &object) != 0) {
        throw py::error_already_set();
    }
    return py::reinterpret_steal<py::object>(static_cast<PyObject*>(object));
}

}  // namespace

// Not where there is no GPU to expect.
void warn_of_cuda() {
    const std::string failure = cuda_failure();
    if (failure.empty()) return;
    const std::string text =
        "CUDA does not start: " + failure +
        "; host arrays are multiplied on the CPU. Set TCGEMM_DEVICE=cpu if that "
        "is what you want";
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 2) != 0) throw py::error_already_set();
}

// The CPU where there is none.
Device first_device_with_kernels() {
    const int count = cuda_device_count();
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        if (has_kernels(Device::cuda(ordinal))) return Device::cuda(ordinal);
    }
    return Device::cpu();
}

Device device_for_host_arrays() {
    const char* const variable = std::getenv("TCGEMM_DEVICE");
    return device_for_host_arrays(variable == nullptr ? "" : variable);
}

Device device_for_host_arrays(const std::string& value) {
    if (value == "cpu") return Device::cpu();
    if (value.empty()) {
        about_to_use_cuda();                 // refuses in a child: the count would be 0 there
        static std::optional<Device> known;  // under the GIL, which a warning lets go of
        if (known) return *known;
        known = first_device_with_kernels();
        if (known->is_cpu()) warn_of_cuda();
        return *known;
    }
    const std::string prefix = "cuda:";
    const std::string digits = value.rfind(prefix, 0) == 0 ? value.substr(prefix.size()) : "";
    const bool is_number = !digits.empty() && digits.size() <= 3 &&
                           digits.find_first_not_of("0123456789") == std::string::npos &&
                           (digits[0] != '0' || digits == "0");
    if (value != "cuda" && !is_number) {
        throw InvalidArgument("TCGEMM_DEVICE is \"" + value +
                              "\"; it must be cpu, cuda or cuda:N, where N is the number of a GPU");
    }
    const Device device = Device::cuda(digits.empty() ? 0 : std::stoi(digits));
    about_to_use_cuda();
    try {
        properties(device);
    } catch (const DeviceError& error) {
        throw DeviceError("TCGEMM_DEVICE is \"" + value + "\", but " + error.what() +
                          "; unset it, or set it to another device or to cpu");
    }
    return device;
}

Operands::Operands(const Arrays& arrays, py::handle stream, const NamedDTypes& named,
                   const KnownViews& known, std::optional<Device> planned)
    : arrays_(arrays) {
    Slot first = kSlots;
    for (int i = 0; i < kSlots; ++i) {
        const auto slot = static_cast<Slot>(i);
        if (!has(slot) && slot != kA && slot != kB) continue;
        const py::handle array = arrays_[slot];
        types_[slot] = type_info(array, kSlotNames[slot]);
        TypeInfo& type = *types_[slot];
        const bool at_once = tells_at_once(type.protocol);
        if (at_once) imported_[slot] = import_at_once(array, type, kSlotNames[slot], known[slot]);
        const Device device = at_once ? view(slot).device : locate(array, type, kSlotNames[slot]);
        if (first == kSlots) {
            first = slot;
            memory_ = device;
        } else if (!(device == memory_)) {
            throw DeviceError(std::string(kSlotNames[slot]) + " is on " + text(device) + ", but " +
                              kSlotNames[first] + " is on " + text(memory_) +
                              "; all arrays must be on one device: move one of them");
        }
    }
    if (has(kOut) && types_[kOut]->framework == Framework::jax) {
        throw DTypeError("out is a JAX array, which is immutable; leave it out and use the result");
    }
    choose_compute_device(planned);
    guard_.emplace(compute_);
    choose_stream(stream);
    import_rest();
    for (int i = 0; i < kSlots; ++i) {
        if (types_[i] != nullptr) {
            settle_dtype(imported_[i].view, named[i], *types_[i], kSlotNames[i]);
        }
    }
    if (has(kOut)) check_out_is_writable();
}

void Operands::choose_compute_device(std::optional<Device> planned) {
    if (memory_.is_cpu()) {
        compute_ = planned ? *planned : device_for_host_arrays();
        if (planned && !compute_.is_cpu()) about_to_use_cuda();
    } else {
        about_to_use_cuda();
        properties(memory_);  // throws where this build or machine can't use it
        compute_ = memory_;
    }
}

bool Operands::any_jax_on_gpu() const {
    if (memory_.is_cpu()) return false;
    for (const auto& type : types_) {
        if (type != nullptr && type->framework == Framework::jax) return true;
    }
    return false;
}

bool Operands::holds_copies() const {
    return std::any_of(imported_.begin(), imported_.end(),
                       [](const ImportedArray& imported) { return imported.is_copy; });
}

void Operands::check_copies_can_be_kept() const {
    for (int i = 0; i < kSlots; ++i) {
        if (imported_[i].is_copy && stream_.is_capturing()) {
            throw LayoutError(std::string(kSlotNames[i]) +
                              " was exported as a copy, which a CUDA graph cannot keep; pass an "
                              "array that shares its memory");
        }
    }
}

// Host arrays and JAX arrays: a stream of our own, and the call waits. JAX gives no way to its
// streams, and would reuse an operand's memory without regard to ours.
void Operands::choose_stream(py::handle stream) {
    if (!stream.is_none()) given_stream_ = stream_from_python(stream, compute_);
    if (compute_.is_cpu()) return;
    for (int i = 0; i < kSlots && !staged(); ++i) {
        const auto slot = static_cast<Slot>(i);
        if (types_[slot] == nullptr) continue;
        const bool as_a = slot != kA && types_[slot] == types_[kA];
        current_[slot] = as_a ? current_[kA] : current_stream(slot);
    }
    if (staged() || any_jax_on_gpu()) {
        borrowed_.emplace(compute_);
        stream_ = borrowed_->view();
    } else {
        stream_ = given_stream_ ? *given_stream_ : current_[kA].value_or(nullptr);
    }
    let_go();
}

// Adapters ask events whether they have happened, which would end a capture.
void Operands::let_go() const {
    for (const auto& type : types_) {
        if (type == nullptr || !type->keeps_arrays || stream_.is_capturing()) continue;
        type->keeps_arrays = py::cast<bool>(type->adapter.attr("let_go")());
        return;  // one adapter has them all
    }
}

std::optional<StreamHandle> Operands::current_stream(Slot slot) const {
    const TypeInfo& type = *types_[slot];
    if (type.protocol == Protocol::exchange_api) {
        void* stream = nullptr;
        if (type.exchange->current_work_stream(kDLCUDA, memory_.ordinal, &stream) != 0) {
            throw py::error_already_set();
        }
        return stream_from_integer(reinterpret_cast<std::uintptr_t>(stream));
    }
    if (type.framework == Framework::cupy) {
        if (const std::optional<StreamHandle> stream = cupy_current_stream()) return stream;
    }
    if (type.framework == Framework::torch || type.framework == Framework::cupy) {
        return stream_from_integer(
            py::cast<std::uintptr_t>(type.adapter.attr("current_stream")(memory_.ordinal)));
    }
    return std::nullopt;
}

bool Operands::waits_for(Slot slot) const {
    return types_[slot]->protocol == Protocol::exchange_api ||
           types_[slot]->protocol == Protocol::cupy;
}

void Operands::import_rest() {
    // Producers are asked to synchronise only with a stream that is not theirs, and never in a
    // capture: an outside event can't enter a graph.
    std::optional<bool> capturing;
    for (int i = 0; i < kSlots; ++i) {
        const auto slot = static_cast<Slot>(i);
        if (types_[slot] == nullptr || tells_at_once(types_[slot]->protocol)) continue;
        DlpackStream for_producer;
        if (!memory_.is_cpu() && types_[slot]->protocol == Protocol::dlpack) {
            const bool same = current_[slot] && *current_[slot] == stream_.get();
            if (!same && !capturing) capturing = stream_.is_capturing();
            for_producer = same || *capturing ? kNoSynchronisation : dlpack_stream(stream_.get());
        }
        imported_[slot] =
            import_array(arrays_[slot], *types_[slot], kSlotNames[slot], memory_, for_producer);
    }
}

void Operands::check_out_is_writable() const {
    if (view(kOut).read_only) {
        throw LayoutError("out is read-only; pass a writable array");
    }
    if (imported_[kOut].is_copy) {
        throw LayoutError(
            "out was exported as a copy, so that the result would be lost; pass an array "
            "that shares its memory");
    }
}

void Operands::allocate_out(DType dtype, int ndim, const Dims& shape) {
    std::int64_t bytes = size_of(dtype);
    for (int dim = 0; dim < ndim; ++dim) {  // a 0 counts as 1: NumPy's limit is that of strides
        if (!__builtin_mul_overflow(bytes, std::max<std::int64_t>(shape[dim], 1), &bytes)) continue;
        throw ShapeError("the result, " + std::string(name(dtype)) + " of shape " +
                         text(ndim, shape) +
                         ", spans more bytes than 64 bits can count; multiply in parts");
    }
    try {
        make_out(dtype, ndim, shape);
    } catch (const py::error_already_set& error) {
        if (!is_out_of_memory(error)) throw;
        throw OutOfMemory("no memory for the result, " + std::string(name(dtype)) + " of shape " +
                          text(ndim, shape) + ": " + std::to_string(bytes) + " bytes on " +
                          text(memory_) + "; free some, or multiply in parts");
    }
}

void Operands::make_out(DType dtype, int ndim, const Dims& shape) {
    TypeInfo& type = *types_[kA];
    ImportedArray& out = imported_[kOut];
    out_is_new_ = true;
    if (type.framework == Framework::jax) {
        type.adapter.attr("check_dtype")(name(dtype));
        wrap_out_ = memory_.is_cpu();
    }
    const bool as_numpy = type.adapter.is_none() && type.protocol != Protocol::exchange_api;
    if (memory_.is_cpu() && (wrap_out_ || as_numpy)) {
        arrays_[kOut] = new_numpy_array(dtype, ndim, shape);
    } else if (!type.adapter.is_none()) {
        const bool other_stream =
            !memory_.is_cpu() && current_[kA].value_or(nullptr) != stream_.get();
        const py::object stream =
            other_stream ? py::object(py::int_(reinterpret_cast<std::uintptr_t>(stream_.get())))
                         : py::none();
        arrays_[kOut] =
            type.adapter.attr("empty")(arrays_[kA], shape_tuple(ndim, shape), name(dtype), stream);
    } else if (type.protocol == Protocol::exchange_api) {
        arrays_[kOut] = new_exchange_array(*type.exchange, dtype, ndim, shape, memory_);
    } else {
        throw InvalidArgument("a is a " + type.name +
                              ", and tcgemm does not know how to make another one for the result; "
                              "pass out=");
    }
    types_[kOut] = type_info(arrays_[kOut], "out");
    TypeInfo& made = *types_[kOut];
    if (!memory_.is_cpu()) current_[kOut] = &made == &type ? current_[kA] : current_stream(kOut);
    if (tells_at_once(made.protocol)) {
        out = import_at_once(arrays_[kOut], made, "out");
    } else {
        // JAX fills new arrays, on a stream that it does not name.
        const bool is_filled = type.framework == Framework::jax;
        out = import_array(arrays_[kOut], made, "out", memory_,
                           memory_.is_cpu() ? DlpackStream()
                           : is_filled      ? dlpack_stream(stream_.get())
                                            : DlpackStream(kNoSynchronisation));
    }
}

void Operands::wait_for_frameworks() {
    if (given_stream_) order(*given_stream_, stream_, compute_);
    std::optional<bool> capturing;
    for (int i = 0; i < kSlots; ++i) {
        const auto slot = static_cast<Slot>(i);
        if (types_[slot] == nullptr) continue;
        std::optional<StreamHandle> pending = imported_[slot].ready_on;
        if (waits_for(slot)) pending = current_[slot];
        if (!pending || *pending == stream_.get()) continue;
        if (!capturing) capturing = stream_.is_capturing();
        if (!*capturing) order(*pending, stream_, compute_);
    }
}

void Operands::release_to_frameworks() {
    if (synchronous()) return;  // the work is done
    std::optional<bool> capturing;
    for (int i = 0; i < kSlots; ++i) {
        const auto slot = static_cast<Slot>(i);
        if (types_[slot] == nullptr) continue;
        const std::optional<StreamHandle> current = current_[slot];
        if (!current || *current == stream_.get()) continue;
        if (!capturing) capturing = stream_.is_capturing();
        if (*capturing) continue;  // a graph's arrays are kept by whoever captures it
        if (!given_stream_) {
            order(stream_, *current, compute_);
        } else if (!types_[slot]->adapter.is_none() && !(slot == kOut && out_is_new_)) {
            types_[slot]->adapter.attr("keep")(arrays_[slot], memory_.ordinal,
                                               reinterpret_cast<std::uintptr_t>(stream_.get()));
            types_[slot]->keeps_arrays = types_[slot]->framework == Framework::cupy;
        }
    }
}

py::object Operands::finish() {
    if (!out_is_new_ && types_[kOut]->framework == Framework::torch) note_written(arrays_[kOut]);
    if (!wrap_out_) return arrays_[kOut];
    return types_[kA]->adapter.attr("wrap")(arrays_[kOut], arrays_[kA]);
}

}  // namespace tcgemm::python
