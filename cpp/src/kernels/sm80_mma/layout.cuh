// Instantiates rows of the table for one pair of layouts; layout_*.cu and k_major.cu are one line
// each, so that the build runs in parallel.
#pragma once

#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/sm80_mma/gemm_kernel.cuh"
#include "kernels/sm80_mma/launch.hpp"
#include "kernels/sm80_mma/rows.hpp"
#include "kernels/tile_launch.cuh"

namespace tcgemm::sm80_mma {

template <class Row, Major A, Major B>
void launch_layout(const GemmArgs& args, const device::TileScheduler& scheduler,
                   const KRange& split, StreamView stream) {
    using P = Policy<Row, A, B>;
    static_assert(Shape<P>::kRingBytes == Row::ring_bytes);
    const auto launch = [&](const auto& epilogue) {
        using Epilogue = std::decay_t<decltype(epilogue)>;
        launch_blocks<Row>(gemm_kernel<P, Epilogue>, Row::shared_bytes, args, epilogue, scheduler,
                           split, stream, Row::overlaps);
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
        const GemmArgs&, const device::TileScheduler&, const KRange&, StreamView);

}  // namespace tcgemm::sm80_mma
