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

// The elements of B that a thread multiplies, set after set. What does not exist is zero.
template <class Policy, Major kMajor>
class SetsOfB {
    using Element = typename Policy::Element;
    using Its = Loaded<typename Policy::Numbers>;
    using My = Threads<Policy, kMajor>;
    static constexpr bool kAlongK = kMajor == Major::k;

   public:
    using Set = typename Its::Raw[My::kSteps][My::kCols];

    // `data`: B's first element of the block; `cols` x `k` of it exist.
    __device__ SetsOfB(const Element* data, const MatrixView& b, int cols, int k) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int first_k = My::k(warp, lane, 0), first_col = My::col(warp, lane, 0);
        k_left_ = k - first_k;
        cols_left_ = cols - first_col;
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

template <class Policy, Major kMajor, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerSm)
    few_rows_kernel(const __grid_constant__ GemmArgs args,
                    const __grid_constant__ Epilogue epilogue,
                    const __grid_constant__ device::TileScheduler tiles,
                    const __grid_constant__ KRange split, std::int64_t tile) {
    using Element = typename Policy::Element;
    using Acc = typename Policy::Acc;
    using My = Threads<Policy, kMajor>;
    using B = SetsOfB<Policy, kMajor>;
    using Its = Loaded<typename Policy::Numbers>;
    constexpr int kRows = Policy::kRows, kCols = My::kCols;
    __shared__ FewRowsShared<Policy, kMajor> shared;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    using Place = device::TilePlace<kRows, My::kBlockCols>;
    tile += blockIdx.x;
    const Place place(tiles.tile(tile), args, split);
    const std::int64_t k0 = place.part * split.k_per_split;
    const int k = static_cast<int>(min(split.k_per_split, args.k - k0));
    // What a thread reads is found while the predecessor still runs.
    B b(static_cast<const Element*>(args.b.data) +
            batch_offset(args.batch, args.b.batch_stride, place.batch) +
            place.n * args.b.col_stride + k0 * args.b.row_stride,
        args.b, place.cols, k);
    const Element* a = static_cast<const Element*>(args.a.data) +
                       batch_offset(args.batch, args.a.batch_stride, place.batch) +
                       place.m * args.a.row_stride + (k0 + thread) * args.a.col_stride;
    // A thread's column of A for the block of kBlockK that `k_left` values of k are left from.
    typename Its::Raw column[kRows];
    const auto load_a = [&](int k_left) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const bool inside = r < place.rows && thread < k_left;
            column[r] = 0;
            if (inside) column[r] = Its::from(a + r * args.a.row_stride);
        }
        a += Policy::kBlockK * args.a.col_stride;
    };

    // Main loop: the next set of B and the next block of A are on their way while one is
    // multiplied.
    constexpr int kPairK = 2 * My::kSetK;
    static_assert(Policy::kBlockK % kPairK == 0, "a block has whole pairs of sets");
    typename B::Set set[2];
    Acc acc[kRows * kCols] = {};
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;
    b.load(set[0]);
    load_a(k);
    shared.a[0].put(thread, column);
    __syncthreads();
    int stage = 0;
#pragma unroll 1
    for (int k_left = k; k_left > 0; k_left -= Policy::kBlockK, stage ^= 1) {
        load_a(k_left - Policy::kBlockK);
#pragma unroll 1
        for (int pair = 0; pair < Policy::kBlockK; pair += kPairK) {
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                b.load(set[s ^ 1]);
                const int k_of_set = pair + s * My::kSetK + My::k(warp, lane, 0);
#pragma unroll
                for (int step = 0; step < My::kSteps; ++step) {
                    Acc value[kRows];
                    shared.a[stage].get(k_of_set + step * My::kStepK, value);
#pragma unroll
                    for (int j = 0; j < kCols; ++j) {
                        const Acc factor = Its::value(set[s][step][j]);
#pragma unroll
                        for (int r = 0; r < kRows; ++r) {
                            multiply_add(acc[r * kCols + j], value[r], factor);
                        }
                    }
                }
            }
        }
        shared.a[stage ^ 1].put(thread, column);
        __syncthreads();
    }

    device::release_successor();
    // Computed again: kept, it would cost registers in the main loop.
    tile = device::ptx::opaque(tile);
    const Place to(tiles.tile(tile), args, split);
    // The block's sums, then those of all parts of K.
    constexpr int kSums = kRows * My::kBlockCols;
    if constexpr (kMajor == Major::k) {
        constexpr int kLanes = 32 / (kRows * kCols);  // that have the same sum
        reduce_lanes(acc);
        const int i = lane / kLanes;
        const int its = i / kCols * My::kBlockCols + My::col(warp, lane, i % kCols);
        if (lane % kLanes == 0) shared.sums[0][its] = acc[0];
        __syncthreads();
    } else {
#pragma unroll
        for (int i = 0; i < kRows * kCols; ++i) {
            shared.sums[warp][i / kCols * My::kBlockCols + My::col(warp, lane, i % kCols)] = acc[i];
        }
        __syncthreads();
        for (int i = thread; i < kSums; i += Policy::kThreads) {
            Acc sum = shared.sums[0][i];
#pragma unroll
            for (int w = 1; w < Policy::kWarps; ++w) sum += shared.sums[w][i];
            shared.sums[0][i] = sum;
        }
    }
    if (split.split_k > 1) {
        const PartsOfK<Acc, kSums, Policy::kThreads> parts(
            args.workspace, split, tiles.per_slice() * args.batch.count, tile);
        if (!parts.add_up(to.part, shared.sums)) return;
    }
    const epilogue::Output<Epilogue> output(epilogue, args, to.batch);
#pragma unroll 1
    for (int i = thread; i < kSums; i += Policy::kThreads) {
        const int row = i / My::kBlockCols, col = i % My::kBlockCols;
        if (row >= to.rows || col >= to.cols) continue;
        const typename Epilogue::Value value[1] = {shared.sums[0][i]};
        output.template store<1>(to.m + row, to.n + col, value, 1);
    }
}

}  // namespace tcgemm::simt
