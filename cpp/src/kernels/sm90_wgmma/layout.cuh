// Instantiates rows of the table for a pair of layouts; the files that do so are a few lines each,
// so that the build runs in parallel.
#pragma once

#include "kernels/blocks_on_sm.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/sm90_wgmma/gemm_kernel.cuh"
#include "kernels/sm90_wgmma/launch.hpp"
#include "kernels/sm90_wgmma/rows.hpp"

namespace tcgemm::sm90_wgmma {

template <class Row, Major A, Major B>
void launch_layout(const Params& params, unsigned blocks, StreamView stream) {
    using P = Policy<Row, A, B>;
    using Shared = SharedMemory<P>;
    constexpr auto fit = [](int on_sm) {
        return on_sm * (Shared::bytes(ring_bytes(P::kConsumers, P::kStagings, on_sm)) +
                        kReservedBytes) <=
               228 << 10;
    };
    static_assert(fit(1) && fit(P::kBlocksPerSm), "an SM of sm_90 has no more");
    device::LaunchConfig config;
    config.blocks = blocks;
    config.threads = P::kThreads;
    config.shared_bytes = Shared::bytes(params.ring.bytes);
    if (P::kFitsRing)
        config.most_shared_bytes = Shared::bytes(ring_bytes(P::kConsumers, P::kStagings, 1));
    config.stream = stream;
    config.cluster = params.cluster();
    config.overlaps_predecessor = true;
    config.all_at_once = params.split.shares > 0;
    device::launch(Row::name, gemm_kernel<P>, config, params);
}

#define TCGEMM_INSTANTIATE_ROW(id, A, B) \
    template void launch_layout<id, Major::A, Major::B>(const Params&, unsigned, StreamView);

}  // namespace tcgemm::sm90_wgmma
