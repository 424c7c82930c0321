// Rows of accumulators from shared memory to D: a warp stores its part of a tile in vectors of
// neighbouring columns, whichever of them a lane's registers held.
#pragma once

#include <cstdint>

#include "kernels/epilogue/store.cuh"

namespace tcgemm::epilogue {

template <class Output>
inline constexpr bool kIsScaled = false;
template <class Policy>
inline constexpr bool kIsScaled<Output<Policy>> = Policy::kScaled;

// kRows x kCols accumulators of a warp, rows kLd apart, kVector columns a lane at a time. They
// begin at D(row, col), of which rows x cols exist. A lane passes on up to kMostRows at once.
template <int kVector, int kRows, int kCols, int kLd, int kMostRows, class Output,
          class Accumulator>
__device__ void store_staged_rows(const Output& output, const Accumulator* staged, std::int64_t row,
                                  std::int64_t col, int rows, int cols) {
    constexpr int kChunks = kCols / kVector;
    constexpr int kLanes = kChunks < 32 ? kChunks : 32;  // a row
    constexpr int kRowStep = 32 / kLanes;
    using Value = typename Output::Value;
    // Fewer where sums (FP64) or what is done to them (scales) leave few registers.
    constexpr int kMost = kIsScaled<Output>                     ? 1
                          : sizeof(Value) == 8 && kMostRows > 2 ? 2
                                                                : kMostRows;
    constexpr int kRowsALane = kRows / kRowStep;
    constexpr int kBatch = kRowsALane < kMost ? kRowsALane : kMost;
    static_assert(kLd % kVector == 0 && kRows % (kRowStep * kBatch) == 0);
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = lane / kLanes; i < kRows; i += kRowStep * kBatch) {
#pragma unroll 1
        for (int j = lane % kLanes * kVector; j < kCols; j += kLanes * kVector) {
            if (i >= rows || j >= cols) break;
            Value acc[kBatch][kVector];
#pragma unroll
            for (int b = 0; b < kBatch; ++b) {
                const auto from = *reinterpret_cast<const Vector<Accumulator, kVector>*>(
                    staged + (i + b * kRowStep) * kLd + j);
#pragma unroll
                for (int e = 0; e < kVector; ++e) acc[b][e] = widen<Value>(from.element[e]);
            }
            output.store(row + i, kRowStep, rows - i, col + j, min(kVector, cols - j), acc);
        }
    }
}

// The same in vectors of 16 bytes of sums (integers have 32 bits here, whatever they are widened
// to), where D takes them. The whole warp calls it.
template <int kRows, int kCols, int kLd, int kMostRows = 4, class Output, class Accumulator>
__device__ __forceinline__ void store_staged(const Output& output, const Accumulator* staged,
                                             std::int64_t row, std::int64_t col, int rows,
                                             int cols) {
    using Value = typename Output::Value;
    constexpr int kVector = std::is_integral_v<Value> ? 4 : 16 / sizeof(Value);
    if (output.template vectorizable<kVector>()) {
        store_staged_rows<kVector, kRows, kCols, kLd, kMostRows>(output, staged, row, col, rows,
                                                                 cols);
    } else {
        store_staged_rows<1, kRows, kCols, kLd, 4>(output, staged, row, col, rows, cols);
    }
}

}  // namespace tcgemm::epilogue
