// Rows of accumulators from shared memory to D: a warp stores its part of a tile in vectors of
// neighbouring columns, whichever of them a lane's registers held.
#pragma once

#include <cstdint>

#include "kernels/epilogue/store.cuh"

namespace tcgemm::epilogue {

template <class Output>
inline constexpr bool kIsScaled = false;
template <class Epilogue>
inline constexpr bool kIsScaled<Output<Epilogue>> = Epilogue::kScaled;

// kRows x kCols accumulators of a warp, rows kLd apart, kVector columns a lane at a time. They
// begin at D(row, col), of which rows x cols exist. A lane passes on up to kMostRows at once.
template <int kVector, int kRows, int kCols, int kLd, int kMostRows, bool kReadsC, class Output,
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
            output.template store<kReadsC>(row + i, kRowStep, rows - i, col + j,
                                           min(kVector, cols - j), acc);
        }
    }
}

// C to the sums of a warp, kAtOnce rows of a column at a time: what stores D has few rows at once,
// and would wait for each of them.
template <int kRows, int kCols, int kLd, int kAtOnce, class Output, class Accumulator>
__device__ void add_c_to_staged(const Output& output, Accumulator* staged, std::int64_t row,
                                std::int64_t col, int rows, int cols) {
    rows = min(rows, kRows), cols = min(cols, kCols);
#pragma unroll 1
    for (int i = 0; i < rows; i += kAtOnce) {
#pragma unroll 1
        for (int j = threadIdx.x % 32; j < cols; j += 32) {
            output.template add_c<kAtOnce>(row + i, rows - i, col + j, staged + i * kLd + j, kLd);
        }
    }
    __syncwarp();
}

// The same in vectors of 16 bytes of sums (integers have 32 bits here, whatever they are widened
// to), where D takes them. The whole warp calls it. kRowsOfC: that are read at once; 0 where there
// are no registers for as many, and each few rows of D are stored with theirs.
template <int kRows, int kCols, int kLd, int kMostRows = 4, int kRowsOfC = 8, class Output,
          class Accumulator>
__device__ __forceinline__ void store_staged(Output output, Accumulator* staged, std::int64_t row,
                                             std::int64_t col, int rows, int cols) {
    using Value = typename Output::Value;
    constexpr int kVector = std::is_integral_v<Value> ? 4 : 16 / sizeof(Value);
    // Scales are multiplied with last, sums of 16 bits hold no sum with C, and what few rows of D
    // are stored at once are all of a small tile.
    constexpr bool kReadsC =
        kIsScaled<Output> || sizeof(Accumulator) < 4 || kRowsOfC == 0 || kRows * kCols <= 256;
    if constexpr (!kReadsC) {
        if (output.reads_c()) {
            add_c_to_staged<kRows, kCols, kLd, kRowsOfC>(output, staged, row, col, rows, cols);
        }
        output.leave_c();
    }
    if (output.template vectorizable<kVector>()) {
        store_staged_rows<kVector, kRows, kCols, kLd, kMostRows, kReadsC>(output, staged, row, col,
                                                                          rows, cols);
    } else {
        store_staged_rows<1, kRows, kCols, kLd, 4, kReadsC>(output, staged, row, col, rows, cols);
    }
}

}  // namespace tcgemm::epilogue
