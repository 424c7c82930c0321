// An array as every framework describes it: address, dtype, shape, strides. No Python in here.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "problem/footprint.hpp"
#include "tcgemm/device.hpp"
#include "tcgemm/dtype.hpp"
#include "tcgemm/problem.hpp"

namespace tcgemm::python {

inline constexpr int kMaxDims = kMaxBatchDims + 2;
using Dims = std::array<std::int64_t, kMaxDims>;

struct ArrayView {
    void* data = nullptr;  // of element (0, .., 0): every offset is added already
    DType dtype = DType::f32;
    int ndim = 0;
    Dims shape{};
    Dims stride{};  // elements; that of a dimension of extent 1 as in a packed array
    Device device;
    bool read_only = false;
    bool is_bytes = false;  // uint8: elements of a dtype that the array does not tell

    std::int64_t element_count() const;
    std::int64_t bytes() const { return element_count() * size_of(dtype); }
    // The largest power of two, at most 16, that divides the address. 16 for an empty array.
    int alignment() const;
};

// A C-contiguous array without memory.
ArrayView packed(DType dtype, int ndim, const Dims& shape, Device device);
// Gives dimensions of extent 1 the stride of a packed array: their stride is never walked.
void normalise_strides(ArrayView& view);

Footprint footprint(const ArrayView& view);  // throws ShapeError where no memory is so large
// Whether two elements of the array may share an address (a stride of 0, say).
bool may_overlap_itself(const ArrayView& view);

bool same_layout(const ArrayView& x, const ArrayView& y);    // dtype, shape, strides, device
bool same_elements(const ArrayView& x, const ArrayView& y);  // and the address

std::string text(int ndim, const Dims& dims);  // "(3, 4)"
std::string text(Device device);               // "cpu", "cuda:1"

}  // namespace tcgemm::python
