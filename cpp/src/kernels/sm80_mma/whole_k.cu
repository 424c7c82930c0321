#include "kernels/sm80_mma/whole_k_mma.cuh"
#include "kernels/whole_k/launch.cuh"

namespace tcgemm::whole_k {

#define TCGEMM_LAUNCH(Number, Accumulator, tile)                          \
    template void launch<sm80_mma::WholeKMma<Number, Accumulator, tile>>( \
        const GemmArgs&, const Schedule&, StreamView);
TCGEMM_LAUNCH(__half, float, 16)
TCGEMM_LAUNCH(__half, float, 32)
TCGEMM_LAUNCH(__nv_bfloat16, float, 16)
TCGEMM_LAUNCH(__nv_bfloat16, float, 32)
TCGEMM_LAUNCH(device::Tf32, float, 16)
TCGEMM_LAUNCH(device::Tf32, float, 32)
TCGEMM_LAUNCH(double, double, 16)
TCGEMM_LAUNCH(double, double, 32)
TCGEMM_LAUNCH(std::int8_t, std::int32_t, 16)
TCGEMM_LAUNCH(std::int8_t, std::int32_t, 32)
#undef TCGEMM_LAUNCH

}  // namespace tcgemm::whole_k
