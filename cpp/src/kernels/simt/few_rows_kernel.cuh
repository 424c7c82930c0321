// Few rows by a large B, on CUDA cores: B is read once, element by element, from memory to
// registers, whatever its alignment and stride.
#pragma once

#include <cstdint>

#include "kernels/device/launch.cuh"
#include "kernels/device/ptx/opaque.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/halves.hpp"
#include "kernels/simt/few_rows.hpp"
#include "kernels/simt/few_rows_parts.cuh"
#include "kernels/simt/loaded.cuh"
#include "kernels/simt/multiply_add.cuh"
#include "kernels/split_k/tile_place.cuh"

namespace tcgemm::simt {

// kBlockK columns of A as the multiply-adds take them: the rows of one k side by side, in vectors.
template <class Policy>
struct StagedA {
    using Its = Loaded<typename Policy::Numbers>;
    using Acc = typename Policy::Acc;
    static constexpr int kRows = Policy::kRows;
    static constexpr int kVector = kRows == 1 ? 1 : 16 / static_cast<int>(sizeof(Acc));
    static constexpr int kVectors = kRows / kVector;
    using Vector = device::Vector<Acc, kVector>;

    Vector rows[kVectors][Policy::kBlockK];

    __device__ __forceinline__ void put(int k, const typename Its::Raw (&raw)[kRows]) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            Vector vector;
#pragma unroll
            for (int i = 0; i < kVector; ++i) vector.element[i] = Its::value(raw[v * kVector + i]);
            rows[v][k] = vector;
        }
    }
    __device__ __forceinline__ void get(int k, Acc (&value)[kRows]) const {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            const Vector vector = rows[v][k];
#pragma unroll
            for (int i = 0; i < kVector; ++i) value[v * kVector + i] = vector.element[i];
        }
    }
};

template <class Policy, Major kMajor>
union FewRowsShared {
    using Acc = typename Policy::Acc;
    StagedA<Policy> a[2];  // one is multiplied while the other is filled
    Acc sums[Policy::kWarps][Policy::kRows * Threads<Policy, kMajor>::kBlockCols];  // at the end
    __device__ FewRowsShared() {}
};

// Columns of A on their way to shared memory, kBlockK of them at a time: each thread has one. What
// does not exist is zero.
template <class Policy>
class ColumnsOfA {
    using Element = typename Policy::Element;
    using Its = Loaded<typename Policy::Numbers>;

   public:
    template <class Place>
    __device__ ColumnsOfA(const GemmArgs& args, const Place& place, std::int64_t k0)
        : a_(args.a),
          data_(static_cast<const Element*>(a_.data) +
                element_offset(args.batch, a_, place.batch, place.m, k0 + threadIdx.x)),
          rows_(place.rows) {}

    // That of the next block, which `k_left` values of k are left from.
    __device__ __forceinline__ void load(int k_left) {
#pragma unroll
        for (int r = 0; r < Policy::kRows; ++r) {
            const bool inside = r < rows_ && static_cast<int>(threadIdx.x) < k_left;
            column_[r] = 0;
            if (inside) column_[r] = Its::from(data_ + r * a_.row_stride);
        }
        data_ += Policy::kBlockK * a_.col_stride;
    }
    __device__ __forceinline__ void store(StagedA<Policy>& staged) const {
        staged.put(threadIdx.x, column_);
    }

   private:
    const MatrixView& a_;
    const Element* data_;
    int rows_;
    typename Its::Raw column_[Policy::kRows];
};

// The elements of B that a thread multiplies, set after set. What does not exist is zero.
template <class Policy, Major kMajor>
class SetsOfB {
    using Element = typename Policy::Element;
    using Its = Loaded<typename Policy::Numbers>;
    using My = Threads<Policy, kMajor>;
    static constexpr bool kAlongK = kMajor == Major::k;

   public:
    using Set = typename Its::Raw[My::kSteps][My::kCols];

