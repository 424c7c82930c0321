// A and B are K-major, in elements that have no other layout.
#include "kernels/sm70_wmma/layout.cuh"

namespace tcgemm::sm70_wmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, k)
TCGEMM_SM70_WMMA_K_MAJOR_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm70_wmma
