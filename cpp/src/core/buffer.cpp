#include "tcgemm/buffer.hpp"

#include <utility>

#include "core/graph_objects.hpp"
#include "core/runtime.hpp"

namespace tcgemm {

DeviceBuffer::DeviceBuffer(std::size_t bytes, Device device, StreamView stream)
    : bytes_(bytes), device_(runtime::usable_gpu(device)), stream_(stream) {
    if (bytes == 0) return;
    const DeviceGuard guard(device);
    // Their memory may be of this stream: to free it would become a node of the captured graph,
    // which can only free what it has allocated.
    if (!stream.is_capturing()) release_graph_objects();
    data_ = runtime::allocate_async(bytes, device.ordinal, stream.get());
}

DeviceBuffer::~DeviceBuffer() {
    if (data_) runtime::free_async(data_, device_.ordinal, stream_.get());
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_),
      stream_(other.stream_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
}

void copy_async(void* to, const void* from, std::size_t bytes, StreamView stream) {
    if (bytes > 0) runtime::copy_async(to, from, bytes, stream.get());
}

void release_unused_memory(Device device) {
    release_graph_objects();
    runtime::trim_pool(runtime::usable_gpu(device).ordinal);
}

}  // namespace tcgemm
