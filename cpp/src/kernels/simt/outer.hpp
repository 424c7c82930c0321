// What the kernel of a short K and many rows and columns is compiled for: a sum of few outer
// products, whose time is that of storing D.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/simt/outer_tiles.hpp"
#include "kernels/simt/policy.hpp"

namespace tcgemm::simt {

// A thread computes kThreadRows rows, kWarps apart, of kGroups columns, 32 apart.
template <class Numbers_>
struct Outer {
    using Numbers = Numbers_;
    using Acc = typename Numbers::Acc;
    static constexpr int kThreadRows = 8, kGroups = 16 / sizeof(Acc), kWarps = 8;
    static constexpr int kRows = kWarps * kThreadRows, kCols = 32 * kGroups;
    static constexpr int kThreads = 32 * kWarps, kBlocksPerSm = 2;
    static constexpr int kBlockK = 32;  // the most; all of it is in shared memory at once
    static constexpr int kRoundK = 16;  // that are loaded together
    static constexpr int kVector = 16 / sizeof(Acc);  // values of k of A that are read together
    static constexpr const char* name = "simt outer_kernel";  // in errors
    static constexpr TileConfig tile{kRows, kCols, kBlockK, kThreadRows, kCols, kThreads};
    static constexpr OuterTile kTile = {kRows, kCols, kVector, sizeof(Acc), kBlocksPerSm, kBlockK};
};

template <class Policy>
TCGEMM_HOST_DEVICE int outer_column_step(const GemmArgs& args) {
    if (args.d.col_stride != 1) return 1;
    std::int64_t distances = args.d.row_stride;
    for (int dim = 0; dim < args.batch.rank; ++dim) distances |= args.d.batch_stride[dim];
    const std::int64_t places = reinterpret_cast<std::intptr_t>(args.d.data) |
                                distances * static_cast<int>(sizeof(typename Policy::Acc));
    constexpr OuterTile kTile = Policy::kTile;
    return outer_column_step(kTile, places, args.m, args.n, args.batch.count);
}

// Defined in outer_launch.cuh, instantiated in outer.cu.
template <class Policy>
void launch_outer(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::simt
