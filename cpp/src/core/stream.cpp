#include "tcgemm/stream.hpp"

#include <atomic>
#include <utility>

#include "core/graph_objects.hpp"
#include "core/runtime.hpp"

namespace tcgemm {
namespace {

// What a graph shares. CUDA says that the graph is gone in a callback, which may call nothing of
// CUDA, so that objects wait in a list for a thread that may.
struct GraphObject {
    std::shared_ptr<void> object;
    GraphObject* next = nullptr;
};
std::atomic<GraphObject*> unneeded{nullptr};

void graph_is_gone(void* its) noexcept {
    auto* const node = static_cast<GraphObject*>(its);
    node->next = unneeded.load(std::memory_order_relaxed);
    while (!unneeded.compare_exchange_weak(node->next, node, std::memory_order_release,
                                           std::memory_order_relaxed)) {
    }
}

// What the runtime is asked while no device is current makes a context on device 0.
template <class Work>
void on_its_device(Device device, const Work& work) noexcept {
    try {
        const DeviceGuard guard(device);
        work();
    } catch (...) {  // at the program's end: the driver is gone, and all with it
    }
}

}  // namespace

void release_graph_objects() noexcept {
    if (unneeded.load(std::memory_order_relaxed) == nullptr) return;
    GraphObject* node = unneeded.exchange(nullptr, std::memory_order_acquire);
    while (node != nullptr) delete std::exchange(node, node->next);
}

void StreamView::share_with_graph(std::shared_ptr<void> object) const {
    auto node = std::make_unique<GraphObject>();
    node->object = std::move(object);
    runtime::share_with_graph(handle_, node.get(), graph_is_gone);
    (void)node.release();  // the graph's now
}

void StreamView::synchronize() const { runtime::synchronize_stream(handle_); }
bool StreamView::is_capturing() const { return runtime::is_capturing(handle_); }

Stream::Stream(Device device) : device_(runtime::usable_gpu(device)) {
    const DeviceGuard guard(device);
    handle_ = runtime::create_stream();
}

Stream::~Stream() {
    if (handle_) on_its_device(device_, [&] { runtime::destroy_stream(handle_); });
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
}

Event::Event(Device device, bool timing) : device_(runtime::usable_gpu(device)) {
    const DeviceGuard guard(device);
    handle_ = runtime::create_event(timing);
}

Event::~Event() {
    if (handle_) on_its_device(device_, [&] { runtime::destroy_event(handle_); });
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
}

void Event::record(StreamView stream) {
    const DeviceGuard guard(device_);
    runtime::record_event(handle_, stream.get());
}
void Event::synchronize() const {
    const DeviceGuard guard(device_);
    runtime::synchronize_event(handle_);
}
void Event::wait_on(StreamView stream) const {
    const DeviceGuard guard(device_);
    runtime::wait_event(stream.get(), handle_);
}
float Event::milliseconds_since(const Event& start) const {
    const DeviceGuard guard(device_);
    return runtime::elapsed_ms(start.handle_, handle_);
}

}  // namespace tcgemm
