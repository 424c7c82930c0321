// How k-tiles of A and B come to shared memory ahead of their multiplication: through registers, or
// in the background where an element is multiplied as it comes and the GPU can (sm_80).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/device/ptx/async_copy.cuh"
#include "kernels/device/ptx/shared.cuh"
#include "kernels/simt/operand_loader.cuh"
#include "kernels/simt/policy.hpp"

namespace tcgemm::simt {

// The compute capability that this code is made for, of those with feeds of their own: 70, 80, 90.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr int kFeedCc = 90;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kFeedCc = 70;
#else
inline constexpr int kFeedCc = 80;
#endif

// Copies k-tiles of an operand of any strides in the background, to where OperandLoader stores
// them. Elements of 4 or 8 bytes, one by one, or 16 bytes at once where they lie along the block.
template <class Element, int kBlock, int kBlockK, int kThreads>
class AsyncOperandLoader : public OperandWalk<Element, kBlock, kBlockK, kThreads> {
    using Walk = OperandWalk<Element, kBlock, kBlockK, kThreads>;
    using Walk::kElements;
    using Walk::path_, Walk::k_, Walk::in_tile_, Walk::outer_left_, Walk::from_;
    template <int kWidth>
    using Unit = typename Walk::template Unit<kWidth>;
    static constexpr int kTogether = 16 / sizeof(Element);

   public:
    __device__ __forceinline__ AsyncOperandLoader(const OperandPath& path, const Element* data,
                                                  std::int64_t outer_left)
        : Walk(path, data, outer_left, !path.along_k && path.in_vectors ? kTogether : 1),
          bytes_(in_tile_ * static_cast<int>(sizeof(Element))) {}

    // The next k-tile, of which `k_left` values of k lie inside: zeros stand for those outside.
    __device__ __forceinline__ void copy(std::uint32_t tile, int k_left) {
        const int k_inside = k_left - k_;
        if (path_.along_k) {
            copy_units<1, Unit<1>::kStepOuter, 0>(tile, k_inside);
        } else if (path_.in_vectors) {
            copy_units<kTogether, 0, Unit<kTogether>::kStepK>(tile, k_inside);
        } else {
            copy_units<1, 0, Unit<1>::kStepK>(tile, k_inside);
        }
        from_ += path_.advance;
    }

   private:
    // Units of kWidth elements, so many rows (columns) of the block or values of k apart.
    template <int kWidth, int kStepOuter, int kStepK>
    __device__ __forceinline__ void copy_units(std::uint32_t tile, int k_inside) const {
        const std::int64_t step = kStepOuter * path_.outer_stride + kStepK * path_.k_stride;
        constexpr int kTileStep = (kStepK * Walk::kStride + kStepOuter) * sizeof(Element);
        const Element* from = from_;
        std::uint32_t to = tile + bytes_;
#pragma unroll
        for (int unit = 0; unit < kElements / kWidth; ++unit, from += step, to += kTileStep) {
            const bool inside = unit * kStepOuter < outer_left_ && unit * kStepK < k_inside;
            device::ptx::copy_async_or_zeros<kWidth * sizeof(Element)>(to, from, inside);
        }
    }

    int bytes_;  // of the first element's place in a tile
};

template <class Policy, int kBlock>
using RegisterLoader =
    OperandLoader<typename Policy::Numbers::Element, typename Policy::Numbers::Stage, kBlock,
                  Policy::kBlockK, Policy::kThreads>;

template <class Policy>
constexpr bool copies_async(int cc) {
    return cc >= 80 && sizeof(typename Policy::Numbers::Element) >= 4;
}

// k-tiles on their way to shared memory while one is multiplied there: as many as an SM has room
// for, of all of its blocks. Consumer GPUs, which run the code for sm_80, for sm_89 and the PTX,
// have 100 KB.
template <class Policy>
constexpr int tiles_ahead(int cc) {
    if (!copies_async<Policy>(cc)) return 1;
    constexpr int kTileBytes = (RegisterLoader<Policy, Policy::kBlockM>::kTileElements +
                                RegisterLoader<Policy, Policy::kBlockN>::kTileElements) *
                               static_cast<int>(sizeof(typename Policy::Numbers::Stage));
    constexpr int kBlockBytes = 48 << 10;  // at most
    const int bytes = (cc == 90 ? 162 << 10 : 96 << 10) / Policy::kBlocksPerSm;
    return std::clamp(std::min(bytes, kBlockBytes) / kTileBytes, 2, 5) - 1;
}

template <class Policy>
struct FeedTiles {
    using Element = typename Policy::Numbers::Element;
    using Stage = typename Policy::Numbers::Stage;
    static constexpr bool kAsync = copies_async<Policy>(kFeedCc);
    template <int kBlock>
    using Loader =
        std::conditional_t<kAsync,
                           AsyncOperandLoader<Element, kBlock, Policy::kBlockK, Policy::kThreads>,
                           RegisterLoader<Policy, kBlock>>;
    using LoaderA = Loader<Policy::kBlockM>;
    using LoaderB = Loader<Policy::kBlockN>;
    static constexpr int kAhead = tiles_ahead<Policy>(kFeedCc), kTiles = kAhead + 1;

    alignas(16) Stage a[kTiles][LoaderA::kTileElements];
    alignas(16) Stage b[kTiles][LoaderB::kTileElements];
};

// The k-tiles of a block's part of K, one after the other. Past the end there are zeros, or what
// was there before.
template <class Policy>
class TileFeed {
    using Tiles = FeedTiles<Policy>;
    using Stage = typename Tiles::Stage;

   public:
    using LoaderA = typename Tiles::LoaderA;
    using LoaderB = typename Tiles::LoaderB;

    __device__ __forceinline__ TileFeed(Tiles& tiles, const LoaderA& a, const LoaderB& b,
                                        std::int64_t k)
        : tiles_(tiles), load_a_(a), load_b_(b), k_left_(k) {
#pragma unroll 1
        for (int tile = 0; tile < Tiles::kAhead; ++tile) load();
    }

    // Sets out for the next k-tile, in the place of the one before that arrived last.
    __device__ __forceinline__ void load() {
        const int inside = static_cast<int>(min(k_left_, std::int64_t{Policy::kBlockK}));
        if constexpr (Tiles::kAsync) {
            if (inside > 0) {
                load_a_.copy(device::ptx::shared_address(tiles_.a[coming_]), inside);
                load_b_.copy(device::ptx::shared_address(tiles_.b[coming_]), inside);
            }
            device::ptx::commit_copies();
            coming_ = coming_ + 1 == Tiles::kTiles ? 0 : coming_ + 1;
        } else {
            load_a_.load(inside);
            load_b_.load(inside);
        }
        k_left_ -= Policy::kBlockK;
    }

    // Waits for the next one, of all threads.
    __device__ __forceinline__ void arrive() {
        here_ = here_ + 1 == Tiles::kTiles ? 0 : here_ + 1;
        if constexpr (Tiles::kAsync) {
            device::ptx::wait_for_copies<Tiles::kAhead - 1>();
        } else {
            load_a_.store(tiles_.a[here_]);
            load_b_.store(tiles_.b[here_]);
        }
        __syncthreads();
    }

    // What arrived last.
    __device__ __forceinline__ const Stage* a() const { return tiles_.a[here_]; }
    __device__ __forceinline__ const Stage* b() const { return tiles_.b[here_]; }

   private:
    Tiles& tiles_;
    LoaderA load_a_;
    LoaderB load_b_;
    std::int64_t k_left_;
    int here_ = Tiles::kTiles - 1, coming_ = 0;
};

}  // namespace tcgemm::simt
