#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Large<F64>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Medium<F64>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Small<F64>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
