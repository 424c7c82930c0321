// What the kernel for few rows and a short K is compiled for: one whose time is that of reading B
// and writing D.
#pragma once

#include <cstdint>

#include "kernels/kernel_info.hpp"
#include "kernels/simt/policy.hpp"

namespace tcgemm::simt {

inline constexpr int kMaxShortK = 256;  // more is shared out by others, or wants tensor cores

// How B comes to registers: vectors along n (neighbours in D), along k, or one by one, whatever the
// strides are.
enum class LoadsOfB { vectors_along_n, vectors_along_k, elements };

// A thread computes kRows rows of some columns, all of their K, out of registers.
template <class Numbers_>
struct ShortK {
    using Numbers = Numbers_;
    using Element = typename Numbers::Element;
    using Acc = typename Numbers::Acc;
    static constexpr int kRows = 8, kThreads = 128;
    static constexpr int kBlockK = 64;  // of A in shared memory
    static constexpr int kVector = 16 / static_cast<int>(sizeof(Element));
    // Of a thread.
    static constexpr int cols(LoadsOfB loads) {
        return loads == LoadsOfB::vectors_along_n ? kVector : kVector < 4 ? kVector : 4;
    }
    static constexpr int block_cols(LoadsOfB loads) { return kThreads * cols(loads); }
    static constexpr int blocks_per_sm(LoadsOfB loads) {  // by registers
        return loads == LoadsOfB::elements ? 4 : 3;
    }
    static constexpr const char* name = "simt short_k_kernel";  // in errors
    static constexpr int kCols = cols(LoadsOfB::elements);
    static constexpr TileConfig tile{kRows, kThreads * kCols, kBlockK, kRows, 32 * kCols, kThreads};
};

// `alignment`: of its address, bytes. Vectors do not end behind B.
template <class View>
LoadsOfB loads_of_b(const View& b, std::int64_t n, std::int64_t k, int element_bytes,
                    std::int64_t alignment, int batch_rank) {
    const std::int64_t vector = 16 / element_bytes;
    const auto whole = [&](std::int64_t stride) { return stride % vector == 0; };
    bool aligned = alignment % 16 == 0;
    for (int dim = 0; dim < batch_rank; ++dim) aligned = aligned && whole(b.batch_stride[dim]);
    if (aligned && b.col_stride == 1 && whole(n) && (k == 1 || whole(b.row_stride))) {
        return LoadsOfB::vectors_along_n;
    }
    if (aligned && b.row_stride == 1 && whole(k) && (n == 1 || whole(b.col_stride))) {
        return LoadsOfB::vectors_along_k;
    }
    return LoadsOfB::elements;
}

// Defined in short_k_launch.cuh, instantiated in short_k.cu.
template <class Policy>
void launch_short_k(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::simt
