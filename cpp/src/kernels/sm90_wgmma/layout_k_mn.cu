// A is K-major, B is N-major.
#include "kernels/sm90_wgmma/layout.cuh"

namespace tcgemm::sm90_wgmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, k, mn)
TCGEMM_SM90_WGMMA_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm90_wgmma
