// A is K-major, B is N-major.
#include "kernels/sm80_mma/layout.cuh"

namespace tcgemm::sm80_mma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, mn)
TCGEMM_SM80_MMA_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm80_mma
