// Moves k-tiles of an operand of any strides from global to shared memory, through registers.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "kernels/device/vector.cuh"

namespace tcgemm::simt {

using device::Vector;

inline constexpr int kVector = 4;  // elements that are read together where they lie so

// An operand is seen as (outer, k): outer is m for A and n for B. Computed on the host, so that the
// kernel finds it in constant memory, not in registers.
struct OperandPath {
    std::int64_t outer_stride = 0, k_stride = 0;
    bool along_k = false;      // neighbours in memory, and so neighbouring threads, lie along k
    bool in_vectors = false;   // kVector neighbours are contiguous, aligned, and inside together
    std::int64_t step = 0;     // from one to the next of a thread's elements or vectors
    int tile_step = 0;         // the same in shared memory
    std::int64_t advance = 0;  // from k-tile to k-tile
};

// A thread's elements of k-tiles, in global and in shared memory: what all loaders have in common.
template <class Element, int kBlock, int kBlockK, int kThreads>
class OperandWalk {
    static_assert(kThreads % kBlock == 0 && kThreads % kBlockK == 0);

   public:
    // The padding spreads a store of 8 k of 4 neighbours over all 32 banks.
    static constexpr int kStride = kBlock + 4;
    // [kBlockK][kStride]: outer neighbours lie side by side.
    static constexpr int kTileElements = kBlockK * kStride;

   protected:
    static constexpr int kElements = kBlock * kBlockK / kThreads;  // of a thread

    // What a thread moves at once. Its units lie across the direction of neighbours, kStepOuter
    // or kStepK from one to the next.
    template <int kWidth>
    struct Unit {
        static constexpr int kStepOuter = kThreads * kWidth / kBlockK;
        static constexpr int kStepK = kThreads * kWidth / kBlock;
    };

    // `data` is the element (0, 0) of the block; `outer_left` rows of it lie inside the matrix.
    // Threads have `width` neighbours each.
    __device__ __forceinline__ OperandWalk(const OperandPath& path, const Element* data,
                                           std::int64_t outer_left, int width)
        : path_(path) {
        const int threads = (path.along_k ? kBlockK : kBlock) / width;
        const int along = static_cast<int>(threadIdx.x) % threads * width;
        const int across = static_cast<int>(threadIdx.x) / threads;
        const int outer = path.along_k ? across : along;
        k_ = path.along_k ? along : across;
        in_tile_ = k_ * kStride + outer;
        from_ = data + outer * path.outer_stride + k_ * path.k_stride;
        outer_left_ = static_cast<int>(min(outer_left, std::int64_t{kBlock})) - outer;
    }

    const OperandPath& path_;
    int k_, in_tile_;      // the thread's first element: its k, its place in shared memory
    int outer_left_;       // from it to the edge of the matrix or block
    const Element* from_;  // it
};

// Moves k-tiles through registers.
template <class Element, class Stage, int kBlock, int kBlockK, int kThreads>
class OperandLoader : public OperandWalk<Element, kBlock, kBlockK, kThreads> {
    using Walk = OperandWalk<Element, kBlock, kBlockK, kThreads>;
    using Walk::kElements;
    using Walk::path_, Walk::k_, Walk::in_tile_, Walk::outer_left_, Walk::from_;
    template <int kWidth>
    using Unit = typename Walk::template Unit<kWidth>;
    static_assert(kElements % kVector == 0);

   public:
    static OperandPath path(std::int64_t outer_stride, std::int64_t k_stride, bool in_vectors) {
        const bool along_k =
            in_vectors ? k_stride == 1 : std::abs(k_stride) < std::abs(outer_stride);
        const int outer = in_vectors ? Unit<kVector>::kStepOuter : Unit<1>::kStepOuter;
        const int k = in_vectors ? Unit<kVector>::kStepK : Unit<1>::kStepK;
        return {outer_stride,
                k_stride,
                along_k,
                in_vectors,
                along_k ? outer * outer_stride : k * k_stride,
                along_k ? outer : k * Walk::kStride,
                kBlockK * k_stride};
    }

