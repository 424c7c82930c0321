// Device memory of the library's own that a framework can take over through DLPack: how a result
// becomes an array of a framework whose arrays can't be written (JAX).
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "array_view.hpp"
#include "tcgemm/buffer.hpp"

namespace tcgemm::python {

class DeviceArray {
   public:
    // C-contiguous, on the device's service stream.
    static std::unique_ptr<DeviceArray> allocate(DType dtype, int ndim, const Dims& shape,
                                                 Device device);
    const ArrayView& view() const { return view_; }

    // The Python protocol. Every capsule shares the memory, which goes with the last of them. The
    // contents must be complete: `stream` is not made to wait.
    pybind11::capsule dlpack(pybind11::object max_version) const;
    pybind11::tuple dlpack_device() const;

   private:
    DeviceArray() = default;
    std::shared_ptr<const DeviceBuffer> buffer_;
    ArrayView view_;
};

void bind_device_array(pybind11::module_& module);

}  // namespace tcgemm::python
