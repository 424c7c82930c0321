// Packing from any strides: through a tile in shared memory, so that both the reads and the writes
// of a warp are as near to each other as the source allows.
#pragma once

#include <cstdint>

#include "kernels/device/ptx/opaque.cuh"
#include "pack/args.hpp"
#include "pack/convert.cuh"

namespace tcgemm::pack {

// A block's tile. Narrow elements take larger tiles: what fills the memory's latency is the number
// of bytes that an SM has in flight.
template <class From, class To>
struct GatherTile {
    static constexpr int kInner = 128;
    static constexpr int kOuter = sizeof(From) <= 2 && sizeof(To) <= 4 ? 64 : 32;
    static constexpr int kElements = kOuter * kInner / kThreads;  // a thread
    static constexpr int kInFlight = sizeof(From) == 8 ? 8 : 16;
    static constexpr int kWriteVector = 16 / sizeof(To);
    // Padded: rows stay aligned, and columns spread over the banks of shared memory.
    static constexpr int kPitch = kInner + kWriteVector;
    static constexpr int kVectorElements = kOuter * kInner;  // that are written in vectors
    static constexpr int kSharedBytes = kOuter * kPitch * static_cast<int>(sizeof(To));

    static constexpr int outer() { return kOuter; }
    static constexpr int inner() { return kInner; }
    static __device__ __forceinline__ int at(int outer, int inner) {
        return outer * kPitch + inner;
    }
};

// Where a tile lies, and how much of it is inside the matrix.
struct TilePlace {
    std::int64_t outer0, inner0;
    int outer_left, inner_left;
};

template <class Tile>
__device__ __forceinline__ TilePlace place_of(const OperandArgs& args, const Tile& tile,
                                              std::int64_t index) {
    const std::int64_t tile_outer = index / args.tiles_inner;
    TilePlace place;
    place.outer0 = tile_outer * tile.outer();
    place.inner0 = (index - tile_outer * args.tiles_inner) * tile.inner();
    place.outer_left = static_cast<int>(min(args.outer - place.outer0, std::int64_t{tile.outer()}));
    place.inner_left = static_cast<int>(min(args.inner - place.inner0, std::int64_t{tile.inner()}));
    return place;
}

// Reads a tile and rounds it into shared memory. Many reads of a thread are in flight before the
// first one is used.
template <class From, class To, class Tile>
__device__ __forceinline__ void read_tile(const OperandArgs& args, const From* source,
                                          const TilePlace& place, To* tile) {
    // The thread's elements lie in one row or one column of the tile, `step` apart.
    const int thread = threadIdx.x;
    const int outer = args.along_outer ? thread % Tile::kOuter : thread / Tile::kInner;
    const int inner = args.along_outer ? thread / Tile::kOuter : thread % Tile::kInner;
    const int step = kThreads / (args.along_outer ? Tile::kOuter : Tile::kInner);
    const int left = args.along_outer ? place.inner_left - inner : place.outer_left - outer;
    const bool any = outer < place.outer_left && inner < place.inner_left;
    int count = any ? (left + step - 1) / step : 0;  // of them inside the matrix
    const From* from = source + (place.outer0 + outer) * args.source_outer_stride +
                       (place.inner0 + inner) * args.source_inner_stride;
    To* to = &tile[Tile::at(outer, inner)];
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

// Writes whole vectors: what lies behind a row's end in the last one is padding.
template <class To, class Tile>
__device__ __forceinline__ void write_tile(const OperandArgs& args, To* target, const Tile& tile,
                                           const TilePlace& place, const To* shared) {
    target += place.outer0 * args.target_outer_stride + place.inner0;
    constexpr int kVectors = Tile::kVectorElements / Tile::kWriteVector;  // power of two
    const int last = tile.inner() / Tile::kWriteVector - 1;               // of a row
    const int inner = (threadIdx.x & last) * Tile::kWriteVector;
    if (inner >= place.inner_left) return;
    const int log_row = __popc(last);
#pragma unroll
    for (int i = 0; i < kVectors; i += kThreads) {
        const int outer = (i + threadIdx.x) >> log_row;
        if (outer < place.outer_left) {
            *reinterpret_cast<uint4*>(target + outer * args.target_outer_stride + inner) =
                *reinterpret_cast<const uint4*>(&shared[tile.at(outer, inner)]);
        }
    }
}

// Tile `index` of a batch, through `shared`, which holds kSharedBytes: read(place, shared), then
// written to the matrix that begins at `target`.
template <class Tile, class To, class ReadTile>
__device__ __forceinline__ void pack_tile(const OperandArgs& args, const Tile& tile,
                                          std::int64_t index, To* target, void* shared,
                                          const ReadTile& read) {
    auto* const its = static_cast<To*>(shared);
    read(place_of(args, tile, index), its);
    __syncthreads();
    // Where the tile lies is computed again: kept, it would cost registers.
    index = device::ptx::opaque(index);
    write_tile(args, target, tile, place_of(args, tile, index), its);
    __syncthreads();
}

template <class From, class To>
__device__ __forceinline__ void pack_gathered(const OperandArgs& args, std::int64_t index,
                                              const From* source, To* target, void* shared) {
    using Tile = GatherTile<From, To>;
    pack_tile(args, Tile(), index, target, shared, [&](const TilePlace& place, To* tile) {
        read_tile<From, To, Tile>(args, source, place, tile);
    });
}

}  // namespace tcgemm::pack
