// Launches the kernel for few rows and a short K; included by the files that instantiate it.
#pragma once

#include <numeric>

#include "kernels/d_traffic.hpp"
#include "kernels/epilogue/linear.hpp"
#include "kernels/simt/short_k_kernel.cuh"
#include "kernels/tile_launch.cuh"

namespace tcgemm::simt {

template <class Policy, LoadsOfB kLoads>
void launch_short_k_with(const GemmArgs& args, StreamView stream) {
    using Epilogue = epilogue::Linear<typename Policy::Numbers::Result>;
    const std::int64_t tiles_m = divide_up(args.m, Policy::kRows);
    const device::TileScheduler tiles(tiles_m, divide_up(args.n, Policy::kBlockCols),
                                      args.batch.count, walks_along_rows(args) ? 1 : tiles_m);
    launch_blocks<Policy>(short_k_kernel<Policy, kLoads, Epilogue>, 0, args, Epilogue(args), tiles,
                          KRange{}, stream, true);
}

template <class Policy>
void launch_short_k(const GemmArgs& given, const Schedule& schedule, StreamView stream) {
    constexpr int kItem = sizeof(typename Policy::Element);
    const GemmArgs args = schedule.transposed ? turned(given) : given;
    const auto alignment =
        std::gcd(reinterpret_cast<std::intptr_t>(args.b.data), std::intptr_t{16});
    if (loads_of_b(args.b, args.n, args.k, kItem, Policy::kCols, alignment, args.batch.rank) ==
        LoadsOfB::vectors) {
        launch_short_k_with<Policy, LoadsOfB::vectors>(args, stream);
    } else {
        launch_short_k_with<Policy, LoadsOfB::elements>(args, stream);
    }
}

}  // namespace tcgemm::simt
