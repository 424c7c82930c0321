// A is M-major, B is K-major.
#include "kernels/sm80_mma/layout.cuh"

namespace tcgemm::sm80_mma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, mn, k)
TCGEMM_SM80_MMA_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm80_mma
