#include "array_view.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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

ByteRange byte_range(const ArrayView& view) {
    const int64_t size = size_of(view.dtype);
    if (view.element_count() == 0) return {};
    ByteRange range{0, size};
    for (int dim = 0; dim < view.ndim; ++dim) {
        int64_t reach = 0;
        int64_t& side = view.stride[dim] < 0 ? range.low : range.high;
        if (__builtin_mul_overflow(view.shape[dim] - 1, view.stride[dim], &reach) ||
            __builtin_mul_overflow(reach, size, &reach) ||
            __builtin_add_overflow(side, reach, &side)) {
            throw ShapeError("an array of shape " + text(view.ndim, view.shape) + " and strides " +
                             text(view.ndim, view.stride) + " spans more than 64 bits can address");
        }
    }
    return range;
}

bool same_layout(const ArrayView& x, const ArrayView& y) {
    return x.dtype == y.dtype && x.device == y.device && x.ndim == y.ndim &&
           std::equal(x.shape.begin(), x.shape.begin() + x.ndim, y.shape.begin()) &&
           std::equal(x.stride.begin(), x.stride.begin() + x.ndim, y.stride.begin());
}

bool same_elements(const ArrayView& x, const ArrayView& y) {
    return x.data == y.data && same_layout(x, y);
}

namespace {

// The array as runs of `width` contiguous bytes that begin at multiples of `pitch` bytes from
// element (0, .., 0); pitch 0: one run.
std::pair<int64_t, int64_t> runs(const ArrayView& view) {
    const int64_t size = size_of(view.dtype);
    int64_t width = size, pitch = 0;
    for (int dim = view.ndim - 1; dim >= 0; --dim) {
        if (view.shape[dim] == 1) continue;
        if (view.stride[dim] * size == width) {
            width *= view.shape[dim];
        } else {
            pitch = std::gcd(pitch, view.stride[dim] * size);
        }
    }
    return {width, pitch};
}

}  // namespace

bool may_share_memory(const ArrayView& x, const ByteRange& x_range, const ArrayView& y,
                      const ByteRange& y_range) {
    const auto is_empty = [](const ByteRange& range) { return range.low == range.high; };
    if (!(x.device == y.device) || is_empty(x_range) || is_empty(y_range)) return false;
    const int64_t distance = static_cast<const char*>(y.data) - static_cast<const char*>(x.data);
    if (x_range.high <= distance + y_range.low || distance + y_range.high <= x_range.low) {
        return false;
    }
    const auto [x_width, x_pitch] = runs(x);
    const auto [y_width, y_pitch] = runs(y);
    const int64_t pitch = std::gcd(x_pitch, y_pitch);
    if (pitch == 0) return true;
    // Modulo the pitch, x's runs cover [0, x_width) and y's begin at `phase`.
    const int64_t phase = ((distance % pitch) + pitch) % pitch;
    return phase < x_width || phase + y_width > pitch;
}

bool may_overlap_itself(const ArrayView& view) {
    if (view.element_count() == 0) return false;
    std::array<std::pair<int64_t, int64_t>, kMaxDims> axes;  // |stride|, extent
    int rank = 0;
    for (int dim = 0; dim < view.ndim; ++dim) {
        if (view.shape[dim] > 1) axes[rank++] = {std::abs(view.stride[dim]), view.shape[dim]};
    }
    std::sort(axes.begin(), axes.begin() + rank);
    int64_t reach = 0;  // the largest offset that the axes so far can make
    for (int i = 0; i < rank; ++i) {
        if (axes[i].first <= reach) return true;
        reach += axes[i].first * (axes[i].second - 1);
    }
    return false;
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
