// The part of an operand of 16-bit elements that a tile needs, as ldmatrix reads it: lines that
// begin at vectors of 16 bytes, moved there out of an image, whose lines begin anywhere.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/ptx/shared.cuh"
#include "kernels/sm80_mma/strips.hpp"

namespace tcgemm::sm80_mma {

namespace ptx = device::ptx;

// Where it lies; K is as long as instructions take it, with zeros behind its end.
struct AlignedTile {
    std::uint32_t data;
    bool along_k;
    int pitch;
};

// Moves an image there, by all threads: lanes have four elements of each line.
template <int kThreads>
__device__ __forceinline__ AlignedTile align_image(const AlignedLayout& layout,
                                                   const ImageLayout& from, std::uint32_t image,
                                                   std::uint32_t to, int outer, int k) {
    constexpr int kEach = 4, kBytes = kEach * kStripItem;
    const AlignedTile tile = {to, from.along_k, layout.pitch};
    const int lines = from.along_k ? outer : k;
    const int first = threadIdx.x >> layout.lanes_log2, step = kThreads >> layout.lanes_log2;
    const int lane = threadIdx.x & ((1 << layout.lanes_log2) - 1);
    if (lane >= layout.lanes) return tile;
    // Elements behind a line's end become zeros: of the last step of K they must be.
    const int left = (from.along_k ? k : outer) - lane * kEach;
    const auto mask = [&](int before) {
        return left > before + 1 ? ~0u : left > before ? 0xffffu : 0u;
    };
    const std::uint32_t masks[2] = {mask(0), mask(2)};
    std::uint32_t source = image + first * from.pitch + (left > 0 ? lane * kBytes : 0);
    std::uint32_t target = to + first * layout.pitch + lane * kBytes;
    int line = first;
    const auto move = [&](auto alignment) {
#pragma unroll 2
        for (; line < lines; line += step) {
            uint2 value;
            if constexpr (alignment() == 8) {
                value = ptx::load_shared<uint2>(source);
            } else if constexpr (alignment() == 4) {
                value.x = ptx::load_shared<std::uint32_t>(source);
                value.y = ptx::load_shared<std::uint32_t>(source + 4);
            } else {
                const std::uint32_t word = source & ~3u, shift = 8 * (source & 3);
                const auto low = ptx::load_shared<std::uint32_t>(word);
                const auto middle = ptx::load_shared<std::uint32_t>(word + 4);
                const auto high = ptx::load_shared<std::uint32_t>(word + 8);
                value.x = __funnelshift_r(low, middle, shift);
                value.y = __funnelshift_r(middle, high, shift);
            }
            ptx::store_shared(target, uint2{value.x & masks[0], value.y & masks[1]});
            source += step * from.pitch;
            target += step * layout.pitch;
        }
    };
    if (from.alignment % 8 == 0) {
        move(std::integral_constant<int, 8>());
    } else if (from.alignment % 4 == 0) {
        move(std::integral_constant<int, 4>());
    } else {
        move(std::integral_constant<int, 2>());
    }
    if (!from.along_k) {  // further lines of the last step
        for (; line < layout.lines; line += step, target += step * layout.pitch) {
            ptx::store_shared(target, uint2{0, 0});
        }
    }
    return tile;
}

// Fragments of 16 rows of A, or columns of B, for each 16 of k.
template <bool kIsA>
class AlignedFragments {
   public:
    __device__ AlignedFragments(const AlignedTile& tile, int outer)
        : along_k_(tile.along_k),
          outer_step_(16 * (tile.along_k ? tile.pitch : kStripItem)),
          k_step_(16 * (tile.along_k ? kStripItem : tile.pitch)) {
        // Matrices of 8 x 8 go on along the rows of A first, of B along k.
        const int lane = threadIdx.x % 32, matrix = lane / 8;
        const int far_outer = kIsA ? matrix % 2 : matrix / 2;
        const int far_k = kIsA ? matrix / 2 : matrix % 2;
        const int its_outer = outer + 8 * far_outer, its_k = 8 * far_k;
        const int line = (along_k_ ? its_outer : its_k) + lane % 8;
        place_ = tile.data + line * tile.pitch + (along_k_ ? its_k : its_outer) * kStripItem;
    }

    // `further`: times 16 rows or columns.
    __device__ __forceinline__ void load(int further, std::uint32_t (&fragment)[4]) const {
        const std::uint32_t at = place_ + further * outer_step_;
        if (along_k_) {
            ptx::load_matrices(at, fragment);
        } else {
            ptx::load_matrices_transposed(at, fragment);
        }
    }
    __device__ __forceinline__ void advance() { place_ += k_step_; }

   private:
    bool along_k_;
    int outer_step_, k_step_;
    std::uint32_t place_;
};

}  // namespace tcgemm::sm80_mma
