// The owner of device memory: move-only; it remembers its device, and gives the memory back there.
#pragma once

#include <cstddef>

#include "tcgemm/device.hpp"
#include "tcgemm/export.h"
#include "tcgemm/stream.hpp"

namespace tcgemm {

// Device memory from the library's own pool of that device, allocated and freed in the order of a
// stream, which must outlive the buffer. Its address is aligned to 256 bytes, or null for 0 bytes.
// Throws OutOfMemory with the number of bytes, DeviceError for the CPU and for a device that does
// not exist, CudaError.
class TCGEMM_API DeviceBuffer {
   public:
    DeviceBuffer() noexcept = default;
    DeviceBuffer(std::size_t bytes, Device device, StreamView stream);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }
    Device device() const noexcept { return device_; }  // the CPU if made by default
    StreamView stream() const noexcept { return stream_; }

   private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    Device device_;
    StreamView stream_;
};

// Copies `bytes` bytes in the order of `stream` (null: the current device's legacy default stream).
// Either side may be host or device memory; both must stay valid until the copy is done. Throws
// CudaError.
TCGEMM_API void copy_async(void* to, const void* from, std::size_t bytes, StreamView stream);
// Returns the unused memory of the pool of `device` to the driver. Throws DeviceError as
// DeviceBuffer does, and CudaError.
TCGEMM_API void release_unused_memory(Device device);

}  // namespace tcgemm
