// Copies a tile from global to shared memory through registers, so that the loads of the next tile
// are in flight while the tensor cores work (GPUs before sm_80 have no asynchronous copy).
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace tcgemm::device {

// A tile of kRows x kCols halves, contiguous along its columns, loaded by kThreads threads in 16-byte
// vectors. Rows outside the matrix are not read and become zero. A vector that the last column cuts
// is read whole: 16 aligned bytes that hold one of our elements lie within one allocation. What is
// not ours in it may be NaN; with kClearCols (columns are k, which is summed over) it is cleared.
template <int kRows, int kCols, int kThreads, bool kClearCols>
class TileLoader {
   public:
    static constexpr int kVector = 8;                  // halves in 16 bytes
    static constexpr int kChunks = kCols / kVector;    // vectors a row
    static constexpr int kRowStep = kThreads / kChunks;  // rows that one vector a thread covers
    static constexpr int kVectors = kRows / kRowStep;  // a thread
    // In shared memory a row is 16 bytes longer than it must be: the eight rows that one matrix load
    // touches then lie in different banks.
    static constexpr int kLd = kCols + kVector;
    static constexpr int kElements = kRows * kLd;
    static_assert(kThreads % kChunks == 0 && kRows % kRowStep == 0);

    // `matrix` is element (0, 0) of the first tile; its rows are `ld` elements apart and start at
    // multiples of 16 bytes.
    __device__ TileLoader(const __half* matrix, std::int64_t ld)
        : row_(first_row()),
          col_(threadIdx.x % kChunks * kVector),
          source_(matrix + row_ * ld + col_),
          row_step_(kRowStep * ld) {}

    __device__ void advance(std::int64_t elements) { source_ += elements; }

    // Global memory to registers: the part of the tile that lies within rows x cols. Does not wait.
    __device__ void load(int rows, int cols) {
        cols_ = cols;
        const __half* source = source_;
#pragma unroll
        for (int v = 0; v < kVectors; ++v, source += row_step_) {
            staged_[v] = make_uint4(0, 0, 0, 0);
            if (col_ < cols && row_ + v * kRowStep < rows) {
                staged_[v] = __ldg(reinterpret_cast<const uint4*>(source));
            }
        }
    }

    // Registers to shared memory.
    __device__ void store(__half* tile) {
        if (kClearCols && cols_ < kCols) clear_cols();
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            *reinterpret_cast<uint4*>(tile + (row_ + v * kRowStep) * kLd + col_) = staged_[v];
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

    __device__ void clear_cols() {
        const auto mask = [this](int word) {  // of two halves
            const int keep = cols_ - col_ - 2 * word;
            return keep >= 2 ? 0xffffffffu : keep == 1 ? 0xffffu : 0u;
        };
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            staged_[v].x &= mask(0);
            staged_[v].y &= mask(1);
            staged_[v].z &= mask(2);
            staged_[v].w &= mask(3);
        }
    }

    int row_, col_;          // of the thread's first vector within the tile
    const __half* source_;   // where that vector is
    std::int64_t row_step_;  // elements
    uint4 staged_[kVectors];
    int cols_ = 0;  // of the staged tile that lie within the matrix
};

}  // namespace tcgemm::device
