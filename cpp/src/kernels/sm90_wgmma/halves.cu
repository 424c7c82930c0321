// float32 operands in halves, packed with contiguous k.
#include "kernels/sm90_wgmma/layout.cuh"

namespace tcgemm::sm90_wgmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, k)
TCGEMM_SM90_WGMMA_HALVES_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm90_wgmma
