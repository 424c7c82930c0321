// Elements that the tensor cores take with contiguous k only.
#include "kernels/sm90_wgmma/layout.cuh"

namespace tcgemm::sm90_wgmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, k)
TCGEMM_SM90_WGMMA_E5M2_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm90_wgmma
