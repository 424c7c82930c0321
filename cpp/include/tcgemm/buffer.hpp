// The owner of device memory: move-only; it remembers its device, and gives the memory back there.
#pragma once

#include <cstddef>

#include "tcgemm/device.hpp"
#include "tcgemm/export.h"
#include "tcgemm/stream.hpp"

namespace tcgemm {

// Device memory, allocated and freed in the order of a stream, from the library's own pool of that
// device. Throws OutOfMemory with the byte count, DeviceError for a device that is not there and
// for the CPU. Address aligned to 256 bytes.
class TCGEMM_API DeviceBuffer {
   public:
    DeviceBuffer() noexcept = default;
    DeviceBuffer(std::size_t bytes, Device device, StreamView stream);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }
    Device device() const noexcept { return device_; }  // the CPU where it was made without one
    StreamView stream() const noexcept { return stream_; }

   private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    Device device_;
    StreamView stream_;
};

// Copies in the order of `stream` (null: the current device's default stream); each side is host or
// device memory. Throws CudaError.
TCGEMM_API void copy_async(void* to, const void* from, std::size_t bytes, StreamView stream);
// Returns the pool's unused memory of `device` to the driver. Throws DeviceError as DeviceBuffer
// does, CudaError.
TCGEMM_API void release_unused_memory(Device device);

}  // namespace tcgemm
