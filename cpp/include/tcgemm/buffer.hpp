// Owners of memory. Move-only; each remembers its device, and gives the memory back there.
#pragma once

#include <cstddef>

#include "tcgemm/export.h"
#include "tcgemm/stream.hpp"

namespace tcgemm {

// Device memory, allocated and freed in the order of a stream, from the library's own pool of that
// device. Throws OutOfMemory with the byte count. Address aligned to 256 bytes.
class TCGEMM_API DeviceBuffer {
   public:
    DeviceBuffer() noexcept = default;
    DeviceBuffer(std::size_t bytes, int device, StreamView stream);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }
    int device() const noexcept { return device_; }
    StreamView stream() const noexcept { return stream_; }

   private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    int device_ = -1;
    StreamView stream_;
};

// Page-locked host memory, for copies that run beside the CPU.
class TCGEMM_API PinnedBuffer {
   public:
    PinnedBuffer() noexcept = default;
    PinnedBuffer(std::size_t bytes, int device);
    ~PinnedBuffer();
    PinnedBuffer(PinnedBuffer&& other) noexcept;
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }
    int device() const noexcept { return device_; }

   private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    int device_ = -1;
};

// Copies in the order of `stream`; each side is host or device memory. Throws CudaError.
TCGEMM_API void copy_async(void* to, const void* from, std::size_t bytes, StreamView stream);
// Copies `rows` rows of `row_bytes`; `to_pitch` and `from_pitch` are bytes from row to row.
TCGEMM_API void copy_2d_async(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t row_bytes, std::size_t rows,
                              StreamView stream);
// Returns the pool's unused memory of `device` to the driver.
TCGEMM_API void release_unused_memory(int device);

}  // namespace tcgemm
