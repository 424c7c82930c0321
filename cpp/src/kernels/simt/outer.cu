#include "kernels/simt/outer_launch.cuh"

namespace tcgemm::simt {

template void launch_outer<Outer<F32>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_outer<Outer<F64>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