    __device__ __forceinline__ OperandLoader(const OperandPath& path, const Element* data,
                                             std::int64_t outer_left)
        : Walk(path, data, outer_left, path.in_vectors ? kVector : 1) {
        inside_ = outer_left_ <= 0  ? 0
                  : !path.along_k   ? kElements
                  : path.in_vectors ? divide_up(outer_left_, Unit<kVector>::kStepOuter)
                                    : divide_up(outer_left_, Unit<1>::kStepOuter);
    }

    // Reads the next k-tile; `k_left` values of k lie inside. What lies outside is zero, unread.
    __device__ __forceinline__ void load(int k_left) {
        if (path_.in_vectors) {
            load_units<kVector>(k_left - k_);
        } else {
            load_units<1>(k_left - k_);
        }
        from_ += path_.advance;
    }

    __device__ __forceinline__ void store(Stage* tile) const {
        Stage* to = tile + in_tile_;
        if (!path_.in_vectors) {
#pragma unroll
            for (int e = 0; e < kElements; ++e, to += path_.tile_step) *to = staged(word_[e], 0);
            return;
        }
#pragma unroll
        for (int unit = 0; unit < kElements / kVector; ++unit) {
            Vector<Stage, kVector> value;
#pragma unroll
            for (int i = 0; i < kVector; ++i) {
                value.element[i] =
                    staged(word_[unit * kVectorWords + i / kWordElements], i % kWordElements);
            }
            if (path_.along_k) {
#pragma unroll
                for (int i = 0; i < kVector; ++i) {
                    to[i * Walk::kStride + unit * Unit<kVector>::kStepOuter] = value.element[i];
                }
            } else {
                *reinterpret_cast<Vector<Stage, kVector>*>(to + unit * Unit<kVector>::kStepK *
                                                                    Walk::kStride) = value;
            }
        }
    }

   private:
    // What was read stays as it came until it is stored, an element or a part of a vector a word:
    // whatever is done to it waits for the load.
    using Bits = std::conditional_t<
        sizeof(Element) == 1, std::uint8_t,
        std::conditional_t<sizeof(Element) == 2, std::uint16_t,
                           std::conditional_t<sizeof(Element) == 4, std::uint32_t, std::uint64_t>>>;
    using Word = std::conditional_t<sizeof(Element) == 8, std::uint64_t, std::uint32_t>;
    static constexpr int kWordElements = sizeof(Word) / sizeof(Element);
    static constexpr int kVectorWords = kVector / kWordElements;

    // Without branches, so that the compiler spreads the loads among the multiplications.
    template <int kWidth>
    __device__ __forceinline__ void load_units(int k_left) {
        using Read = std::conditional_t<kWidth == 1, Bits, Vector<Word, kVectorWords>>;
        constexpr int kWords = kWidth == 1 ? 1 : kVectorWords;
        const int inside = path_.along_k ? (k_left > 0 ? inside_ : 0)
                                         : min(divide_up(k_left, Unit<kWidth>::kStepK), inside_);
        const Element* from = from_;
#pragma unroll
        for (int unit = 0; unit < kElements / kWidth; ++unit, from += path_.step) {
            Word* const word = word_ + unit * kWords;
#pragma unroll
            for (int i = 0; i < kWords; ++i) word[i] = 0;
            if (unit < inside) {
                const Read read = *reinterpret_cast<const Read*>(from);
                if constexpr (kWidth == 1) {
                    word[0] = read;
                } else {
#pragma unroll
                    for (int i = 0; i < kWords; ++i) word[i] = read.element[i];
                }
            }
        }
    }

    static __device__ __forceinline__ int divide_up(int a, int b) { return (a + b - 1) / b; }

    // The part of a word that is an element, as it is multiplied.
    static __device__ __forceinline__ Stage staged(Word word, int part) {
        const auto bits = static_cast<Bits>(word >> (part * 8 * static_cast<int>(sizeof(Element))));
        Element value;
        memcpy(&value, &bits, sizeof(value));
        if constexpr (std::is_same_v<Stage, Element>)
            return value;
        else
            return static_cast<Stage>(value);  // exact: half, bfloat16 to float; int8 to int32
    }

    int inside_;  // units before the edge of the matrix
    Word word_[kElements];
};

}  // namespace tcgemm::simt
