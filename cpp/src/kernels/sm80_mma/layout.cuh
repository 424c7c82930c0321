// Instantiates rows of the table for one pair of layouts; layout_*.cu and k_major.cu are one line
// each, so that the build runs in parallel.
#pragma once

#include <algorithm>

#include "kernels/device/launch.cuh"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/sm80_mma/gemm_kernel.cuh"
#include "kernels/sm80_mma/launch.hpp"
#include "kernels/sm80_mma/rows.hpp"

namespace tcgemm::sm80_mma {

template <class Row, Major A, Major B>
void launch_layout(const GemmArgs& args, const device::TileScheduler& scheduler,
                   const KSplit& split, StreamView stream) {
    using P = Policy<Row, A, B>;
    static_assert(kSharedBytes<P> <= Row::shared_bytes);
    const auto launch = [&](const auto& epilogue) {
        using Epilogue = std::decay_t<decltype(epilogue)>;
        constexpr std::int64_t kMaxGrid = 0x7fffffff;
        for (std::int64_t tile = 0; tile < scheduler.count(); tile += kMaxGrid) {
            device::LaunchConfig config;
            config.grid = dim3(static_cast<unsigned>(std::min(scheduler.count() - tile, kMaxGrid)));
            config.threads = Row::tile.threads;
            config.shared_bytes = kSharedBytes<P>;
            config.stream = stream;
            device::launch(Row::name, gemm_kernel<P, Epilogue>, config, args, epilogue, scheduler,
                           split, tile);
        }
    };
    if constexpr (Row::scales && Row::linear) {
        if (args.scales != nullptr) return launch(epilogue::Scaled(args));
    }
    if constexpr (Row::linear) {
        launch(epilogue::Linear<typename Shape<P>::Sum>(args));
    } else {
        launch(epilogue::Scaled(args));  // by nothing
    }
}

#define TCGEMM_INSTANTIATE_ROW(id, A, B)                 \
    template void launch_layout<id, Major::A, Major::B>( \
        const GemmArgs&, const device::TileScheduler&, const KSplit&, StreamView);

}  // namespace tcgemm::sm80_mma
