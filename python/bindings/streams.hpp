// Streams as Python passes them, the library's own streams, and the guard against use after fork.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

#include "tcgemm/device.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::python {

// DLPack and CUDA have two names for the legacy default stream: 0 and 1. Here it is always null.
StreamHandle stream_from_integer(std::uintptr_t value);
// The integer that DLPack's __dlpack__(stream=) takes for it.
std::intptr_t dlpack_stream(StreamHandle stream);

// An int, or an object with __cuda_stream__, or torch's or CuPy's stream. Throws InvalidArgument
// for anything else, DeviceError for a stream of another device than `device`.
StreamHandle stream_from_python(pybind11::handle stream, Device device);

// `later` goes on after what `earlier` holds now. The current device is the one of both.
void order(StreamView earlier, StreamView later, Device device);

// A stream of a device that lives as long as the process: for memory that outlives its maker.
StreamView service_stream(Device device);

// A stream that nobody else uses meanwhile, from a pool; back in it, with its work done, at the
// end.
class BorrowedStream {
   public:
    explicit BorrowedStream(Device device);
    ~BorrowedStream();
    BorrowedStream(const BorrowedStream&) = delete;
    BorrowedStream& operator=(const BorrowedStream&) = delete;
    StreamView view() const { return stream_.view(); }

   private:
    Stream stream_;
};

// CUDA does not survive a fork. Throws DeviceError in a child of a process that used it before;
// takes note that this process uses it from now on, where there is a GPU.
void about_to_use_cuda();

}  // namespace tcgemm::python
