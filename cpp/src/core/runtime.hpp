// The few CUDA runtime calls that the library makes from host code. runtime_cuda.cpp implements
// them; runtime_none.cpp stands in for a host-only build and throws DeviceError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tcgemm/device.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::runtime {

inline constexpr int kMaxDevices = 64;  // ordinals from here on are refused

// Number of usable devices; `reason` says why it is 0, `fails` whether CUDA is there and does not
// start. Does not throw, makes no context.
int device_count(std::string* reason, bool* fails = nullptr) noexcept;
DeviceProperties device_properties(int device);
// `device`. Throws DeviceError for the CPU, and where there is no such device.
Device usable_gpu(Device device);
int current_device();
int device_of_address(const void* address);
// Makes the device current in the calling thread; leave_device() then makes current what was so
// before, be it a context of the program's own or none at all. cudaSetDevice() would do the former
// no justice, and make a context on device 0 (hundreds of megabytes) for the latter.
void enter_device(int device);
void leave_device(int previous) noexcept;

void* allocate_async(std::size_t bytes, int device, StreamHandle stream);
void free_async(void* data, int device, StreamHandle stream) noexcept;
void trim_pool(int device);
void copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream);
void clear_async(void* data, std::size_t bytes, StreamHandle stream);  // zeros

StreamHandle create_stream();
void destroy_stream(StreamHandle stream) noexcept;
void synchronize_stream(StreamHandle stream);
bool is_capturing(StreamHandle stream);
// Calls graph_is_gone(object), on a thread of CUDA's, when the graph that the stream is captured
// into, and all that is made of it, are gone. Where this throws, never.
void share_with_graph(StreamHandle stream, void* object, void (*graph_is_gone)(void*));
EventHandle create_event(bool timing);
void destroy_event(EventHandle event) noexcept;
void record_event(EventHandle event, StreamHandle stream);
void synchronize_event(EventHandle event);
void wait_event(StreamHandle stream, EventHandle event);
float elapsed_ms(EventHandle start, EventHandle stop);

// Bytes: what strides of a tensor map have to be less than.
inline constexpr std::int64_t kTensorMapStrides = std::int64_t{1} << 40;

// How the copy engine of sm_90 sees a tensor: up to five dimensions, the inner one contiguous;
// boxes of inner x outer elements lie in shared memory with rows of 128 bytes, swizzled. Elements
// outside are read as 0 and not written.
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

inline constexpr std::int64_t kMaxGrid = 0x7fffffff;  // blocks along x
struct LaunchConfig {
    unsigned blocks = 1, threads = 1;  // along x; threads of a block
    std::size_t shared_bytes = 0;      // dynamic; above 48 KB too
    // Of any launch of the kernel, where not always as many: the limit is the process's, and each
    // thread would lower what another has just asked for.
    std::size_t most_shared_bytes = 0;
    StreamView stream = {};
    int cluster = 1;  // blocks along x that form a cluster (cc 9.0); divides `blocks`
    // The kernel may start while its predecessor in the stream still runs: each thread that touches
    // global memory must call wait_for_predecessor() first, and one of the grid in any case.
    // Without effect where device or driver cannot.
    bool overlaps_predecessor = false;
    // Blocks wait for each other: none begins before there is room for all (a cooperative launch).
    // They must do the same work in a smaller grid, which the launch takes where the stream has
    // fewer SMs than the device (green contexts).
    bool all_at_once = false;
};
// Launches `kernel`, a __global__ function, on the current device; `values` are the addresses of
// its arguments. Throws CudaError that calls it `name`, and says so where an earlier kernel
// faulted. What other calls have left behind (cudaGetLastError) neither matters nor changes.
void launch(const char* name, const void* kernel, const LaunchConfig& config, void** values);

}  // namespace tcgemm::runtime
