// A is M-major, B is K-major.
#include "kernels/sm90_wgmma/layout.cuh"

namespace tcgemm::sm90_wgmma {
#define TCGEMM_ROW(id, ...) TCGEMM_INSTANTIATE_ROW(id, mn, k)
TCGEMM_SM90_WGMMA_ROWS(TCGEMM_ROW)
}  // namespace tcgemm::sm90_wgmma
