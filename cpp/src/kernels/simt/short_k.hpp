// What the kernel for few rows and a short K is compiled for: one whose time is that of reading B
// and writing D.
#pragma once

#include <cstdint>

#include "kernels/kernel_info.hpp"
#include "kernels/simt/policy.hpp"

namespace tcgemm::simt {

inline constexpr int kMaxShortK = 256;  // more is shared out by others, or wants tensor cores

// How B comes to registers: in vectors of neighbours along n, or one by one, whatever the strides.
enum class LoadsOfB { vectors, elements };

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

// `vector`: columns; none ends behind B. `alignment`: of its address, bytes.
template <class View>
LoadsOfB loads_of_b(const View& b, std::int64_t n, std::int64_t k, int element_bytes, int vector,
                    std::int64_t alignment, int batch_rank) {
    bool whole = b.col_stride == 1 && alignment % (vector * element_bytes) == 0 &&
                 n % vector == 0 && (k == 1 || b.row_stride % vector == 0);
    for (int dim = 0; dim < batch_rank; ++dim) whole = whole && b.batch_stride[dim] % vector == 0;
    return whole ? LoadsOfB::vectors : LoadsOfB::elements;
}

// Defined in short_k_launch.cuh, instantiated in short_k.cu.
template <class Policy>
void launch_short_k(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::simt
