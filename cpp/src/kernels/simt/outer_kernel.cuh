// A sum of few outer products, on CUDA cores: D is what takes time, and all but a small one goes
// out in whole sectors of L2 wherever its rows begin. The rows of a warp lie alike in sectors, and
// its columns begin with one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/l2.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/tile_scheduler.cuh"
#include "kernels/device/vector.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/halves.hpp"
#include "kernels/simt/multiply_add.cuh"
#include "kernels/simt/outer.hpp"

namespace tcgemm::simt {

// Values of k: those that exist, and as many as are multiplied, a power of two.
struct PaddedK {
    int count, log2;
    __device__ PaddedK(int k, int steps) : count(k) { log2 = 32 - __clz(max(k, steps) - 1); }
    __device__ int padded() const { return 1 << log2; }
};

// Rows of A, whose k is read in vectors, and of B, as many of them as outer_shared_bytes() counts.
template <class Policy>
struct OuterShared {
    using Acc = typename Policy::Acc;
    using RowOfA = device::Vector<Acc, Policy::kVector>[Policy::kTile.pitch_a() / Policy::kVector];
    using RowOfB = Acc[Policy::kTile.pitch_b()];
    RowOfA a[Policy::kRows];
    RowOfB b[Policy::kBlockK];
};

// What a block computes of D, in tiles one below the other.
template <class Policy>
struct OuterPlace {
    std::int64_t slice, row, col;  // the first; columns may lie before D
    int rows;                      // that exist
    int before;                    // columns that a warp may leave out at the begin
    int first_col, end_col;        // that exist, of the staged ones

    __device__ OuterPlace(const GemmArgs& args, const device::Tile& tile, int block_rows)
        : slice(tile.slice),
          row(static_cast<std::int64_t>(tile.m) * block_rows),
          rows(static_cast<int>(min(args.m - row, std::int64_t{block_rows}))),
          before(outer_column_step<Policy>(args) - 1) {
        constexpr std::int64_t kStagedCols = Policy::kCols + Policy::kTile.spare_cols();
        col = static_cast<std::int64_t>(tile.n) * Policy::kCols - before;
        first_col = static_cast<int>(max(-col, std::int64_t{0}));
        end_col = static_cast<int>(min(args.n - col, kStagedCols));
    }
};

// A thread's elements of kLines lines, rows of A or columns of B, on their way to shared memory.
// What does not exist is zero. As many are loaded together, in a round, as kAtOnce values of k of
// each line are.
template <class Element, int kLines, int kThreads, int kAtOnce>
class LinesOnTheWay {
    static constexpr int kCount = std::max(kLines * kAtOnce / kThreads, 1);

   public:
    // `thread` of kThreads. `from`: the first value of k of the first line.
    __device__ LinesOnTheWay(int thread, const Element* from, std::int64_t line_stride,
                             std::int64_t k_stride, PaddedK k)
        : along_k_(k_stride == 1),  // threads lie side by side as the elements do
          line_(along_k_ ? thread >> k.log2 : thread % kLines),
          k_(along_k_ ? thread & (k.padded() - 1) : thread / kLines),
          step_line_(along_k_ ? kThreads >> k.log2 : 0),
          step_k_(along_k_ ? 0 : kThreads / kLines),
          of_k_(k),
          from_(from + line_ * line_stride + k_ * k_stride),
          step_(along_k_ ? step_line_ * line_stride : step_k_ * k_stride) {}

    __device__ __forceinline__ bool has(int round) const {
        return round * kAtOnce < of_k_.padded();
    }
    // Those of round `round`, of the lines `first` .. `end`.
    __device__ __forceinline__ void load(int round, int first, int end) {
        const Element* from = from_ + round * kCount * step_;
#pragma unroll
        for (int i = 0; i < kCount; ++i, from += step_) {
            const int line = line_ + (round * kCount + i) * step_line_;
            const int k = k_ + (round * kCount + i) * step_k_;
            value_[i] = 0;
            if (line >= first && line < end && k < of_k_.count) value_[i] = *from;
        }
    }
    // put(line, k, value), for all values of k of each line.
    template <class Put>
    __device__ __forceinline__ void store(int round, Put&& put) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const int line = line_ + (round * kCount + i) * step_line_;
            const int k = k_ + (round * kCount + i) * step_k_;
            if (line < kLines && k < of_k_.padded()) put(line, k, value_[i]);
        }
    }
    __device__ __forceinline__ void advance(std::int64_t elements) { from_ += elements; }

   private:
    bool along_k_;
    int line_, k_, step_line_, step_k_;
    PaddedK of_k_;
    const Element* from_;
    std::int64_t step_;
    Element value_[kCount];
};

