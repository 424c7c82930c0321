// The pass of packing: reads an operand of any strides, rounds it and writes it with neighbouring
// elements in vectors. Memory bound: each element is read and written once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "core/runtime.hpp"
#include "pack/pack.hpp"

namespace tcgemm::pack {

// To nearest even, once: double goes to the half formats directly, all narrower types through
// float, which holds them exactly.
template <class To, class From>
__device__ __forceinline__ To convert(From value) {
    if constexpr (std::is_same_v<To, From>) return value;
    else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, __half>)
        return __double2half(value);
    else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, __nv_bfloat16>)
        return __double2bfloat16(value);
    else if constexpr (std::is_same_v<From, double>) return static_cast<To>(value);
    else if constexpr (std::is_same_v<To, __half>)
        return __float2half_rn(static_cast<float>(value));
    else if constexpr (std::is_same_v<To, __nv_bfloat16>)
        return __float2bfloat16_rn(static_cast<float>(value));
    else return static_cast<To>(static_cast<float>(value));
}

template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector {
    T element[N];
};

// A matrix as (outer, inner): inner elements are neighbours in the target.
struct PackArgs {
    const void* source;
    void* target;
    std::int64_t outer, inner;
    std::int64_t source_outer_stride, source_inner_stride;
    std::int64_t target_outer_stride;  // a multiple of 16 bytes
    BatchShape batch;
    std::int64_t source_batch_stride[kMaxBatchDims], target_batch_stride[kMaxBatchDims];
    std::int64_t tiles_outer, tiles_inner;
    bool along_outer;  // neighbouring threads read neighbouring outer: the pass transposes
    bool vectorised;   // the source's inner elements can be read in vectors
};

inline constexpr int kTileOuter = 32, kTileInner = 128, kThreads = 256;

