#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Large<BF16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Small<BF16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Medium<Promoted<BF16>>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