// The rows of A of a warp, kWarps apart: those of a tile are on their way while those of the one
// before are multiplied.
template <class Policy>
class RowsOfA {
    using Acc = typename Policy::Acc;
    using Row = typename OuterShared<Policy>::RowOfA;
    static constexpr int kWarps = Policy::kWarps, kVector = Policy::kVector;

   public:
    // Begins to load those of the first tile.
    __device__ RowsOfA(const GemmArgs& args, const OuterPlace<Policy>& place, PaddedK k,
                       Row* staged)
        : lines_(
              threadIdx.x % 32,
              static_cast<const Acc*>(args.a.data) +
                  element_offset(args.batch, args.a, place.slice, place.row + threadIdx.x / 32, 0),
              kWarps * args.a.row_stride, args.a.col_stride, k),
          staged_(staged),
          row_stride_(args.a.row_stride),
          left_(place.rows - static_cast<int>(threadIdx.x / 32)) {
        load(0);
    }

    // Rows of the block from the warp's next one on.
    __device__ int left() const { return left_; }

    // Brings those of the next tile to shared memory, for the warp. Returns what left() was.
    __device__ __forceinline__ int arrive() {
        store(0);
#pragma unroll 1
        for (int round = 1; lines_.has(round); ++round) {
            load(round);
            store(round);
        }
        __syncwarp();
        const int its_rows = left_;
        left_ -= Policy::kRows;
        lines_.advance(Policy::kRows * row_stride_);
        load(0);
        return its_rows;
    }

   private:
    __device__ __forceinline__ void load(int round) {
        lines_.load(round, 0, (left_ + kWarps - 1) / kWarps);
    }
    __device__ __forceinline__ void store(int round) {
        lines_.store(round, [&](int row, int k, Acc value) {
            staged_[row][k / kVector].element[k % kVector] = value;
        });
    }

    LinesOnTheWay<Acc, Policy::kThreadRows, 32, Policy::kRoundK> lines_;
    Row* staged_;
    std::int64_t row_stride_;
    int left_;
};

// The block's columns of B, for all of its tiles, to shared memory.
template <class Policy>
__device__ __forceinline__ void stage_columns(const GemmArgs& args, const OuterPlace<Policy>& place,
                                              PaddedK k,
                                              typename OuterShared<Policy>::RowOfB* staged) {
    using Acc = typename Policy::Acc;
    constexpr int kCols = Policy::kCols, kThreads = Policy::kThreads;
    const MatrixView& b = args.b;
    const Acc* from =
        static_cast<const Acc*>(b.data) + element_offset(args.batch, b, place.slice, 0, place.col);
    LinesOnTheWay<Acc, kCols, kThreads, Policy::kRoundK> cols(threadIdx.x, from, b.col_stride,
                                                              b.row_stride, k);
    LinesOnTheWay<Acc, Policy::kTile.spare_cols(), kThreads, Policy::kBlockK> spare(
        threadIdx.x, from + kCols * b.col_stride, b.col_stride, b.row_stride, k);
    spare.load(0, 0, place.end_col - kCols);
#pragma unroll 1
    for (int round = 0; cols.has(round); ++round) {
        cols.load(round, place.first_col, place.end_col);
        cols.store(round, [&](int col, int at, Acc value) { staged[at][col] = value; });
    }
    spare.store(0, [&](int col, int at, Acc value) { staged[at][kCols + col] = value; });
}

// The columns of a thread, 32 apart. Those of its warp begin at the next address in D that is a
// multiple of a sector.
template <class Policy>
struct ThreadColumns {
    std::int64_t first;  // in D
    int staged;          // in shared memory
    int groups;          // that exist

    __device__ ThreadColumns(const GemmArgs& args, const OuterPlace<Policy>& place) {
        using Acc = typename Policy::Acc;
        static_assert(Policy::kWarps * sizeof(Acc) % kSectorBytes == 0,
                      "a warp's rows lie alike in sectors");
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const auto its_d = reinterpret_cast<std::uintptr_t>(args.d.data) / sizeof(Acc) +
                           element_offset(args.batch, args.d, place.slice, place.row + warp, 0);
        const int begin = place.before - (static_cast<int>(its_d) & place.before);
        groups = min((place.end_col - begin + 31) / 32, Policy::kGroups);
        staged = begin + lane;
        first = place.col + staged;
    }
};

