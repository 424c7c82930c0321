// What a kernel is compiled for: a row of the table and the layouts of its operands.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/device/f32_halves.hpp"
#include "kernels/device/tile_scheduler.cuh"
#include "kernels/kernel_info.hpp"
#include "kernels/major.hpp"

namespace tcgemm::sm80_mma {

inline constexpr int kFp8Cc = 89;  // from this compute capability on mma.sync multiplies FP8

// float32 operands in halves (kernels/halves.hpp) come as blocks of so many high halves along k
// and as many low ones: one k-block.
inline constexpr int kHalvesBlock = 32;

// float64 that vectors of 16 bytes cannot be loaded from: each element is copied by itself.
struct UnalignedF64 {
    double value;
};

// Shared memory: the ring of stages, later the rows on their way to D; then what a block keeps.
struct Keep {
    std::uint64_t barrier;
    device::Tile tile;  // for the epilogue: in between every register counts
};

// Warps that share the k of each part of a tile: of float64, where a tile has fewer parts than an
// SM has tensor cores, all of which then work on a small product's few tiles.
template <class Accumulator>
constexpr int warps_along_k(int parts) {
    return std::is_same_v<Accumulator, double> && parts < 4 ? 4 / parts : 1;
}

// What a kernel multiplies for an element of a row's.
template <class Element>
struct Multiplied {
    using Type = Element;
};
template <>
struct Multiplied<device::F32Halves> {
    using Type = __half;
};
template <>
struct Multiplied<UnalignedF64> {
    using Type = double;
};

template <class Row, Major A, Major B>
struct Policy {
    static constexpr bool kHalves = Row::halves, kUnaligned = Row::unaligned;
    using ElementA = typename Multiplied<typename Row::ElementA>::Type;
    using ElementB = typename Multiplied<typename Row::ElementB>::Type;
    using Accumulator = typename Row::Accumulator;
    static constexpr TileConfig tile = Row::tile;
    static constexpr int kStages = Row::stages;  // k-blocks in shared memory
    static constexpr int kBlocksPerSm = Row::blocks_per_sm;
    static constexpr int kLeastArch = Row::least_cc * 10;  // as __CUDA_ARCH__
    static constexpr bool kBlockScales = Row::block_scales;
    static constexpr bool kPromoted = Row::promoted;
    static constexpr bool kOverlaps = Row::overlaps;
    static constexpr Major a_major = A, b_major = B;
};

}  // namespace tcgemm::sm80_mma
