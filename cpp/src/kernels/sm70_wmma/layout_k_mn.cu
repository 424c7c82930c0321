// A is K-major, B is N-major.
#include "kernels/sm70_wmma/layout.cuh"

namespace tcgemm::sm70_wmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, mn)
TCGEMM_SM70_WMMA_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm70_wmma
