// Tiles in shared memory whose rows are not padded: the 16-byte chunks of a row change places, so
// that the rows that are read together have the same chunk in different groups of banks.
#pragma once

#include <cstdint>

#include "kernels/device/ptx/async_copy.cuh"
#include "kernels/device/ptx/opaque.cuh"

namespace tcgemm::device {

// Together are read: eight rows of a chunk (ldmatrix), or four rows of two chunks (FP64).
template <int kRows_, int kRowBytes_, int kItem_>
struct SwizzledTile {
    static constexpr int kRows = kRows_, kRowBytes = kRowBytes_, kBytes = kRows * kRowBytes;
    static constexpr int kItem = kItem_;  // bytes of an element
    static constexpr int kChunks = kRowBytes / 16;
    static_assert((kChunks == 4 && kItem < 8) || kChunks % 8 == 0);

    // Bytes to a chunk. Rows that differ by a multiple of 8 and chunks that differ in bits of their
    // own (an exclusive or) have offsets that differ by as much.
    static __device__ __forceinline__ int offset(int row, int chunk) {
        const int swizzle = kItem == 8 ? (row & 3) << 1 : kChunks == 4 ? row >> 1 & 3 : row & 7;
        return row * kRowBytes + (chunk ^ swizzle) * 16;
    }
};

// Copies tiles of a matrix from global memory in the background, by kThreads threads, in chunks of
// 16 bytes, and goes from tile to tile along k. kAlongRows: k counts the rows of a tile, otherwise
// its columns. Chunks outside the matrix are not copied: what the tile holds there is undefined. A
// chunk that the last column cuts is copied whole (16 aligned bytes that hold one of our elements
// lie within one allocation). Where undefined elements would be summed up, copy_part() puts zeros.
// kUnaligned: chunks begin at any multiple of 8 bytes, and are copied as two elements of as many,
// each where it is within the matrix.
// kAddressEach: an address made for each copy has to wait until the copy before has read its own
// out of the same registers, so that each has registers of its own where sums leave them.
template <class Tile, class Element, bool kAlongRows, int kThreads, bool kUnaligned,
          bool kAddressEach>
class AsyncTileLoader {
    static constexpr int kVector = 16 / sizeof(Element);
    static constexpr int kCols = Tile::kRowBytes / sizeof(Element);
    static constexpr int kRowStep = kThreads / Tile::kChunks;  // rows that a chunk a thread covers
    static_assert(kThreads % Tile::kChunks == 0 && Tile::kRows % kRowStep == 0);
    static_assert(kRowStep % (sizeof(Element) == 8 ? 4 : 8) == 0,
                  "a thread's chunks have the same place in their rows");
    static_assert(!kUnaligned || sizeof(Element) == 8);
    static constexpr int kSecond = 16;  // bits of inside_ of the second elements of chunks

   public:
    static constexpr int kVectors = Tile::kRows / kRowStep;  // a thread
    static_assert(kVectors <= kSecond);

    // `matrix` is element (0, 0) of the first tile; its rows are `ld` elements apart and start at
    // multiples of 16 bytes, or kUnaligned. Across k, `across` rows (columns) of a tile lie within
    // the matrix.
    __device__ AsyncTileLoader(const Element* matrix, std::int64_t ld, int across)
        : target_(ptx::opaque(Tile::offset(row(), threadIdx.x % Tile::kChunks))),
          row_step_(kRowStep * ld) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            if (v < kAddresses) {
                source_[v] = ptx::opaque(matrix + (row() + v * kRowStep) * ld + col());
            }
            inside_ |= ((kAlongRows ? col() : row() + v * kRowStep) < across) << v;
        }
        if (kUnaligned && (!kAlongRows || col() + 1 < across)) inside_ |= inside_ << kSecond;
        inside_ = ptx::opaque(inside_);
    }

    // Whether copy() does anything until the next call.
    __device__ __forceinline__ void activate(bool active) {
        active_ = ptx::opaque(active ? inside_ : 0);
    }

    // Starts the copy of the thread's v-th chunk to the tile at `shared`.
    __device__ __forceinline__ void copy(std::uint32_t shared, int v) const {
        if constexpr (kUnaligned) {
            ptx::copy_async_two(target(shared, v), source(v), active_ & 1u << v,
                                active_ & 1u << kSecond << v);
        } else {
            ptx::copy_async(target(shared, v), source(v), active_ & 1u << v);
        }
    }

    // Starts the copy of a tile of which only `k` exist, with zeros behind them.
    __device__ __forceinline__ void copy_part(std::uint32_t shared, int k) const {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            const int elements = kAlongRows ? (row() + v * kRowStep < k ? kVector : 0)
                                            : min(max(k - col(), 0), kVector);
            const int bytes = elements * static_cast<int>(sizeof(Element));
            const auto is_inside = [&](int bit) { return (inside_ & 1u << bit << v) != 0; };
            if constexpr (kUnaligned) {
                ptx::copy_async_two_or_zeros(target(shared, v), source(v),
                                             is_inside(0) && bytes > 0,
                                             is_inside(kSecond) && bytes > 8);
            } else {
                ptx::copy_async_part(target(shared, v), source(v), is_inside(0) ? bytes : 0);
            }
        }
    }

    // On to the next tile.
    __device__ __forceinline__ void advance() {
#pragma unroll
        for (int v = 0; v < kAddresses; ++v) {
            source_[v] += kAlongRows ? kVectors * row_step_ : kCols;
        }
    }

   private:
    // Of the thread's first chunk within a tile.
    static __device__ __forceinline__ int row() { return threadIdx.x / Tile::kChunks; }
    static __device__ __forceinline__ int col() { return threadIdx.x % Tile::kChunks * kVector; }
    __device__ __forceinline__ std::uint32_t target(std::uint32_t shared, int v) const {
        return shared + target_ + v * kRowStep * Tile::kRowBytes;
    }

    __device__ __forceinline__ const Element* source(int v) const {
        return kAddresses == 1 ? source_[0] + v * row_step_ : source_[v];
    }

    static constexpr int kAddresses = kAddressEach ? kVectors : 1;

    std::uint32_t target_;               // where the first chunk goes
    const Element* source_[kAddresses];  // where each chunk is
    std::int64_t row_step_;              // elements from a chunk to the next
    unsigned inside_ = 0;                // bit v: chunk v lies within the matrix across k,
    unsigned active_ = 0;                // and is wanted
};

}  // namespace tcgemm::device