    // Of the `k` values of k from k0 on.
    template <class Place>
    __device__ SetsOfB(const GemmArgs& args, const Place& place, std::int64_t k0, int k) {
        const MatrixView& b = args.b;
        const Element* const data = static_cast<const Element*>(b.data) +
                                    element_offset(args.batch, b, place.batch, k0, place.n);
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int first_k = My::k(warp, lane, 0), first_col = My::col(warp, lane, 0);
        k_left_ = k - first_k;
        cols_left_ = place.cols - first_col;
        data_ = kAlongK ? data + first_col * b.col_stride + first_k
                        : data + first_k * b.row_stride + first_col;
        stride_ = kAlongK ? b.col_stride : My::kStepK * b.row_stride;
    }

    __device__ __forceinline__ void load(Set& set) {
        constexpr int kLines = kAlongK ? My::kCols : My::kSteps;  // across the unit stride
        constexpr int kAlong = kAlongK ? My::kSteps : My::kCols;
        // Multiples of the stride, computed ahead, would take up the registers.
        const std::int64_t stride = device::ptx::opaque(stride_);
        const Element* from = data_;
#pragma unroll
        for (int line = 0; line < kLines; ++line) {
#pragma unroll
            for (int i = 0; i < kAlong; ++i) {
                const int step = kAlongK ? i : line, j = kAlongK ? line : i;
                const bool inside = step * My::kStepK < k_left_ && j * My::kStepCol < cols_left_;
                set[step][j] = 0;
                if (inside) set[step][j] = Its::from(from + i * 32);
            }
            from += stride;
        }
        data_ = kAlongK ? data_ + My::kSetK : from;
        k_left_ -= My::kSetK;
    }

   private:
    const Element* data_;  // the thread's first element of the next set
    std::int64_t stride_;
    int k_left_, cols_left_;
};

// Adds value[i] of all lanes. A lane keeps the sum of one i, lane / (32 / N), in value[0].
template <int N, class Acc>
__device__ __forceinline__ void reduce_lanes(Acc (&value)[N]) {
    const int lane = threadIdx.x % 32;
    int count = N;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        if (count > 1) {
            count /= 2;
            const bool upper = (lane & distance) != 0;
#pragma unroll
            for (int i = 0; i < N / 2; ++i) {
                if (i >= count) continue;
                const Acc sent = upper ? value[i] : value[i + count];
                const Acc kept = upper ? value[i + count] : value[i];
                value[i] = kept + __shfl_xor_sync(0xffffffff, sent, distance);
            }
        } else {
            value[0] += __shfl_xor_sync(0xffffffff, value[0], distance);
        }
    }
}

// A thread's sums: all rows of its columns, over its values of k.
template <class Policy, Major kMajor>
class FewRowsSums {
    using Acc = typename Policy::Acc;
    using My = Threads<Policy, kMajor>;
    using B = SetsOfB<Policy, kMajor>;
    using Its = Loaded<typename Policy::Numbers>;
    static constexpr int kRows = Policy::kRows, kCols = My::kCols, kCount = kRows * kCols;

   public:
    static constexpr int kOfBlock = kRows * My::kBlockCols;

