#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Large<I8>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Small<I8>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
