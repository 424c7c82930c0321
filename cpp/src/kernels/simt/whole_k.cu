#include "kernels/simt/whole_k_fma.cuh"
#include "kernels/whole_k/launch.cuh"

namespace tcgemm::whole_k {

template void launch<simt::WholeKFma<16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKFma<32>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::whole_k
