// A sum of few outer products, on CUDA cores: D is what takes time, and all but a small one goes
// out in whole sectors of L2 wherever its rows begin. The rows of a warp lie alike in sectors, and
// its columns begin with one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/l2.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/tile_scheduler.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/halves.hpp"
#include "kernels/simt/multiply_add.cuh"
#include "kernels/simt/outer.hpp"

namespace tcgemm::simt {

// A thread's elements of kLines lines, rows of A or columns of B, on their way to shared memory.
// What does not exist is zero. As many are loaded together, in a round, as kAtOnce values of k of
// each line are.
template <class Element, int kLines, int kThreads, int kAtOnce>
class LinesOnTheWay {
    static constexpr int kCount = std::max(kLines * kAtOnce / kThreads, 1);

   public:
    // `thread` of kThreads. `from`: the first of 2^log_k values of each line, of which `k` exist.
    __device__ LinesOnTheWay(int thread, const Element* from, std::int64_t line_stride,
                             std::int64_t k_stride, int k, int log_k)
        : along_k_(k_stride == 1),  // threads lie side by side as the elements do
          line_(along_k_ ? thread >> log_k : thread % kLines),
          k_(along_k_ ? thread & ((1 << log_k) - 1) : thread / kLines),
          step_line_(along_k_ ? kThreads >> log_k : 0),
          step_k_(along_k_ ? 0 : kThreads / kLines),
          end_k_(k),
          from_(from + line_ * line_stride + k_ * k_stride),
          step_(along_k_ ? step_line_ * line_stride : step_k_ * k_stride) {}

    // Those of round `round`, of the lines `first` .. `end`.
    __device__ __forceinline__ void load(int round, int first, int end) {
        const Element* from = from_ + round * kCount * step_;
#pragma unroll
        for (int i = 0; i < kCount; ++i, from += step_) {
            const int line = line_ + (round * kCount + i) * step_line_;
            const int k = k_ + (round * kCount + i) * step_k_;
            value_[i] = 0;
            if (line >= first && line < end && k < end_k_) value_[i] = *from;
        }
    }
    // put(line, k, value), for 2^log_k values of each line.
    template <class Put>
    __device__ __forceinline__ void store(int round, int log_k, Put&& put) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const int line = line_ + (round * kCount + i) * step_line_;
            const int k = k_ + (round * kCount + i) * step_k_;
            if (line < kLines && k < 1 << log_k) put(line, k, value_[i]);
        }
    }
    __device__ __forceinline__ void advance(std::int64_t elements) { from_ += elements; }

   private:
    bool along_k_;
    int line_, k_, step_line_, step_k_, end_k_;
    const Element* from_;
    std::int64_t step_;
    Element value_[kCount];
};

