// Instantiates rows of the table for one pair of layouts; layout_*.cu and k_major.cu are one line
// each, so that the build runs in parallel.
#pragma once

#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/sm70_wmma/gemm_kernel.cuh"
#include "kernels/sm70_wmma/launch.hpp"
#include "kernels/sm70_wmma/rows.hpp"
#include "kernels/tile_launch.cuh"

namespace tcgemm::sm70_wmma {

template <class Row, Major A, Major B>
void launch_layout(const GemmArgs& args, const device::TileScheduler& scheduler,
                   const KRange& split, StreamView stream) {
    using P = Policy<Row, A, B>;
    constexpr int kShared = sizeof(SharedMemory<P>);
    static_assert(kShared <= 64 * 1024, "Turing has no more for a block");
    const auto launch = [&](const auto& epilogue) {
        using Epilogue = std::decay_t<decltype(epilogue)>;
        launch_blocks<Row>(gemm_kernel<P, Epilogue>, kShared, args, epilogue, scheduler, split,
                           stream);
    };
    if constexpr (Row::scales) {
        if (args.scales != nullptr) return launch(epilogue::Scaled(args));
    }
    launch(epilogue::Linear<typename Shape<P>::Sum>(args));
}

#define TCGEMM_INSTANTIATE_ROW(id, A, B)                 \
    template void launch_layout<id, Major::A, Major::B>( \
        const GemmArgs&, const device::TileScheduler&, const KRange&, StreamView);

}  // namespace tcgemm::sm70_wmma
