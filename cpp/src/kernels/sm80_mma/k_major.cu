// A and B are K-major, in elements that have no other layout.
#include "kernels/sm80_mma/layout.cuh"

namespace tcgemm::sm80_mma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, k)
TCGEMM_SM80_MMA_K_MAJOR_ROWS(TCGEMM_ROW)
TCGEMM_SM80_MMA_HALVES_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm80_mma
