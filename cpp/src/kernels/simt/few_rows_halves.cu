#include "kernels/simt/few_rows_launch.cuh"

namespace tcgemm::simt {

template void launch_few_rows<FewRows<F16, 1>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_few_rows<FewRows<F16, 8>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_few_rows<FewRows<BF16, 1>>(const GemmArgs&, const Schedule&, StreamView);
template void launch_few_rows<FewRows<BF16, 8>>(const GemmArgs&, const Schedule&, StreamView);

}  // namespace tcgemm::simt
