#include "array_view.hpp"

#include <algorithm>

#include "tcgemm/error.hpp"

namespace tcgemm::python {

using std::int64_t;

int64_t ArrayView::element_count() const {
    int64_t count = 1;
    for (int dim = 0; dim < ndim; ++dim) {
        if (shape[dim] == 0) return 0;
    }
    for (int dim = 0; dim < ndim; ++dim) {
        if (__builtin_mul_overflow(count, shape[dim], &count)) {
            throw ShapeError("an array of shape " + text(ndim, shape) +
                             " has more elements than 64 bits can count");
        }
    }
    return count;
}

int ArrayView::alignment() const {
    constexpr std::uintptr_t kMost = 16;
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    if (address == 0) return kMost;
    return static_cast<int>(std::min(kMost, address & (~address + 1)));
}

ArrayView packed(DType dtype, int ndim, const Dims& shape, Device device) {
    ArrayView view;
    view.dtype = dtype;
    view.ndim = ndim;
    view.shape = shape;
    view.device = device;
    int64_t stride = 1;
    for (int dim = ndim - 1; dim >= 0; --dim) {
        view.stride[dim] = stride;
        if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[dim], 1), &stride)) {
            throw ShapeError("an array of shape " + text(ndim, shape) +
                             " has more elements than 64 bits can count");
        }
    }
    return view;
}

void normalise_strides(ArrayView& view) {
    int64_t stride = 1;
    for (int dim = view.ndim - 1; dim >= 0; --dim) {
        if (view.shape[dim] == 1) view.stride[dim] = stride;
        if (__builtin_mul_overflow(view.stride[dim], std::max<int64_t>(view.shape[dim], 1),
                                   &stride)) {
            stride = 1;  // such an array can't exist; the problem's own checks name it
        }
    }
}

namespace {

Axes axes(const ArrayView& view) {
    Axes axes;
    for (int dim = view.ndim - 1; dim >= 0; --dim) axes.add(view.shape[dim], view.stride[dim]);
    return axes;
}

}  // namespace

Footprint footprint(const ArrayView& view) {
    if (view.element_count() == 0) return {};
    if (const auto found = tcgemm::footprint(axes(view), size_of(view.dtype))) return *found;
    throw ShapeError("an array of shape " + text(view.ndim, view.shape) + " and strides " +
                     text(view.ndim, view.stride) +
                     " spans more than 2^62 bytes, and no memory does; correct its strides");
}

bool may_overlap_itself(const ArrayView& view) {
    const Footprint span = footprint(view);
    return span.low != span.high && find_self_overlap(axes(view));
}

bool same_layout(const ArrayView& x, const ArrayView& y) {
    return x.dtype == y.dtype && x.device == y.device && x.ndim == y.ndim &&
           std::equal(x.shape.begin(), x.shape.begin() + x.ndim, y.shape.begin()) &&
           std::equal(x.stride.begin(), x.stride.begin() + x.ndim, y.stride.begin());
}

bool same_elements(const ArrayView& x, const ArrayView& y) {
    return x.data == y.data && same_layout(x, y);
}

std::string text(int ndim, const Dims& dims) {
    std::string result = "(";
    for (int dim = 0; dim < ndim; ++dim) {
        result += (dim > 0 ? ", " : "") + std::to_string(dims[dim]);
    }
    return result + (ndim == 1 ? ",)" : ")");
}

std::string text(Device device) {
    return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(device.ordinal);
}

}  // namespace tcgemm::python
