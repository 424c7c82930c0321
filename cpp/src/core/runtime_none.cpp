// Stands in for runtime_cuda.cpp where the library is built without CUDA.
#include "core/runtime.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::runtime {
namespace {

[[noreturn]] void no_cuda() {
    throw DeviceError(
        "this build of tcgemm has no GPU kernels (TCGEMM_CUDA=OFF); install the CUDA build to use "
        "a GPU");
}

}  // namespace

int device_count(std::string* reason, bool*) noexcept {
    if (reason) *reason = "this build of tcgemm has no GPU kernels (TCGEMM_CUDA=OFF)";
    return 0;
}
DeviceProperties device_properties(int) { no_cuda(); }
int current_device() { no_cuda(); }
int device_of_address(const void*) { no_cuda(); }
void enter_device(int) { no_cuda(); }
void leave_device(int) noexcept {}
void* allocate_async(std::size_t, int, StreamHandle) { no_cuda(); }
void free_async(void*, int, StreamHandle) noexcept {}
void trim_pool(int) { no_cuda(); }
void copy_async(void*, const void*, std::size_t, StreamHandle) { no_cuda(); }
void clear_async(void*, std::size_t, StreamHandle) { no_cuda(); }
StreamHandle create_stream() { no_cuda(); }
void destroy_stream(StreamHandle) noexcept {}
void synchronize_stream(StreamHandle) { no_cuda(); }
bool is_capturing(StreamHandle) { no_cuda(); }
void share_with_graph(StreamHandle, void*, void (*)(void*)) { no_cuda(); }
EventHandle create_event(bool) { no_cuda(); }
void destroy_event(EventHandle) noexcept {}
void record_event(EventHandle, StreamHandle) { no_cuda(); }
void synchronize_event(EventHandle) { no_cuda(); }
void wait_event(StreamHandle, EventHandle) { no_cuda(); }
float elapsed_ms(EventHandle, EventHandle) { no_cuda(); }

}  // namespace tcgemm::runtime
