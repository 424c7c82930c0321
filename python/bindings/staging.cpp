#include "staging.hpp"

#include <cstring>
#include <memory>

namespace tcgemm::python {
namespace {

using std::int64_t;

// Elements with an address of their own: repeated dimensions (stride 0) count once.
int64_t distinct_elements(const ArrayView& view) {
    int64_t count = 1;
    for (int dim = 0; dim < view.ndim; ++dim) count *= view.stride[dim] == 0 ? 1 : view.shape[dim];
    return count;
}

// Gaps of up to as many bytes as the elements travel along rather than be packed by the CPU.
bool fills_its_span(const ArrayView& view) {
    const Footprint span = footprint(view);
    return span.high - span.low <= 2 * distinct_elements(view) * size_of(view.dtype);
}

// A packed layout in which repeated dimensions stay repeated.
ArrayView packed_like(const ArrayView& view) {
    Dims extent = view.shape;
    for (int dim = 0; dim < view.ndim; ++dim) {
        if (view.stride[dim] == 0) extent[dim] = 1;
    }
    ArrayView result = packed(view.dtype, view.ndim, extent, view.device);
    for (int dim = 0; dim < view.ndim; ++dim) {
        if (view.stride[dim] == 0) result.stride[dim] = 0;
    }
    return result;
}

// The distinct elements alone, as a view of extent 1 where a dimension is repeated.
ArrayView distinct(ArrayView view) {
    for (int dim = 0; dim < view.ndim; ++dim) {
        if (view.stride[dim] == 0 && view.shape[dim] > 1) view.shape[dim] = 1;
    }
    return view;
}

void copy_dimension(const ArrayView& to, const ArrayView& from, int dim, char* out,
                    const char* in) {
    const int64_t size = size_of(to.dtype);
    if (dim == to.ndim) {
        std::memcpy(out, in, size);
        return;
    }
    if (dim == to.ndim - 1 && to.stride[dim] == 1 && from.stride[dim] == 1) {
        std::memcpy(out, in, to.shape[dim] * size);
        return;
    }
    for (int64_t i = 0; i < to.shape[dim]; ++i) {
        copy_dimension(to, from, dim + 1, out + i * to.stride[dim] * size,
                       in + i * from.stride[dim] * size);
    }
}

// Element by element, between host arrays of one shape and dtype.
void copy_elements(const ArrayView& to, const ArrayView& from) {
    if (to.element_count() == 0) return;
    copy_dimension(to, from, 0, static_cast<char*>(to.data), static_cast<const char*>(from.data));
}

}  // namespace

ArrayView staged_layout(const ArrayView& host, Device device) {
    ArrayView layout = fills_its_span(host) ? host : packed_like(host);
    layout.shape = host.shape;
    layout.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(-footprint(layout).low));
    layout.device = device;
    layout.read_only = false;
    return layout;
}

StagedArray::StagedArray(const ArrayView& host, Device device, StreamView stream)
    : host_(host), span_(footprint(host)), as_span_(fills_its_span(host)), stream_(stream) {
    if (host.element_count() == 0) return;
    if (!as_span_) span_ = footprint(packed_like(host));
    buffer_ = DeviceBuffer(span_.high - span_.low, device, stream);
    origin_ = static_cast<char*>(buffer_.data()) - span_.low;
}

void StagedArray::upload() {
    if (host_.element_count() == 0) return;
    if (as_span_) {
        copy_async(buffer_.data(), static_cast<const char*>(host_.data) + span_.low,
                   buffer_.bytes(), stream_);
        return;
    }
    const std::unique_ptr<char[]> packed_memory(new char[buffer_.bytes()]);
    ArrayView packed_view = distinct(packed_like(host_));
    packed_view.data = packed_memory.get();
    copy_elements(packed_view, distinct(host_));
    copy_async(buffer_.data(), packed_memory.get(), buffer_.bytes(), stream_);
    stream_.synchronize();  // before packed_memory goes
}

void StagedArray::download() {
    if (host_.element_count() > 0) {
        const int64_t elements = distinct_elements(host_) * size_of(host_.dtype);
        if (as_span_ && span_.high - span_.low == elements) {
            copy_async(static_cast<char*>(host_.data) + span_.low, buffer_.data(), buffer_.bytes(),
                       stream_);
        } else {  // the gaps belong to somebody else
            const std::unique_ptr<char[]> memory(new char[buffer_.bytes()]);
            copy_async(memory.get(), buffer_.data(), buffer_.bytes(), stream_);
            stream_.synchronize();
            ArrayView copy = as_span_ ? host_ : packed_like(host_);
            copy.data = memory.get() - span_.low;
            copy_elements(host_, copy);
            return;
        }
    }
    stream_.synchronize();
}

}  // namespace tcgemm::python
