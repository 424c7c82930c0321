#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Large<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Wide<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Medium<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Narrow<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Tall<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Small<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<WideSliced<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<SmallSliced<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Medium<Promoted<F32>>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
