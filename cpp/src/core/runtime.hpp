// The few CUDA runtime calls that the library makes from host code. runtime_cuda.cpp implements
// them; runtime_none.cpp stands in for a host-only build and throws DeviceError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tcgemm/device.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::runtime {

// Number of usable devices; `reason` says why it is 0. Does not throw, makes no context.
int device_count(std::string* reason) noexcept;
DeviceProperties device_properties(int device);
int current_device();
void set_device(int device);
void set_device_noexcept(int device) noexcept;

void* allocate_async(std::size_t bytes, int device, StreamHandle stream);
void free_async(void* data, int device, StreamHandle stream) noexcept;
void trim_pool(int device);
void* allocate_pinned(std::size_t bytes, int device);
void free_pinned(void* data) noexcept;
void copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream);
void clear_async(void* data, std::size_t bytes, StreamHandle stream);  // zeros
void copy_2d_async(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                   std::size_t row_bytes, std::size_t rows, StreamHandle stream);

StreamHandle create_stream();
void destroy_stream(StreamHandle stream) noexcept;
void synchronize_stream(StreamHandle stream);
bool is_capturing(StreamHandle stream);
EventHandle create_event(bool timing);
void destroy_event(EventHandle event) noexcept;
void record_event(EventHandle event, StreamHandle stream);
void synchronize_event(EventHandle event);
void wait_event(StreamHandle stream, EventHandle event);
float elapsed_ms(EventHandle start, EventHandle stop);

// How the copy engine of sm_90 sees a tensor: up to five dimensions, the inner one contiguous;
// boxes of inner x outer elements lie in shared memory with rows of 128 bytes, swizzled. Elements
// outside are read as 0 and not written.
inline constexpr std::int64_t kSectorBytes = 32;                          // what L2 is read by
inline constexpr std::int64_t kTensorMapStrides = std::int64_t{1} << 40;  // bytes; all are less
struct TensorMapShape {
    void* address = nullptr;            // a multiple of 16
    int element_bytes = 2;              // 1, 2 or 4
    bool to_tf32 = false;               // floats, rounded to TF32 (nearest even) as they are loaded
    std::int64_t extent[5] = {};        // elements
    std::int64_t stride_bytes[4] = {};  // of dimensions 1 to 4; multiples of 16
    int box[2] = {};                    // elements, at most 256; the inner one fills 128 bytes
};
// Writes the 128 bytes of a CUtensorMap, aligned to 64. Throws CudaError.
void encode_tensor_map(void* map, const TensorMapShape& shape);

// After a kernel launch: throws CudaError that names the kernel, and says so where the error is of
// an earlier kernel. Reads and clears the error.
void check_launch(const char* kernel_name);

}  // namespace tcgemm::runtime
