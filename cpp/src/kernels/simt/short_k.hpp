// What the kernel for few rows and a short K is compiled for: one whose time is that of reading B
// and writing D.
#pragma once

#include "kernels/kernel_info.hpp"
#include "kernels/simt/policy.hpp"
#include "kernels/simt/short_k_loads.hpp"

namespace tcgemm::simt {

inline constexpr int kMaxShortK = 256;  // more is shared out by others, or wants tensor cores

// A thread computes kRows rows of kCols columns, all of their K, out of registers, and stores them
// as the operands are or as the sums.
template <class Numbers_>
struct ShortK {
    using Numbers = Numbers_;
    using Element = typename Numbers::Element;
    using Acc = typename Numbers::Acc;
    static constexpr int kRows = 8, kCols = sizeof(Element) == 8 ? 2 : 4;
    static constexpr int kThreads = 128, kBlockCols = kThreads * kCols;
    static constexpr int kBlockK = 96;                                 // of A in shared memory
    static constexpr int kBlocksPerSm = sizeof(Element) == 8 ? 4 : 5;  // by registers
    static constexpr int kSteps = 8;  // values of k that are loaded together
    static constexpr const char* name = "simt short_k_kernel";  // in errors
    static constexpr TileConfig tile{kRows, kBlockCols, kBlockK, kRows, 32 * kCols, kThreads};
};

// Defined in short_k_launch.cuh, instantiated in short_k.cu.
template <class Policy>
void launch_short_k(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::simt
