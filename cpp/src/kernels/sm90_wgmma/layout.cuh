// Instantiates every row of the table for one pair of layouts; layout_*.cu are one line each, so
// that the build runs in parallel.
#pragma once

#include "kernels/device/launch.cuh"
#include "kernels/sm90_wgmma/gemm_kernel.cuh"
#include "kernels/sm90_wgmma/launch.hpp"
#include "kernels/sm90_wgmma/rows.hpp"

namespace tcgemm::sm90_wgmma {

template <class Row, Major A, Major B>
void launch_layout(const Params& params, unsigned blocks, StreamView stream) {
    using P = Policy<Row, A, B>;
    constexpr int kBytes = SharedMemory<P>::kBytes;
    static_assert(P::kBlocksPerSm * (kBytes + 1024) <= 228 << 10, "an SM of sm_90 has no more");
    device::LaunchConfig config;
    config.grid = dim3(blocks);
    config.threads = P::kThreads;
    config.shared_bytes = kBytes;
    config.stream = stream;
    config.cluster = params.cluster();
    config.overlaps_predecessor = true;
    device::launch(Row::name, gemm_kernel<P>, config, params);
}

#define TCGEMM_INSTANTIATE_ROW(id, A, B) \
    template void launch_layout<id, Major::A, Major::B>(const Params&, unsigned, StreamView);

}  // namespace tcgemm::sm90_wgmma
