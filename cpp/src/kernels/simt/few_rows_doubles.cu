#include "kernels/simt/few_rows_launch.cuh"

namespace tcgemm::simt {

template void launch_few_rows<FewRows<F64, 1>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_few_rows<FewRows<F64, 8>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
