#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Large<F16AccF16>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Small<F16AccF16>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
