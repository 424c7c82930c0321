// Few rows by a B of a short K, on CUDA cores: a thread has whole columns, from its loads of B to
// its stores of D, so that nothing is exchanged or waited for but A.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/device/launch.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/halves.hpp"
#include "kernels/simt/loaded.cuh"
#include "kernels/simt/multiply_add.cuh"
#include "kernels/simt/short_k.hpp"
#include "kernels/split_k/tile_place.cuh"

namespace tcgemm::simt {

// Which columns of a block a thread has: neighbours where they are loaded together, or else those
// with which the lanes lie side by side.
template <class Policy, LoadsOfB kLoads>
struct Columns {
    static constexpr bool kTogether = kLoads == LoadsOfB::vectors;
    static constexpr int kStep = kTogether ? 1 : Policy::kThreads;
    __device__ static int first() { return threadIdx.x * (kTogether ? Policy::kCols : 1); }
};

// kSteps values of k of a thread's columns. What does not exist is zero.
template <class Policy, LoadsOfB kLoads>
class ColumnsOfB {
    using Element = typename Policy::Element;
    using Its = Loaded<typename Policy::Numbers>;
    using My = Columns<Policy, kLoads>;
    static constexpr int kCols = Policy::kCols;
    using Vector = device::Vector<Element, kCols>;

   public:
    static constexpr int kSteps = Policy::kSteps;
    using Set = std::conditional_t<My::kTogether, Vector[kSteps], typename Its::Raw[kSteps][kCols]>;

    // `data`: B's first element of the block; `cols` x `k` of it exist.
    __device__ ColumnsOfB(const Element* data, const MatrixView& b, int cols, int k)
        : data_(data + My::first() * b.col_stride),
          row_stride_(b.row_stride),
          col_step_(My::kStep * b.col_stride),
          cols_left_(cols - My::first()),
          k_left_(k) {}

    __device__ __forceinline__ void load(Set& set) {
        // Multiples of the strides, computed ahead, would take up the registers.
        std::int64_t row_stride = row_stride_, col_step = col_step_;
        asm volatile("" : "+l"(row_stride), "+l"(col_step));
        if constexpr (My::kTogether) {
            const Element* from = data_;
#pragma unroll
            for (int s = 0; s < kSteps; ++s, from += row_stride) {
                set[s] = {};
                if (s < k_left_ && cols_left_ > 0) set[s] = *reinterpret_cast<const Vector*>(from);
            }
            data_ = from;
        } else {
#pragma unroll
            for (int s = 0; s < kSteps; ++s) {
                const Element* from = data_;
#pragma unroll
                for (int j = 0; j < kCols; ++j, from += col_step) {
                    set[s][j] = 0;
                    if (s < k_left_ && j * My::kStep < cols_left_) set[s][j] = Its::from(from);
                }
                data_ += row_stride;
            }
        }
        k_left_ -= kSteps;
    }

    __device__ __forceinline__ static typename Policy::Acc value(const Set& set, int s, int j) {
        if constexpr (My::kTogether) {
            return Its::value(Its::from(&set[s].element[j]));
        } else {
            return Its::value(set[s][j]);
        }
    }