// Through a tile in shared memory, so that both the reads and the writes of a warp are neighbours,
// whatever the strides and the alignment of the source.
template <class From, class To>
__global__ void __launch_bounds__(kThreads) pack_kernel(const __grid_constant__ PackArgs args) {
    constexpr int kElements = kTileOuter * kTileInner / kThreads;  // a thread
    constexpr int kReadVector = 4;
    constexpr int kWriteVector = 16 / sizeof(To);
    constexpr int kPad = kWriteVector;  // keeps rows aligned and off each other's banks
    __shared__ alignas(16) To tile[kTileOuter][kTileInner + kPad];
    const int thread = threadIdx.x;

    const std::int64_t tiles = args.tiles_outer * args.tiles_inner;
    for (std::int64_t index = blockIdx.x; index < tiles * args.batch.count; index += gridDim.x) {
        const std::int64_t batch = index / tiles, in_batch = index - batch * tiles;
        const std::int64_t tile_outer = in_batch / args.tiles_inner;
        const std::int64_t outer0 = tile_outer * kTileOuter;
        const std::int64_t inner0 = (in_batch - tile_outer * args.tiles_inner) * kTileInner;
        const int outer_left =
            static_cast<int>(min(args.outer - outer0, std::int64_t{kTileOuter}));
        const int inner_left =
            static_cast<int>(min(args.inner - inner0, std::int64_t{kTileInner}));

        const From* source = static_cast<const From*>(args.source) +
                             batch_offset(args.batch, args.source_batch_stride, batch) +
                             outer0 * args.source_outer_stride + inner0 * args.source_inner_stride;
        To* target = static_cast<To*>(args.target) +
                     batch_offset(args.batch, args.target_batch_stride, batch) +
                     outer0 * args.target_outer_stride + inner0;

        // All reads of a thread are in flight before the first one is used.
        From value[kElements];
        if (args.vectorised) {
            constexpr int kAcross = kTileInner / kReadVector, kStep = kThreads / kAcross;
            const int inner = thread % kAcross * kReadVector;
            const From* from = source + thread / kAcross * args.source_outer_stride + inner;
#pragma unroll
            for (int i = 0; i < kElements / kReadVector; ++i) {
                const int outer = thread / kAcross + i * kStep;
                Vector<From, kReadVector> vector{};
                if (outer < outer_left && inner + kReadVector <= inner_left) {
                    vector = *reinterpret_cast<const Vector<From, kReadVector>*>(from);
                } else {
#pragma unroll
                    for (int j = 0; j < kReadVector; ++j) {
                        if (outer < outer_left && inner + j < inner_left) {
                            vector.element[j] = from[j];
                        }
                    }
                }
#pragma unroll
                for (int j = 0; j < kReadVector; ++j) value[i * kReadVector + j] = vector.element[j];
                from += kStep * args.source_outer_stride;
            }
#pragma unroll
            for (int i = 0; i < kElements / kReadVector; ++i) {
                Vector<To, kReadVector> vector;
#pragma unroll
                for (int j = 0; j < kReadVector; ++j) {
                    vector.element[j] = convert<To>(value[i * kReadVector + j]);
                }
                *reinterpret_cast<Vector<To, kReadVector>*>(
                    &tile[thread / kAcross + i * kStep][inner]) = vector;
            }
        } else {
            // The thread's elements: a column or a row of the tile apart.
            const int outer = args.along_outer ? thread % kTileOuter : thread / kTileInner;
            const int inner = args.along_outer ? thread / kTileOuter : thread % kTileInner;
            const int outer_step = args.along_outer ? 0 : kThreads / kTileInner;
            const int inner_step = args.along_outer ? kThreads / kTileOuter : 0;
            const std::int64_t step =
                outer_step * args.source_outer_stride + inner_step * args.source_inner_stride;
            const From* from =
                source + outer * args.source_outer_stride + inner * args.source_inner_stride;
#pragma unroll
            for (int i = 0; i < kElements; ++i, from += step) {
                const bool inside =
                    outer + i * outer_step < outer_left && inner + i * inner_step < inner_left;
                value[i] = inside ? *from : From(0);
            }
#pragma unroll
            for (int i = 0; i < kElements; ++i) {
                tile[outer + i * outer_step][inner + i * inner_step] = convert<To>(value[i]);
            }
        }
        __syncthreads();

        // The padding at the end of a row is written with zeros, to the end of the last vector.
        constexpr int kAcross = kTileInner / kWriteVector, kStep = kThreads / kAcross;
        const int inner = thread % kAcross * kWriteVector;
        if (inner < inner_left) {
#pragma unroll
            for (int outer = thread / kAcross; outer < kTileOuter; outer += kStep) {
                if (outer < outer_left) {
                    *reinterpret_cast<uint4*>(target + outer * args.target_outer_stride + inner) =
                        *reinterpret_cast<const uint4*>(&tile[outer][inner]);
                }
            }
        }
        __syncthreads();
    }
}

template <class From, class To>
void launch_pack(PackArgs args, StreamView stream) {
    args.along_outer =
        std::abs(args.source_outer_stride) < std::abs(args.source_inner_stride);
    constexpr int kReadVector = 4;
    args.vectorised = args.source_inner_stride == 1 && args.source_outer_stride % kReadVector == 0 &&
                      reinterpret_cast<std::uintptr_t>(args.source) %
                              alignof(Vector<From, kReadVector>) == 0;
    for (int dim = 0; dim < args.batch.rank; ++dim) {
        args.vectorised = args.vectorised && args.source_batch_stride[dim] % kReadVector == 0;
    }
    constexpr std::int64_t kMaxGrid = (std::int64_t{1} << 31) - 1;
    const std::int64_t blocks =
        std::min(args.tiles_outer * args.tiles_inner * args.batch.count, kMaxGrid);
    pack_kernel<From, To><<<static_cast<unsigned>(blocks), kThreads, 0, stream.get()>>>(args);
    runtime::check_launch("pack");
}

}  // namespace tcgemm::pack
