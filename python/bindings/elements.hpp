// What every protocol says of an array's elements, checked in one place. Messages begin with
// `operand`.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <optional>
#include <string>

#include "array_view.hpp"
#include "frameworks.hpp"

namespace tcgemm::python {

// Sets the view's dtype, or its is_bytes. Throws DTypeError for what no operand has. `flags`: of a
// DLPack tensor.
void set_dtype(ArrayView& view, DLDataType dtype, std::uint64_t flags, const TypeInfo& type,
               const char* operand);
void set_dtype(ArrayView& view, const py::dtype& dtype, const TypeInfo& type, const char* operand);
// The dtype of a name, or nothing.
std::optional<DType> dtype_named(const std::string& name);
// Gives bytes the dtype of FP8 that was named for them. Throws DTypeError where none was, where
// an array tells another dtype than was named, and for dtypes that only other arrays of a product
// have: int32, and in scales all but float32.
void settle_dtype(ArrayView& view, std::optional<DType> named, const TypeInfo& type,
                  const char* operand);

// Throws ShapeError above kMaxDims dimensions.
void check_rank(std::int64_t ndim, const char* operand);
// Once the address is known with its offset. Throws LayoutError where an element straddles its own
// size, or has no memory; an array without elements has no address then.
void settle_address(ArrayView& view, const char* operand);
// Sets the stride of a dimension whose extent is set. Throws LayoutError where `bytes` is no
// multiple of the element's size and the dimension is walked.
void set_stride(ArrayView& view, int dim, std::int64_t bytes, const TypeInfo& type,
                const char* operand);

}  // namespace tcgemm::python