    // Main loop: the next set of B and the next block of A are on their way while one is
    // multiplied.
    __device__ __forceinline__ void multiply(ColumnsOfA<Policy>& a, B& b, int k,
                                             StagedA<Policy> (&staged)[2]) {
        constexpr int kPairK = 2 * My::kSetK;
        static_assert(Policy::kBlockK % kPairK == 0, "a block has whole pairs of sets");
        const int thread = threadIdx.x;
        const int its_k = My::k(thread / 32, thread % 32, 0);  // its first one of a set
        typename B::Set set[2];
        b.load(set[0]);
        a.load(k);
        a.store(staged[0]);
        __syncthreads();
        int stage = 0;
#pragma unroll 1
        for (int k_left = k; k_left > 0; k_left -= Policy::kBlockK, stage ^= 1) {
            a.load(k_left - Policy::kBlockK);
#pragma unroll 1
            for (int pair = 0; pair < Policy::kBlockK; pair += kPairK) {
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    b.load(set[s ^ 1]);
                    multiply_set(staged[stage], pair + s * My::kSetK + its_k, set[s]);
                }
            }
            a.store(staged[stage ^ 1]);
            __syncthreads();
        }
    }

    // sums[0] becomes the block's: thread i % kThreads has element i.
    __device__ __forceinline__ void add_up(Acc (&sums)[Policy::kWarps][kOfBlock]) {
        const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
        const auto place = [&](int i) {
            return i / kCols * My::kBlockCols + My::col(warp, lane, i % kCols);
        };
        if constexpr (kMajor == Major::k) {
            constexpr int kLanes = 32 / kCount;  // that have the same sum
            reduce_lanes(acc_);
            if (lane % kLanes == 0) sums[0][place(lane / kLanes)] = acc_[0];
            __syncthreads();
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) sums[warp][place(i)] = acc_[i];
            __syncthreads();
            for (int i = thread; i < kOfBlock; i += Policy::kThreads) {
                Acc sum = sums[0][i];
#pragma unroll
                for (int w = 1; w < Policy::kWarps; ++w) sum += sums[w][i];
                sums[0][i] = sum;
            }
        }
    }

   private:
    // By a set of B whose k begin with `its_k` of the staged.
    __device__ __forceinline__ void multiply_set(const StagedA<Policy>& staged, int its_k,
                                                 const typename B::Set& set) {
#pragma unroll
        for (int step = 0; step < My::kSteps; ++step) {
            Acc value[kRows];
            staged.get(its_k + step * My::kStepK, value);
#pragma unroll
            for (int j = 0; j < kCols; ++j) {
                const Acc factor = Its::value(set[step][j]);
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    multiply_add(acc_[r * kCols + j], value[r], factor);
                }
            }
        }
    }

    Acc acc_[kCount] = {};
};

template <class Policy, Major kMajor, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerSm)
    few_rows_kernel(const __grid_constant__ GemmArgs args,
                    const __grid_constant__ Epilogue epilogue,
                    const __grid_constant__ device::TileScheduler tiles,
                    const __grid_constant__ KRange split, std::int64_t tile) {
    using Acc = typename Policy::Acc;
    constexpr int kBlockCols = Threads<Policy, kMajor>::kBlockCols;
    using Place = device::TilePlace<Policy::kRows, kBlockCols>;
    using Sums = FewRowsSums<Policy, kMajor>;
    __shared__ FewRowsShared<Policy, kMajor> shared;
    tile += blockIdx.x;
    const Place place(tiles.tile(tile), args, split);
    const std::int64_t k0 = place.part * split.k_per_split;
    const int k = static_cast<int>(min(split.k_per_split, args.k - k0));
    // What a thread reads is found while the predecessor still runs.
    SetsOfB<Policy, kMajor> b(args, place, k0, k);
    ColumnsOfA<Policy> a(args, place, k0);
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;
    Sums sums;
    sums.multiply(a, b, k, shared.a);
    device::release_successor();

    // Computed again: kept, it would cost registers in the main loop.
    tile = device::ptx::opaque(tile);
    const Place to(tiles.tile(tile), args, split);
    // The block's sums, then those of all parts of K.
    sums.add_up(shared.sums);
    if (split.split_k > 1) {
        const PartsOfK<Acc, Sums::kOfBlock, Policy::kThreads> parts(
            args.workspace, split, tiles.per_slice() * args.batch.count, tile);
        if (!parts.add_up(to.part, shared.sums)) return;
    }
    const epilogue::Output<Epilogue> output(epilogue, args, to.batch);
#pragma unroll 1
    for (int i = threadIdx.x; i < Sums::kOfBlock; i += Policy::kThreads) {
        const int row = i / kBlockCols, col = i % kBlockCols;
        if (row >= to.rows || col >= to.cols) continue;
        const typename Epilogue::Value value[1] = {shared.sums[0][i]};
        output.template store<1>(to.m + row, to.n + col, value, 1);
    }
}

}  // namespace tcgemm::simt
