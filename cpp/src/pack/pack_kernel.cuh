// The pass of packing: reads an operand of any strides, rounds it and writes it with neighbouring
// elements in vectors. Memory bound: each element is read and written once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "core/runtime.hpp"
#include "kernels/device/vector.cuh"
#include "pack/pack.hpp"

namespace tcgemm::pack {

// To nearest even, once: double goes to the half formats directly, all narrower types through
// float, which holds them exactly.
template <class To, class From>
__device__ __forceinline__ To convert(From value) {
    if constexpr (std::is_same_v<To, From>)
        return value;
    else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, __half>)
        return __double2half(value);
    else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, __nv_bfloat16>)
        return __double2bfloat16(value);
    else if constexpr (std::is_same_v<From, double>)
        return static_cast<To>(value);
    else if constexpr (std::is_same_v<To, __half>)
        return __float2half_rn(static_cast<float>(value));
    else if constexpr (std::is_same_v<To, __nv_bfloat16>)
        return __float2bfloat16_rn(static_cast<float>(value));
    else
        return static_cast<To>(static_cast<float>(value));
}

using device::Vector;

// A matrix as (outer, inner): inner elements are neighbours in the target.
struct PackArgs {
    const void* source;
    void* target;
    std::int64_t outer, inner;
    std::int64_t source_outer_stride, source_inner_stride;
    std::int64_t target_outer_stride;  // a multiple of 16 bytes
    BatchShape batch;
    std::int64_t source_batch_stride[kMaxBatchDims], target_batch_stride[kMaxBatchDims];
    std::int64_t tiles_inner, tiles;  // of one batch
    bool along_outer;   // neighbouring threads read neighbouring outer: the pass transposes
    bool vectorized;    // the source's inner elements can be read in vectors
    std::int64_t step;  // in the source, between a thread's elements where it reads no vectors
};

inline constexpr int kThreads = 256;

// A block's tile and the widest accesses. What fills the memory's latency is the number of bytes
// that an SM has in flight: narrow elements take larger tiles, and registers are limited so that
// enough blocks share an SM.
template <class From, class To>
struct PackTile {
    static constexpr int kInner = 128;
    static constexpr int kOuter = sizeof(From) <= 2 && sizeof(To) <= 4 ? 64 : 32;
    static constexpr int kBlocksPerSm = sizeof(From) == 1 || sizeof(From) == 8 ? 3 : 4;
    static constexpr int kElements = kOuter * kInner / kThreads;  // a thread
    static constexpr int kInFlight = sizeof(From) == 8 ? 8 : 16;  // where they are read singly
    static constexpr int kReadVector = 16 / sizeof(From);
    static constexpr int kWriteVector = 16 / sizeof(To);
    // Padded: rows stay aligned, and columns spread over the banks of shared memory.
    static constexpr int kPitch = kInner + kWriteVector;
};

// Where a tile lies, and how much of it is inside the matrix.
struct TilePlace {
    std::int64_t batch, outer0, inner0;
    int outer_left, inner_left;
};

template <class Tile>
__device__ __forceinline__ TilePlace place_of(const PackArgs& args, std::int64_t index) {
    TilePlace place;
    place.batch = args.batch.count == 1 ? 0 : index / args.tiles;
    const std::int64_t in_batch = index - place.batch * args.tiles;
    const std::int64_t tile_outer = in_batch / args.tiles_inner;
    place.outer0 = tile_outer * Tile::kOuter;
    place.inner0 = (in_batch - tile_outer * args.tiles_inner) * Tile::kInner;
    place.outer_left = static_cast<int>(min(args.outer - place.outer0, std::int64_t{Tile::kOuter}));
    place.inner_left = static_cast<int>(min(args.inner - place.inner0, std::int64_t{Tile::kInner}));
    return place;
}

