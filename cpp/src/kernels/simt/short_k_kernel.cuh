// Few rows by a B of a short K, on CUDA cores: a thread has whole columns, from its loads of B to
// its stores of D, so that nothing is exchanged or waited for but A.
#pragma once

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

// Which of its warp's columns a thread has: neighbours where they are loaded together, or else
// those with which the lanes lie side by side.
template <class Policy, LoadsOfB kLoads>
struct Columns {
    static constexpr bool kTogether = kLoads == LoadsOfB::vectors_along_n;
    static constexpr int kCols = Policy::cols(kLoads), kStep = kTogether ? 1 : 32;
    static constexpr int kOfWarp = 32 * kCols;
    __device__ static int first() { return threadIdx.x % 32 * (kTogether ? kCols : 1); }
};

// kSteps values of k of a thread's columns. What does not exist is zero.
template <class Policy, LoadsOfB kLoads>
class ColumnsOfB {
    using Element = typename Policy::Element;
    using Its = Loaded<typename Policy::Numbers>;
    using Vector = device::Vector<Element, Policy::kVector>;
    using My = Columns<Policy, kLoads>;
    static constexpr int kCols = My::kCols;
    static constexpr bool kVectors = kLoads != LoadsOfB::elements;
    static constexpr bool kAlongN = kLoads == LoadsOfB::vectors_along_n;

   public:
    static constexpr int kSteps = kLoads == LoadsOfB::vectors_along_k ? Policy::kVector
                                  : sizeof(Element) == 8              ? 2
                                                                      : 4;
    using Set = std::conditional_t<kVectors, Vector[kAlongN ? kSteps : kCols],
                                   typename Its::Raw[kSteps][kCols]>;

    // `data`: B's first element of the warp; `cols` x `k` of it exist.
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
        if constexpr (kAlongN) {
            const Element* from = data_;
#pragma unroll
            for (int s = 0; s < kSteps; ++s, from += row_stride) {
                set[s] = {};
                if (s < k_left_ && cols_left_ > 0) set[s] = *reinterpret_cast<const Vector*>(from);
            }
            data_ = from;
        } else if constexpr (kLoads == LoadsOfB::vectors_along_k) {
            const Element* from = data_;
#pragma unroll
            for (int j = 0; j < kCols; ++j, from += col_step) {
                set[j] = {};
                if (k_left_ > 0 && j * My::kStep < cols_left_) {
                    set[j] = *reinterpret_cast<const Vector*>(from);
                }
            }
            data_ += kSteps;
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
        if constexpr (!kVectors) {
            return Its::value(set[s][j]);
        } else {
            return Its::value(Its::from(&set[kAlongN ? s : j].element[kAlongN ? j : s]));
        }
    }

   private:
    const Element* data_;  // the thread's first element of the next set
    std::int64_t row_stride_, col_step_;
    int cols_left_, k_left_;
};

template <class Policy, LoadsOfB kLoads, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads, Policy::blocks_per_sm(kLoads))
    short_k_kernel(const __grid_constant__ GemmArgs args, const __grid_constant__ Epilogue epilogue,
                   const __grid_constant__ device::TileScheduler tiles,
                   const __grid_constant__ KSplit, std::int64_t tile) {
    using Element = typename Policy::Element;
    using Acc = typename Policy::Acc;
    using B = ColumnsOfB<Policy, kLoads>;
    using Its = Loaded<typename Policy::Numbers>;
    using My = Columns<Policy, kLoads>;
    constexpr int kRows = Policy::kRows, kCols = My::kCols, kBlockK = Policy::kBlockK;
    constexpr int kHalf = kRows / 2;  // of the rows: what is read of A at once
    using HalfColumn = device::Vector<Acc, kHalf>;
    constexpr int kWarps = Policy::kThreads / 32;
    constexpr int kSums = kRows * (My::kOfWarp + 4);
    __shared__ HalfColumn a[2][kBlockK];
    __shared__ __align__(16) Acc sums[kWarps][kSums];
    const int warp = threadIdx.x / 32;
    const device::TilePlace<kRows, Policy::block_cols(kLoads)> place(tiles.tile(tile + blockIdx.x),
                                                                     args, KSplit{});
    const auto k = static_cast<int>(args.k);
    const std::int64_t col = place.n + warp * My::kOfWarp;
    const int cols = place.cols - warp * My::kOfWarp;  // of the warp; or none
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;

    B b(static_cast<const Element*>(args.b.data) +
            batch_offset(args.batch, args.b.batch_stride, place.batch) + col * args.b.col_stride,
        args.b, cols, k);
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
    const auto multiply = [&](const typename B::Set& set, int first_k) {
#pragma unroll
        for (int s = 0; s < B::kSteps; ++s) {
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

    // Main loop: the next set of B is on its way while one is multiplied.
    static_assert(kBlockK % (2 * B::kSteps) == 0, "a block of A has whole pairs of sets");
    typename B::Set set[2];
    b.load(set[0]);
    for (int first_k = 0; first_k < k; first_k += kBlockK) {
        if (first_k > 0) __syncthreads();
        stage_a(first_k);
        __syncthreads();
        const int its_k = min(kBlockK, k - first_k);
#pragma unroll 1
        for (int at = 0; at < its_k; at += 2 * B::kSteps) {
            b.load(set[1]);
            multiply(set[0], at);
            if (at + B::kSteps >= its_k) break;
            b.load(set[0]);
            multiply(set[1], at + B::kSteps);
        }
    }

    // Through shared memory to D, line by line: rows or columns, whichever are contiguous.
    device::release_successor();
    if (cols <= 0) return;
    epilogue::Output<Epilogue> output(epilogue, args, place.batch);
    const bool by_columns = output.has_contiguous_columns();
    const int pitch = by_columns ? kRows : My::kOfWarp + 4;  // from line to line
    const int row_step = by_columns ? 1 : pitch, col_step = by_columns ? pitch : 1;
#pragma unroll
    for (int j = 0; j < kCols; ++j) {
        Acc* const to = sums[warp] + (My::first() + j * My::kStep) * col_step;
#pragma unroll
        for (int r = 0; r < kRows; ++r) to[r * row_step] = acc[r / kHalf][j].element[r % kHalf];
    }
    __syncwarp();
    if (by_columns) output.turn();
    const std::int64_t line = by_columns ? col : place.m, first = by_columns ? place.m : col;
    const int lines = by_columns ? cols : place.rows, length = by_columns ? place.rows : cols;
    const int whole = by_columns ? kRows : My::kOfWarp;  // a length
    const auto store = [&](auto vector) {
        constexpr int kVector = decltype(vector)::value;
        const int log2 = 31 - __clz(whole / kVector);  // vectors of a whole line
#pragma unroll 1
        for (int i = threadIdx.x % 32; i < lines << log2; i += 32) {
            const int its_line = i >> log2, at = (i - (its_line << log2)) * kVector;
            if (at >= length) continue;
            const auto from = *reinterpret_cast<const device::Vector<Acc, kVector>*>(
                sums[warp] + its_line * pitch + at);
            typename Epilogue::Value value[kVector];
#pragma unroll
            for (int e = 0; e < kVector; ++e) value[e] = from.element[e];
            output.template store<kVector>(line + its_line, first + at, value,
                                           min(kVector, length - at));
        }
    };
    constexpr int kVector = 16 / sizeof(Acc);
    if (output.template vectorizable<kVector>()) {
        store(std::integral_constant<int, kVector>());
    } else {
        store(std::integral_constant<int, 1>());
    }
}

}  // namespace tcgemm::simt
