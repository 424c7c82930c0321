// FP8 with contiguous k.
#include "kernels/sm80_mma/layout.cuh"

namespace tcgemm::sm80_mma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, k)
TCGEMM_SM80_MMA_FP8_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm80_mma
