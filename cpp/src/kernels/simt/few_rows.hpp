// What the kernel for products of few rows is compiled for: one whose time is that of reading B.
#pragma once

#include "kernels/kernel_info.hpp"
#include "kernels/major.hpp"
#include "kernels/simt/policy.hpp"

namespace tcgemm::simt {

// A block computes kRows rows of a strip of columns, in steps of kBlockK, for which it stages A.
// The elements of B go from memory to registers one by one, so that no alignment is special.
template <class Numbers_, int kRows_>
struct FewRows {
    using Numbers = Numbers_;
    using Element = typename Numbers::Element;
    using Acc = typename Numbers::Acc;
    static constexpr int kRows = kRows_;
    static constexpr int kBlockK = 256;
    static constexpr int kWarps = 8, kThreads = kWarps * 32;
    static constexpr int kBlocksPerSm = sizeof(Element) == 8 ? (kRows == 1 ? 2 : 1)
                                        : kRows == 1         ? 3
                                                             : 2;
    // Elements of B in a set. A thread waits for one set while the next is on its way.
    static constexpr int kLoads = 16;
    static constexpr const char* name = "simt few_rows_kernel";  // in errors
    static constexpr TileConfig tile{kRows, 32, kBlockK, kRows, 4, kThreads};
};

// kBlockK values of k of one block where an SM is full, divided by the blocks on it: with
// neighbours along k, and along n. Microseconds on an H200.
struct StepUs {
    double along_k, along_n;
};
template <class Policy>
constexpr StepUs step_us() {
    const bool one = Policy::kRows == 1;
    switch (sizeof(typename Policy::Element)) {
        case 2: return one ? StepUs{0.41, 0.92} : StepUs{0.78, 1.67};
        case 4: return one ? StepUs{0.44, 0.54} : StepUs{0.88, 0.87};
        default: return one ? StepUs{0.71, 0.91} : StepUs{1.08, 1.16};
    }
}

// Which elements of a set a thread loads, by the direction in which B is contiguous: the lanes of a
// warp lie along it. A block of neighbours along k sums over the lanes at the end, one of
// neighbours along n over the warps.
template <class Policy, Major kMajor>
struct Threads {
    static constexpr int kCols = 4;                        // of a thread
    static constexpr int kSteps = Policy::kLoads / kCols;  // along k, for each of them
    static constexpr int kBlockCols = Policy::kWarps * kCols;
    static constexpr int kStepK = 32, kStepCol = 1;  // from one to the next of them
    static constexpr int kSetK = kSteps * kStepK;
    static constexpr int col(int warp, int, int j) { return warp * kCols + j; }
    static constexpr int k(int, int lane, int step) { return step * kStepK + lane; }
};
template <class Policy>
struct Threads<Policy, Major::mn> {
    // 32 lanes of two bytes are half of what a line holds.
    static constexpr int kCols = sizeof(typename Policy::Element) == 2 ? 2 : 1;
    static constexpr int kSteps = Policy::kLoads / kCols;
    static constexpr int kBlockCols = 32 * kCols;
    static constexpr int kStepK = Policy::kWarps, kStepCol = 32;
    static constexpr int kSetK = kSteps * kStepK;
    static constexpr int col(int, int lane, int j) { return j * kStepCol + lane; }
    static constexpr int k(int warp, int, int step) { return step * kStepK + warp; }
};

// Whether the lanes lie along n: B's rows are contiguous, not its columns.
inline bool lies_along_n(std::int64_t row_stride, std::int64_t col_stride, std::int64_t n) {
    return row_stride != 1 || (col_stride == 1 && n > 1);
}

// Defined in few_rows_launch.cuh, instantiated in the files few_rows_*.cu.
template <class Policy>
void launch_few_rows(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::simt