template <class Policy, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerSm)
    outer_kernel(const __grid_constant__ GemmArgs args, const __grid_constant__ Epilogue epilogue,
                 const __grid_constant__ device::TileScheduler tiles,
                 const __grid_constant__ int block_rows, std::int64_t index) {
    using Acc = typename Policy::Acc;
    constexpr OuterTile kTile = Policy::kTile;
    constexpr int kCols = Policy::kCols, kWarps = Policy::kWarps, kVector = Policy::kVector;
    constexpr int kGroups = Policy::kGroups, kThreadRows = Policy::kThreadRows;
    constexpr int kSpare = kTile.spare_cols();
    constexpr int kRoundK = 16;  // that are loaded together
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    constexpr int kTogether = kThreadRows / 2;  // that are multiplied together: all of them spill
#else
    constexpr int kTogether = kThreadRows;
#endif
    static_assert(kWarps * sizeof(Acc) % kSectorBytes == 0, "a warp's rows lie alike in sectors");
    using RowOfA = device::Vector<Acc, kVector>[kTile.pitch_a() / kVector];
    using RowOfB = Acc[kTile.pitch_b()];
    extern __shared__ __align__(16) unsigned char shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    RowOfA* const a = reinterpret_cast<RowOfA*>(shared) + warp * kThreadRows;
    RowOfB* const b = reinterpret_cast<RowOfB*>(shared + Policy::kRows * sizeof(RowOfA));
    const device::Tile tile = tiles.tile(index + blockIdx.x);
    const std::int64_t first_row = static_cast<std::int64_t>(tile.m) * block_rows;
    const int before = outer_column_step<Policy>(args) - 1;  // columns that may be, at the begin
    const std::int64_t first_col = static_cast<std::int64_t>(tile.n) * kCols - before;
    const int k = static_cast<int>(args.k);
    const int log_k = 32 - __clz(max(k, kVector) - 1);
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;

    // The warp's rows of A: of a tile on their way while those of the one before are multiplied.
    LinesOnTheWay<Acc, kThreadRows, 32, kRoundK> rows(
        lane,
        static_cast<const Acc*>(args.a.data) +
            batch_offset(args.batch, args.a.batch_stride, tile.slice) +
            (first_row + warp) * args.a.row_stride,
        kWarps * args.a.row_stride, args.a.col_stride, k, log_k);
    int rows_left = static_cast<int>(min(args.m - first_row, std::int64_t{block_rows})) - warp;
    const auto load_rows = [&](int round) {
        rows.load(round, 0, (rows_left + kWarps - 1) / kWarps);
    };
    const auto store_rows = [&](int round) {
        rows.store(round, log_k, [&](int row, int at, Acc value) {
            a[row][at / kVector].element[at % kVector] = value;
        });
    };
    load_rows(0);

    // The block's columns of B, for all of its tiles.
    const int first = static_cast<int>(max(-first_col, std::int64_t{0}));
    const int end = static_cast<int>(min(args.n - first_col, std::int64_t{kCols + kSpare}));
    {
        const Acc* b_data = static_cast<const Acc*>(args.b.data) +
                            batch_offset(args.batch, args.b.batch_stride, tile.slice) +
                            first_col * args.b.col_stride;
        LinesOnTheWay<Acc, kCols, Policy::kThreads, kRoundK> cols(
            threadIdx.x, b_data, args.b.col_stride, args.b.row_stride, k, log_k);
        LinesOnTheWay<Acc, kSpare, Policy::kThreads, Policy::kBlockK> more(
            threadIdx.x, b_data + kCols * args.b.col_stride, args.b.col_stride, args.b.row_stride,
            k, log_k);
        more.load(0, 0, end - kCols);
#pragma unroll 1
        for (int round = 0; round * kRoundK < 1 << log_k; ++round) {
            cols.load(round, first, end);
            cols.store(round, log_k, [&](int col, int at, Acc value) { b[at][col] = value; });
        }
        more.store(0, log_k, [&](int col, int at, Acc value) { b[at][kCols + col] = value; });
    }
    __syncthreads();

    const epilogue::Output<Epilogue> output(epilogue, args, tile.slice);
    // The warp's first column in shared memory: the next address that is a multiple of a sector.
    const auto its_d = reinterpret_cast<std::uintptr_t>(args.d.data) / sizeof(Acc) +
                       batch_offset(args.batch, args.d.batch_stride, tile.slice) +
                       (first_row + warp) * args.d.row_stride;
    const int its_first = before - (static_cast<int>(its_d) & before);
    const int groups = min((end - its_first + 31) / 32, kGroups);
    const std::int64_t col = first_col + its_first + lane;
    std::int64_t row = first_row + warp;
#pragma unroll 1
    for (; rows_left > 0; row += Policy::kRows) {
        store_rows(0);
#pragma unroll 1
        for (int round = 1; round * kRoundK < 1 << log_k; ++round) {
            load_rows(round);
            store_rows(round);
        }
        __syncwarp();
        const int its_rows = rows_left;
        rows_left -= Policy::kRows;
        rows.advance(Policy::kRows * args.a.row_stride);
        load_rows(0);

        Acc acc[kThreadRows][kGroups] = {};
        const auto multiply = [&](auto its_groups) {
            constexpr int kIts = its_groups;
#pragma unroll 1
            for (int at = 0; at < k; at += kVector) {
#pragma unroll
                for (int first = 0; first < kThreadRows; first += kTogether) {
                    device::Vector<Acc, kVector> values[kTogether];
#pragma unroll
                    for (int r = 0; r < kTogether; ++r) values[r] = a[first + r][at / kVector];
#pragma unroll
                    for (int s = 0; s < kVector; ++s) {
                        Acc column[kIts];
#pragma unroll
                        for (int j = 0; j < kIts; ++j) {
                            column[j] = b[at + s][its_first + lane + 32 * j];
                        }
#pragma unroll
                        for (int r = 0; r < kTogether; ++r) {
#pragma unroll
                            for (int step = 0; step < kIts; ++step) {
                                // Forth and back: see ThreadTile::multiply() (gemm_kernel.cuh).
                                const int j = r % 2 ? kIts - 1 - step : step;
                                multiply_add(acc[first + r][j], values[r].element[s], column[j]);
                            }
                        }
                    }
                }
            }
        };
        if (groups == 1) {
            multiply(std::integral_constant<int, 1>());
        } else if (groups == 2 && kGroups > 2) {
            multiply(std::integral_constant<int, 2>());
        } else {
            multiply(std::integral_constant<int, kGroups>());
        }
        if (rows_left <= 0) device::release_successor();
        __syncwarp();  // A may be written again

        // A loop that brings the next group to the front keeps the code of the store small.
        std::int64_t its_col = col;
#pragma unroll 1
        for (int j = 0; j < groups; ++j, its_col += 32) {
            Acc strip[kThreadRows][1];
#pragma unroll
            for (int r = 0; r < kThreadRows; ++r) strip[r][0] = acc[r][0];
            if (its_col >= 0 && its_col < args.n) {
                output.template store_as<Acc>(row, kWarps, its_rows, its_col, 1, strip);
            }
#pragma unroll
            for (int r = 0; r < kThreadRows; ++r) {
#pragma unroll
                for (int next = 1; next < kGroups; ++next) acc[r][next - 1] = acc[r][next];
            }
        }
    }
}

}  // namespace tcgemm::simt