   private:
    const Element* data_;  // the thread's first element of the next set
    std::int64_t row_stride_, col_step_;
    int cols_left_, k_left_;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kMostShortKBlocks = 4;  // on an SM: their threads need more registers
#else
inline constexpr int kMostShortKBlocks = 5;
#endif

template <class Policy, LoadsOfB kLoads, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads,
                                  std::min(Policy::kBlocksPerSm, kMostShortKBlocks))
    short_k_kernel(const __grid_constant__ GemmArgs args, const __grid_constant__ Epilogue epilogue,
                   const __grid_constant__ device::TileScheduler tiles,
                   const __grid_constant__ KRange, std::int64_t tile) {
    using Element = typename Policy::Element;
    using Acc = typename Policy::Acc;
    using B = ColumnsOfB<Policy, kLoads>;
    using Its = Loaded<typename Policy::Numbers>;
    using My = Columns<Policy, kLoads>;
    constexpr int kRows = Policy::kRows, kCols = Policy::kCols, kBlockK = Policy::kBlockK;
    constexpr int kHalf = kRows / 2;  // of the rows: what is read of A at once
    using HalfColumn = device::Vector<Acc, kHalf>;
    __shared__ HalfColumn a[2][kBlockK];
    __shared__ HalfColumn sums[2 * kCols][Policy::kThreads];
    const device::TilePlace<kRows, Policy::kBlockCols> place(tiles.tile(tile + blockIdx.x), args,
                                                             KRange{});
    const auto k = static_cast<int>(args.k);
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;

    B b(static_cast<const Element*>(args.b.data) +
            batch_offset(args.batch, args.b.batch_stride, place.batch) +
            place.n * args.b.col_stride,
        args.b, place.cols, k);
    const Element* const a_data = static_cast<const Element*>(args.a.data) +
                                  batch_offset(args.batch, args.a.batch_stride, place.batch) +
                                  place.m * args.a.row_stride;
    const auto stage_a = [&](int first_k) {
#pragma unroll
        for (int i = threadIdx.x; i < kRows * kBlockK; i += Policy::kThreads) {
            const int row = i / kBlockK, its_k = i % kBlockK;
            Acc value = 0;
            if (row < place.rows && first_k + its_k < k) {
                value = Its::value(Its::from(a_data + row * args.a.row_stride +
                                             (first_k + its_k) * args.a.col_stride));
            }
            a[row / kHalf][its_k].element[row % kHalf] = value;
        }
    };
    HalfColumn acc[2][kCols] = {};
    const auto multiply = [&](const typename B::Set& set, int first_k, int its_k) {
#pragma unroll
        for (int s = 0; s < B::kSteps; ++s) {
            if (s % 4 == 0 && s >= its_k) break;
            Acc factor[kCols];
#pragma unroll
            for (int j = 0; j < kCols; ++j) factor[j] = B::value(set, s, j);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (half > 0 && place.rows <= kHalf) break;
                const HalfColumn rows = a[half][first_k + s];
#pragma unroll
                for (int j = 0; j < kCols; ++j) {
#pragma unroll
                    for (int r = 0; r < kHalf; ++r) {
                        multiply_add(acc[half][j].element[r], rows.element[r], factor[j]);
                    }
                }
            }
        }
    };

    // Main loop. A warp waits for its set of B while others multiply.
    static_assert(kBlockK % B::kSteps == 0, "a block of A has whole sets");
    typename B::Set set;
    b.load(set);
    for (int first_k = 0; first_k < k; first_k += kBlockK) {
        if (first_k > 0) __syncthreads();
        stage_a(first_k);
        __syncthreads();
#pragma unroll 1
        for (int at = 0; at < kBlockK && first_k + at < k; at += B::kSteps) {
            multiply(set, at, k - first_k - at);
            b.load(set);
        }
    }

    // Sums that lie in shared memory can be stored by loops, whose code is short.
    device::release_successor();
#pragma unroll
    for (int i = 0; i < 2 * kCols; ++i) sums[i][threadIdx.x] = acc[i / kCols][i % kCols];
    epilogue::Output<Epilogue> output(epilogue, args, place.batch);
    const bool by_columns = output.has_contiguous_columns();
    if (by_columns) output.turn();
    const std::int64_t col = place.n + My::first();
    const int cols = place.cols - My::first();
    const auto store_rows = [&](auto of_d) {  // each of neighbouring columns
        using T = decltype(of_d);
#pragma unroll 1
        for (int half = 0; half < 2; ++half) {
            Acc strip[kHalf][kCols];
#pragma unroll
            for (int j = 0; j < kCols; ++j) {
                const HalfColumn column = sums[half * kCols + j][threadIdx.x];
#pragma unroll
                for (int r = 0; r < kHalf; ++r) strip[r][j] = column.element[r];
            }
            const int rows = place.rows - half * kHalf;
            if (rows <= 0 || cols <= 0) break;
            output.template store_as<T>(place.m + half * kHalf, 1, rows, col, min(cols, kCols),
                                        strip);
        }
    };
    const auto store_columns = [&](auto of_d) {  // one after the other
        using T = decltype(of_d);
#pragma unroll 1
        for (int i = 0; i < 2 * kCols; ++i) {
            const int half = i / kCols, j = i % kCols * My::kStep;
            const HalfColumn column = sums[i][threadIdx.x];
            const std::int64_t row = place.m + half * kHalf;
            const int rows = place.rows - half * kHalf;
            if (rows <= 0 || j >= cols) continue;
            if (by_columns) {
                Acc strip[1][kHalf];
#pragma unroll
                for (int r = 0; r < kHalf; ++r) strip[0][r] = column.element[r];
                output.template store_as<T>(col + j, 1, 1, row, min(rows, kHalf), strip);
            } else {
                Acc strip[kHalf][1];
#pragma unroll
                for (int r = 0; r < kHalf; ++r) strip[r][0] = column.element[r];
                output.template store_as<T>(row, 1, rows, col + j, 1, strip);
            }
        }
    };
    const auto store = [&](auto of_d) {
        My::kTogether && !by_columns ? store_rows(of_d) : store_columns(of_d);
    };
    if constexpr (!std::is_same_v<Element, Acc>) {
        if (args.d.dtype == Policy::Numbers::kDType) return store(Element());
    }
    store(Acc());
}

}  // namespace tcgemm::simt
