#include "kernels/simt/whole_k_fma.cuh"
#include "kernels/simt/whole_k_rows.cuh"
#include "kernels/whole_k/launch.cuh"

namespace tcgemm::whole_k {

template void launch<simt::WholeKFma<16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKFma<32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKRows<simt::F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKRows<simt::F16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKRows<simt::BF16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKRows<simt::F64>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<simt::WholeKRows<simt::I8>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::whole_k
