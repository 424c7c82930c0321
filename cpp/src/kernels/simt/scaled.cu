#include "kernels/simt/launch.cuh"

namespace tcgemm::simt {

template void launch<Medium<Scaled<Promoted<F16>>>>(const GemmArgs&, const Schedule&, StreamView);
template void launch<Medium<Scaled<I8>>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
