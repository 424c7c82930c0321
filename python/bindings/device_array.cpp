#include "device_array.hpp"

#include <algorithm>

#include "dlpack/dlpack.h"
#include "streams.hpp"

namespace tcgemm::python {

namespace py = pybind11;

namespace {

// What a managed tensor points to: alive until its deleter is called, on any thread.
template <class Managed>
struct Export {
    Managed managed{};
    ArrayView view;
    std::shared_ptr<const DeviceBuffer> buffer;
};

template <class Managed>
py::capsule make_capsule(const ArrayView& view, std::shared_ptr<const DeviceBuffer> buffer,
                         const char* name, PyCapsule_Destructor destructor) {
    auto exported = std::make_unique<Export<Managed>>();
    exported->view = view;
    exported->buffer = std::move(buffer);
    DLTensor& tensor = exported->managed.dl_tensor;
    tensor.data = view.data;
    tensor.device = {kDLCUDA, view.device.ordinal};
    tensor.ndim = view.ndim;
    tensor.dtype = {info(view.dtype).dlpack_code, static_cast<std::uint8_t>(info(view.dtype).bits),
                    1};
    tensor.shape = exported->view.shape.data();
    tensor.strides = exported->view.stride.data();
    exported->managed.manager_ctx = exported.get();
    exported->managed.deleter = [](Managed* managed) {
        delete static_cast<Export<Managed>*>(managed->manager_ctx);
    };
    PyObject* const capsule = PyCapsule_New(&exported->managed, name, destructor);
    if (capsule == nullptr) throw py::error_already_set();
    exported.release();
    return py::reinterpret_steal<py::capsule>(capsule);
}

// Of a capsule that nobody took over: a taken one has another name.
template <class Managed>
void destroy_capsule(PyObject* capsule, const char* name) {
    if (!PyCapsule_IsValid(capsule, name)) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
}

constexpr const char* kLegacyName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

}  // namespace

std::unique_ptr<DeviceArray> DeviceArray::allocate(DType dtype, int ndim, const Dims& shape,
                                                   Device device) {
    std::unique_ptr<DeviceArray> array(new DeviceArray);
    array->view_ = packed(dtype, ndim, shape, device);
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(array->view_.bytes(), 1));
    array->buffer_ = std::make_shared<const DeviceBuffer>(bytes, device, service_stream(device));
    array->view_.data = array->buffer_->data();
    return array;
}

py::capsule DeviceArray::dlpack(py::object max_version) const {
    const bool versioned =
        !max_version.is_none() && py::cast<int>(py::cast<py::tuple>(max_version)[0]) >= 1;
    if (!versioned) {
        return make_capsule<DLManagedTensor>(view_, buffer_, kLegacyName, [](PyObject* capsule) {
            destroy_capsule<DLManagedTensor>(capsule, kLegacyName);
        });
    }
    py::capsule capsule = make_capsule<DLManagedTensorVersioned>(
        view_, buffer_, kVersionedName,
        [](PyObject* self) { destroy_capsule<DLManagedTensorVersioned>(self, kVersionedName); });
    static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName))
        ->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    return capsule;
}

py::tuple DeviceArray::dlpack_device() const {
    return py::make_tuple(static_cast<int>(kDLCUDA), view_.device.ordinal);
}

void bind_device_array(py::module_& module) {
    py::class_<DeviceArray>(module, "DeviceArray",
                            "Device memory of the library's own, for a framework to take over.")
        .def(
            "__dlpack__",
            [](const DeviceArray& self, const py::object&, const py::object& max_version,
               const py::object&, const py::object&) { return self.dlpack(max_version); },
            py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
            py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
        .def("__dlpack_device__", &DeviceArray::dlpack_device);
}

}  // namespace tcgemm::python