// Reads a tile and rounds it into shared memory. Many reads of a thread are in flight before the
// first one is used.
template <class From, class To, class Tile>
__device__ __forceinline__ void read_tile(const PackArgs& args, const TilePlace& place,
                                          To (*tile)[Tile::kPitch]) {
    const From* source = static_cast<const From*>(args.source) +
                         batch_offset(args.batch, args.source_batch_stride, place.batch) +
                         place.outer0 * args.source_outer_stride +
                         place.inner0 * args.source_inner_stride;
    const int thread = threadIdx.x;
    if (args.vectorized) {
        using ReadVector = Vector<From, Tile::kReadVector>;
        constexpr int kAcross = Tile::kInner / Tile::kReadVector, kStep = kThreads / kAcross;
        constexpr int kReads = Tile::kOuter / kStep;
        const int outer = thread / kAcross, inner = thread % kAcross * Tile::kReadVector;
        const From* from = source + outer * args.source_outer_stride + inner;
        if (inner + Tile::kReadVector <= place.inner_left) {
            ReadVector value[kReads];
#pragma unroll
            for (int i = 0; i < kReads; ++i, from += kStep * args.source_outer_stride) {
                if (outer + i * kStep < place.outer_left) {
                    value[i] = *reinterpret_cast<const ReadVector*>(from);
                }
            }
#pragma unroll
            for (int i = 0; i < kReads; ++i) {
                Vector<To, Tile::kReadVector> rounded;
#pragma unroll
                for (int j = 0; j < Tile::kReadVector; ++j) {
                    rounded.element[j] = convert<To>(value[i].element[j]);
                }
                *reinterpret_cast<Vector<To, Tile::kReadVector>*>(&tile[outer + i * kStep][inner]) =
                    rounded;
            }
        } else {  // at the end of the rows
            const int left = place.inner_left - inner;
#pragma unroll 1
            for (int row = outer; row < place.outer_left; row += kStep) {
#pragma unroll 1
                for (int j = 0; j < Tile::kReadVector; ++j) {
                    tile[row][inner + j] = convert<To>(j < left ? from[j] : From(0));
                }
                from += kStep * args.source_outer_stride;
            }
        }
    } else {
        // The thread's elements lie in one row or one column of the tile, `step` apart.
        const int outer = args.along_outer ? thread % Tile::kOuter : thread / Tile::kInner;
        const int inner = args.along_outer ? thread / Tile::kOuter : thread % Tile::kInner;
        const int step = kThreads / (args.along_outer ? Tile::kOuter : Tile::kInner);
        const int left = args.along_outer ? place.inner_left - inner : place.outer_left - outer;
        const bool any = outer < place.outer_left && inner < place.inner_left;
        int count = any ? (left + step - 1) / step : 0;  // of them inside the matrix
        const From* from =
            source + outer * args.source_outer_stride + inner * args.source_inner_stride;
        To* to = &tile[outer][inner];
        const int to_step = args.along_outer ? step : step * Tile::kPitch;
#pragma unroll 1
        for (int first = 0; first < Tile::kElements; first += Tile::kInFlight) {
            From value[Tile::kInFlight];
#pragma unroll
            for (int i = 0; i < Tile::kInFlight; ++i, from += args.step) {
                value[i] = i < count ? *from : From(0);
            }
#pragma unroll
            for (int i = 0; i < Tile::kInFlight; ++i, to += to_step) *to = convert<To>(value[i]);
            count -= Tile::kInFlight;
        }
    }
}

// Writes whole vectors: the padding at the end of a row gets zeros, to the end of the last vector.
template <class To, class Tile>
__device__ __forceinline__ void write_tile(const PackArgs& args, const TilePlace& place,
                                           const To (*tile)[Tile::kPitch]) {
    To* target = static_cast<To*>(args.target) +
                 batch_offset(args.batch, args.target_batch_stride, place.batch) +
                 place.outer0 * args.target_outer_stride + place.inner0;
    constexpr int kAcross = Tile::kInner / Tile::kWriteVector, kStep = kThreads / kAcross;
    const int inner = threadIdx.x % kAcross * Tile::kWriteVector;
    if (inner >= place.inner_left) return;
#pragma unroll
    for (int row = 0; row < Tile::kOuter; row += kStep) {
        const int outer = row + threadIdx.x / kAcross;
        if (outer < place.outer_left) {
            *reinterpret_cast<uint4*>(target + outer * args.target_outer_stride + inner) =
                *reinterpret_cast<const uint4*>(&tile[outer][inner]);
        }
    }
}

// Through a tile in shared memory, so that both the reads and the writes of a warp are neighbours,
// whatever the strides and the alignment of the source.
template <class From, class To>
__global__ void __launch_bounds__(kThreads, PackTile<From, To>::kBlocksPerSm)
    pack_kernel(const __grid_constant__ PackArgs args) {
    using Tile = PackTile<From, To>;
    __shared__ alignas(16) To tile[Tile::kOuter][Tile::kPitch];
    const std::int64_t tiles = args.tiles * args.batch.count;
    for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
        read_tile<From, To, Tile>(args, place_of<Tile>(args, index), tile);
        __syncthreads();
        // Where the tile lies is computed again: kept, it would cost registers.
        asm volatile("" : "+l"(index));
        write_tile<To, Tile>(args, place_of<Tile>(args, index), tile);
        __syncthreads();
    }
}

template <class From, class To>
void launch_pack(PackArgs args, StreamView stream) {
    using Tile = PackTile<From, To>;
    const auto tiles = [](std::int64_t extent, int tile) { return (extent + tile - 1) / tile; };
    args.tiles_inner = tiles(args.inner, Tile::kInner);
    args.tiles = args.tiles_inner * tiles(args.outer, Tile::kOuter);
    args.along_outer = std::abs(args.source_outer_stride) < std::abs(args.source_inner_stride);
    args.vectorized =
        args.source_inner_stride == 1 && args.source_outer_stride % Tile::kReadVector == 0 &&
        reinterpret_cast<std::uintptr_t>(args.source) % alignof(Vector<From, Tile::kReadVector>) ==
            0;
    for (int dim = 0; dim < args.batch.rank; ++dim) {
        args.vectorized = args.vectorized && args.source_batch_stride[dim] % Tile::kReadVector == 0;
    }
    args.step = args.along_outer ? kThreads / Tile::kOuter * args.source_inner_stride
                                 : kThreads / Tile::kInner * args.source_outer_stride;
    constexpr std::int64_t kMaxGrid = (std::int64_t{1} << 31) - 1;
    const std::int64_t blocks = std::min(args.tiles * args.batch.count, kMaxGrid);
    if (blocks == 0) return;
    pack_kernel<From, To><<<static_cast<unsigned>(blocks), kThreads, 0, stream.get()>>>(args);
    runtime::check_launch("pack");
}

}  // namespace tcgemm::pack
