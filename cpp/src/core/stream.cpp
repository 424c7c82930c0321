#include "tcgemm/stream.hpp"

#include <utility>

#include "core/runtime.hpp"
#include "tcgemm/device.hpp"

namespace tcgemm {

void StreamView::synchronize() const { runtime::synchronize_stream(handle_); }
bool StreamView::is_capturing() const { return runtime::is_capturing(handle_); }

Stream::Stream(int device) : device_(device) {
    const DeviceGuard guard(runtime::usable_device(device));
    handle_ = runtime::create_stream();
}

Stream::~Stream() {
    if (handle_) runtime::destroy_stream(handle_);
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
}

Event::Event(int device, bool timing) : device_(device) {
    const DeviceGuard guard(runtime::usable_device(device));
    handle_ = runtime::create_event(timing);
}

Event::~Event() {
    if (handle_) runtime::destroy_event(handle_);
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
}

void Event::record(StreamView stream) {
    const DeviceGuard guard(Device::cuda(device_));
    runtime::record_event(handle_, stream.get());
}
void Event::synchronize() const { runtime::synchronize_event(handle_); }
void Event::wait_on(StreamView stream) const {
    const DeviceGuard guard(Device::cuda(device_));
    runtime::wait_event(stream.get(), handle_);
}
float Event::milliseconds_since(const Event& start) const {
    return runtime::elapsed_ms(start.handle_, handle_);
}

}  // namespace tcgemm
