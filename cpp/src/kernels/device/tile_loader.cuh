// Copies tiles from global to shared memory through registers, so that the loads of the next tile
// are in flight while the tensor cores work (GPUs before sm_80 have no asynchronous copy).
#pragma once

#include <cstdint>

#include "kernels/device/ptx/global_load.cuh"

namespace tcgemm::device {

// A tile of kRows x kCols elements of 1 or 2 bytes, contiguous along its columns, copied by
// kThreads threads in 16-byte vectors. Vectors outside the matrix are not read and become zero. A
// vector that the last column cuts is read whole (16 aligned bytes that hold one of our elements
// lie within one allocation): what is not ours in it may be NaN, and clear_behind() removes it
// where it would be summed up.
template <class Element, int kRows, int kCols, int kThreads>
class TileLoader {
    static constexpr int kItem = sizeof(Element);
    static constexpr int kVector = 16 / kItem;
    static constexpr int kChunks = kCols / kVector;      // vectors a row
    static constexpr int kRowStep = kThreads / kChunks;  // rows that one vector a thread covers

   public:
    static constexpr int kVectors = kRows / kRowStep;  // a thread
    // In shared memory a row is 16 bytes longer than it must be: the eight rows that one matrix
    // load touches then lie in different banks.
    static constexpr int kLd = kCols + kVector;
    static constexpr int kElements = kRows * kLd;
    static_assert(kThreads % kChunks == 0 && kRows % kRowStep == 0);

    // `matrix` is element (0, 0) of the first tile; its rows are `ld` elements apart and start at
    // multiples of 16 bytes.
    __device__ TileLoader(const Element* matrix, std::int64_t ld)
        : row_(first_row()),
          col_(threadIdx.x % kChunks * kVector),
          source_(matrix + row_ * ld + col_),
          row_step_(kRowStep * ld) {}

    // On to another tile, so many elements away, ...
    __device__ void advance(std::int64_t elements) { source_ += elements; }

    // ... of which rows x cols lie within the matrix.
    __device__ void limit(int rows, int cols) {
        inside_ = 0;
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            inside_ |= (col_ < cols && row_ + v * kRowStep < rows) << v;
        }
    }

    // From here on nothing is read.
    __device__ void stop() { inside_ = 0; }

    // Global memory to registers. Does not wait.
    __device__ void load() {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            staged_[v] = ptx::load_or_zero(source_ + v * row_step_, inside_ >> v & 1);
        }
    }

    // Registers to shared memory.
    __device__ void store(Element* tile) const {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            *reinterpret_cast<uint4*>(tile + (row_ + v * kRowStep) * kLd + col_) = staged_[v];
        }
    }

    // Zeros the loaded elements from column `cols` on.
    __device__ void clear_behind(int cols) {
        const auto mask = [bytes = (cols - col_) * kItem](int word) {
            const int keep = bytes - 4 * word;
            return keep >= 4 ? 0xffffffffu : keep > 0 ? 0xffffffffu >> (32 - 8 * keep) : 0u;
        };
#pragma unroll
        for (uint4& vector : staged_) {
            vector.x &= mask(0);
            vector.y &= mask(1);
            vector.z &= mask(2);
            vector.w &= mask(3);
        }
    }

   private:
    // The eight lanes that write shared memory together must hit different banks. Where a row has
    // only four vectors they write two rows: four rows apart, the padding makes them disjoint.
    static __device__ int first_row() {
        const int thread = threadIdx.x;
        if constexpr (kChunks == 4) {
            return thread / 32 * 8 + thread % 32 / 8 + thread / 4 % 2 * 4;
        } else {
            return thread / kChunks;
        }
    }

    int row_, col_;          // of the thread's first vector within the tile
    const Element* source_;  // where that vector is
    std::int64_t row_step_;  // elements
    unsigned inside_ = 0;    // bit v: vector v lies within the matrix
    uint4 staged_[kVectors];
};

}  // namespace tcgemm::device
