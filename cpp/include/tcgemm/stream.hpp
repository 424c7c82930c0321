// CUDA streams and events: owners (Stream, Event) and the view that functions take (StreamView).
// Members that are not noexcept throw CudaError, in a host-only build DeviceError.
#pragma once

#include <memory>

#include "tcgemm/device.hpp"
#include "tcgemm/export.h"

struct CUstream_st;  // what cudaStream_t points to: no CUDA header is needed to use this one
struct CUevent_st;

namespace tcgemm {

using StreamHandle = ::CUstream_st*;
using EventHandle = ::CUevent_st*;

// A stream that somebody else owns, and keeps as long as the view is used. The default, null, is
// CUDA's legacy default stream, of which each device has one: gemm() and Plan::run() take that of
// the product's device, DeviceBuffer and Event that of their own, copy_async() and the members here
// that of the current device.
class StreamView {
   public:
    constexpr StreamView() noexcept = default;
    constexpr StreamView(StreamHandle handle) noexcept : handle_(handle) {}  // NOLINT: a view
    constexpr StreamHandle get() const noexcept { return handle_; }
    TCGEMM_API void synchronize() const;   // waits until the work that it holds is done
    TCGEMM_API bool is_capturing() const;  // into a CUDA graph
    // While the stream is captured: lets the graph, and all that is made of it, share ownership of
    // `object`. What only graphs owned that no longer exist is released by the next allocation of a
    // DeviceBuffer on a stream that is not captured, or by release_unused_memory(). Throws
    // CudaError, also if nothing is captured.
    TCGEMM_API void share_with_graph(std::shared_ptr<void> object) const;

   private:
    StreamHandle handle_ = nullptr;
};

// Owns a stream of one device, which does not wait for the legacy default stream. Move-only.
class TCGEMM_API Stream {
   public:
    // Throws DeviceError for the CPU and for a device that does not exist.
    explicit Stream(Device device);
    ~Stream();
    Stream(Stream&& other) noexcept;
    Stream& operator=(Stream&& other) noexcept;
    StreamView view() const noexcept { return handle_; }
    operator StreamView() const noexcept { return handle_; }
    Device device() const noexcept { return device_; }

   private:
    Device device_;
    StreamHandle handle_ = nullptr;
};

// Owns an event of one device. Move-only.
class TCGEMM_API Event {
   public:
    // `timing`: for milliseconds_since(). Throws DeviceError as Stream does.
    explicit Event(Device device, bool timing = false);
    ~Event();
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;
    Device device() const noexcept { return device_; }
    void record(StreamView stream);         // marks the work that `stream` now holds
    void synchronize() const;               // waits until that is done
    void wait_on(StreamView stream) const;  // lets later work of `stream` wait for it
    // Between two events that were made with timing = true and have happened; otherwise CudaError.
    float milliseconds_since(const Event& start) const;

   private:
    Device device_;
    EventHandle handle_ = nullptr;
};

}  // namespace tcgemm
