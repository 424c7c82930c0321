// How the kernel for few rows and a short K loads B.
#pragma once

#include <cstdint>

namespace tcgemm::simt {

// In vectors of neighbours along n, or one by one, whatever the strides.
enum class LoadsOfB { vectors, elements };

// `vector`: columns; none ends behind B. `alignment`: of its address, bytes.
template <class View>
LoadsOfB loads_of_b(const View& b, std::int64_t n, std::int64_t k, int element_bytes, int vector,
                    std::int64_t alignment, int batch_rank) {
    bool whole = b.col_stride == 1 && alignment % (vector * element_bytes) == 0 &&
                 n % vector == 0 && (k == 1 || b.row_stride % vector == 0);
    for (int dim = 0; dim < batch_rank; ++dim) whole = whole && b.batch_stride[dim] % vector == 0;
    return whole ? LoadsOfB::vectors : LoadsOfB::elements;
}

}  // namespace tcgemm::simt
