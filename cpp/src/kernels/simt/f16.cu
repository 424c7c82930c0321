#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Large<F16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Small<F16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Medium<Promoted<F16>>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
