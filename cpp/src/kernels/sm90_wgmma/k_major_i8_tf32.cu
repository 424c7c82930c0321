// Elements that the tensor cores take with contiguous k only, but for A out of registers.
#include "kernels/sm90_wgmma/layout.cuh"

namespace tcgemm::sm90_wgmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, k)
TCGEMM_SM90_WGMMA_I8_TF32_ROWS(TCGEMM_ROW)
TCGEMM_SM90_WGMMA_ANY_A_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, mn, k)
TCGEMM_SM90_WGMMA_ANY_A_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm90_wgmma
