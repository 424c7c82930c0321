// Host arrays by way of a GPU: copies in and out.
#pragma once

#include "array_view.hpp"
#include "tcgemm/buffer.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::python {

// The layout that the copy of a host array gets on `device`: the same strides where the array fills
// the memory that it spans, packed ones otherwise. There is no memory yet: `data` is the offset of
// element (0, .., 0) from an address aligned to 256 bytes, so that its alignment is that of the
// copy.
ArrayView staged_layout(const ArrayView& host, Device device);

// Device memory for one host array, in the order of a stream.
class StagedArray {
   public:
    StagedArray(const ArrayView& host, Device device, StreamView stream);
    void* data() const { return origin_; }  // of element (0, .., 0)
    void upload();
    void download();  // and waits: afterwards the host array is written

   private:
    ArrayView host_;
    Footprint span_;
    bool as_span_;  // the whole span is copied at once, gaps included
    StreamView stream_;
    DeviceBuffer buffer_;
    void* origin_ = nullptr;
};

}  // namespace tcgemm::python
