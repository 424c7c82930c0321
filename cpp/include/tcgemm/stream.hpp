// CUDA streams and events: owners (Stream, Event) and the view that functions take (StreamView).
#pragma once

#include <memory>

#include "tcgemm/device.hpp"
#include "tcgemm/export.h"

struct CUstream_st;  // what cudaStream_t points to: no CUDA header is needed to use this one
struct CUevent_st;

namespace tcgemm {

using StreamHandle = ::CUstream_st*;
using EventHandle = ::CUevent_st*;

// A stream that somebody else owns. The default, null, is CUDA's legacy default stream, of which
// each device has one: gemm() and Plan::run() take that of the product's device, DeviceBuffer and
// Event that of their own, copy_async() and the members here that of the current device.
class StreamView {
   public:
    constexpr StreamView() noexcept = default;
    constexpr StreamView(StreamHandle handle) noexcept : handle_(handle) {}  // NOLINT: a view
    constexpr StreamHandle get() const noexcept { return handle_; }
    TCGEMM_API void synchronize() const;   // throws CudaError
    TCGEMM_API bool is_capturing() const;  // throws CudaError
    // While the stream is captured: the graph and all that is made of it share `object`. What only
    // graphs owned that are gone is released in the next allocation of a DeviceBuffer on a stream
    // that is not captured, or by release_unused_memory(). Throws CudaError, also where nothing is
    // captured.
    TCGEMM_API void share_with_graph(std::shared_ptr<void> object) const;

   private:
    StreamHandle handle_ = nullptr;
};

// A non-blocking stream of one device, destroyed with its owner. Move-only.
class TCGEMM_API Stream {
   public:
    // Throws DeviceError for a device that is not there and for the CPU.
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

// An event of one device, destroyed with its owner. Move-only.
class TCGEMM_API Event {
   public:
    explicit Event(Device device, bool timing = false);  // likewise
    ~Event();
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;
    Device device() const noexcept { return device_; }
    void record(StreamView stream);
    void synchronize() const;
    void wait_on(StreamView stream) const;               // `stream` goes on after this event
    float milliseconds_since(const Event& start) const;  // both made with timing = true

   private:
    Device device_;
    EventHandle handle_ = nullptr;
};

}  // namespace tcgemm
