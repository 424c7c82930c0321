#include "kernels/simt/short_k_launch.cuh"

namespace tcgemm::simt {

template void launch_short_k<ShortK<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_short_k<ShortK<F16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_short_k<ShortK<BF16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_short_k<ShortK<F64>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