// A thread's part of a tile: kThreadRows rows, kWarps apart, of kGroups columns.
template <class Policy>
class OuterSums {
    using Acc = typename Policy::Acc;
    using RowOfA = typename OuterShared<Policy>::RowOfA;
    using RowOfB = typename OuterShared<Policy>::RowOfB;
    using Columns = ThreadColumns<Policy>;
    static constexpr int kRows = Policy::kThreadRows, kGroups = Policy::kGroups;

   public:
    // `a`: the warp's rows.
    __device__ __forceinline__ void multiply(const RowOfA* a, const RowOfB* b,
                                             const Columns& columns, int k) {
        if (columns.groups == 1) {
            multiply_groups<1>(a, b, columns.staged, k);
        } else if (columns.groups == 2 && kGroups > 2) {
            multiply_groups<2>(a, b, columns.staged, k);
        } else {
            multiply_groups<kGroups>(a, b, columns.staged, k);
        }
    }

    // To the rows of D from `row` on, of which `rows` exist; D has `cols` columns.
    template <class Output>
    __device__ __forceinline__ void store(const Output& output, std::int64_t row, int rows,
                                          const Columns& columns, std::int64_t cols) {
        // A loop that brings the next group to the front keeps the code of the store small.
        std::int64_t col = columns.first;
#pragma unroll 1
        for (int group = 0; group < columns.groups; ++group, col += 32) {
            Acc strip[kRows][1];
#pragma unroll
            for (int r = 0; r < kRows; ++r) strip[r][0] = acc_[r][0];
            if (col >= 0 && col < cols) {
                output.template store_as<Acc>(row, Policy::kWarps, rows, col, 1, strip);
            }
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
#pragma unroll
                for (int next = 1; next < kGroups; ++next) acc_[r][next - 1] = acc_[r][next];
            }
        }
    }

   private:
    template <int kIts>
    __device__ __forceinline__ void multiply_groups(const RowOfA* a, const RowOfB* b, int col,
                                                    int k) {
        constexpr int kVector = Policy::kVector;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
        constexpr int kTogether = kRows / 2;  // that are multiplied together: all of them spill
#else
        constexpr int kTogether = kRows;
#endif
#pragma unroll 1
        for (int at = 0; at < k; at += kVector) {
#pragma unroll
            for (int first = 0; first < kRows; first += kTogether) {
                device::Vector<Acc, kVector> values[kTogether];
#pragma unroll
                for (int r = 0; r < kTogether; ++r) values[r] = a[first + r][at / kVector];
#pragma unroll
                for (int s = 0; s < kVector; ++s) {
                    Acc column[kIts];
#pragma unroll
                    for (int j = 0; j < kIts; ++j) column[j] = b[at + s][col + 32 * j];
#pragma unroll
                    for (int r = 0; r < kTogether; ++r) {
#pragma unroll
                        for (int step = 0; step < kIts; ++step) {
                            // Forth and back: see ThreadTile::multiply() (gemm_kernel.cuh).
                            const int j = r % 2 ? kIts - 1 - step : step;
                            multiply_add(acc_[first + r][j], values[r].element[s], column[j]);
                        }
                    }
                }
            }
        }
    }

    Acc acc_[kRows][kGroups] = {};
};

template <class Policy, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerSm)
    outer_kernel(const __grid_constant__ GemmArgs args, const __grid_constant__ Epilogue epilogue,
                 const __grid_constant__ device::TileScheduler tiles,
                 const __grid_constant__ int block_rows, std::int64_t index) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& shared = *reinterpret_cast<OuterShared<Policy>*>(bytes);
    const int warp = threadIdx.x / 32;
    const OuterPlace<Policy> place(args, tiles.tile(index + blockIdx.x), block_rows);
    const PaddedK k(static_cast<int>(args.k), Policy::kVector);
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;

    auto* const a = shared.a + warp * Policy::kThreadRows;  // the warp's
    RowsOfA<Policy> rows(args, place, k, a);
    stage_columns(args, place, k, shared.b);
    __syncthreads();

    const epilogue::Output<Epilogue> output(epilogue, args, place.slice);
    const ThreadColumns<Policy> columns(args, place);
#pragma unroll 1
    for (std::int64_t row = place.row + warp; rows.left() > 0; row += Policy::kRows) {
        const int its_rows = rows.arrive();
        OuterSums<Policy> sums;
        sums.multiply(a, shared.b, columns, k.count);
        if (rows.left() <= 0) device::release_successor();
        __syncwarp();  // A may be written again
        sums.store(output, row, its_rows, columns, args.n);
    }
}

}  // namespace tcgemm::simt
