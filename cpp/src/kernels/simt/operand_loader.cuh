// Moves k-tiles of an operand of any strides from global to shared memory, through registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/vector.cuh"

namespace tcgemm::simt {

using device::Vector;

inline constexpr int kVector = 4;  // elements that a thread moves of each k-tile

// An operand is seen as (outer, k): outer is m for A and n for B, whatever lies neighbouring in
// memory. Computed on the host, so that the kernel finds it in constant memory, not in registers.
struct OperandPath {
    std::int64_t outer_stride = 0, k_stride = 0;
    bool along_k = false;     // neighbouring threads take neighbouring k, otherwise outer
    bool vectorized = false;  // the stride along them is 1, and vectors of kVector are aligned
    int outer_step = 0, k_step = 0;  // from one to the next of a thread's kVector elements
    int last_outer = 0, last_k = 0;  // from the first to the last of them
    int tile_step = 0;               // as outer_step and k_step, in shared memory
    std::int64_t step = 0;           // in global memory
    std::int64_t advance = 0;        // from k-tile to k-tile
};

template <class Element, class Stage, int kBlock, int kBlockK>
class OperandLoader {
    static constexpr int kThreads = kBlock * kBlockK / kVector;
    static_assert(kThreads % kBlock == 0 && kThreads % kBlockK == 0);

   public:
    // The padding spreads a transposing store of 16 x 2 vectors over all 32 banks.
    static constexpr int kStride = kBlock + kVector;
    // [kBlockK][kStride]: outer neighbours lie side by side.
    static constexpr int kTileElements = kBlockK * kStride;

    static OperandPath path(std::int64_t outer_stride, std::int64_t k_stride, bool vectorized) {
        OperandPath path;
        path.outer_stride = outer_stride;
        path.k_stride = k_stride;
        path.vectorized = vectorized;
        path.along_k = vectorized ? k_stride == 1 : std::abs(k_stride) < std::abs(outer_stride);
        if (vectorized) {
            path.outer_step = path.along_k ? 0 : 1;
            path.k_step = path.along_k ? 1 : 0;
        } else {
            path.outer_step = path.along_k ? kThreads / kBlockK : 0;
            path.k_step = path.along_k ? 0 : kThreads / kBlock;
        }
        path.last_outer = (kVector - 1) * path.outer_step;
        path.last_k = (kVector - 1) * path.k_step;
        path.tile_step = path.k_step * kStride + path.outer_step;
        path.step = path.outer_step * outer_stride + path.k_step * k_stride;
        path.advance = kBlockK * k_stride;
        return path;
    }

    // `data` is the element (0, 0) of the block; `outer_left` rows of it lie inside the matrix.
    __device__ __forceinline__ OperandLoader(const OperandPath& path, const Element* data,
                                             std::int64_t outer_left)
        : path_(path) {
        const int thread = threadIdx.x, width = path.vectorized ? kVector : 1;
        const int threads_along = (path.along_k ? kBlockK : kBlock) / width;
        const int along = thread % threads_along * width, across = thread / threads_along;
        const int outer = path.along_k ? across : along;
        k_ = path.along_k ? along : across;
        in_tile_ = k_ * kStride + outer;
        outer_left_ = static_cast<int>(min(outer_left, std::int64_t{kBlock})) - outer;
        vector_inside_ = path.vectorized && path.last_outer < outer_left_;
        pointer_ = data + outer * path.outer_stride + k_ * path.k_stride;
    }

    // Reads the next k-tile; `k_left` values of k lie inside. What lies outside is zero, unread.
    __device__ __forceinline__ void load(int k_left) {
        k_left -= k_;
        if (vector_inside_ && path_.last_k < k_left) {
            value_ = *reinterpret_cast<const Vector<Element, kVector>*>(pointer_);
        } else {
            const Element* from = pointer_;
#pragma unroll
            for (int i = 0; i < kVector; ++i, from += path_.step) {
                const bool inside = i * path_.outer_step < outer_left_ && i * path_.k_step < k_left;
                value_.element[i] = inside ? *from : Element(0);
            }
        }
        pointer_ += path_.advance;
    }

    __device__ __forceinline__ void store(Stage* tile) const {
        Stage* to = tile + in_tile_;
        if (path_.vectorized && !path_.along_k) {
            Vector<Stage, kVector> value;
#pragma unroll
            for (int i = 0; i < kVector; ++i) value.element[i] = staged(value_.element[i]);
            *reinterpret_cast<Vector<Stage, kVector>*>(to) = value;
        } else {
#pragma unroll
            for (int i = 0; i < kVector; ++i, to += path_.tile_step) {
                *to = staged(value_.element[i]);
            }
        }
    }

   private:
    static __device__ __forceinline__ Stage staged(Element value) {
        if constexpr (std::is_same_v<Stage, Element>)
            return value;
        else
            return static_cast<Stage>(value);  // exact: half, bfloat16 to float; int8 to int32
    }

    const OperandPath& path_;
    int k_, in_tile_;  // the thread's first element: its k, its place in shared memory
    int outer_left_;   // rows from there to the edge of the matrix
    bool vector_inside_;
    const Element* pointer_;
    Vector<Element, kVector> value_;
};

}  // namespace tcgemm::simt
