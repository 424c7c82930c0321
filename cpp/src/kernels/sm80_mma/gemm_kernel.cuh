// D = epilogue(A B) on tensor cores through mma.sync, for sm_80 and newer. A block computes one
// tile of D, each of its warps a part of it.
#pragma once

#include <type_traits>

#include "kernels/device/arch_guard.cuh"
#include "kernels/device/exponents.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/epilogue/staged_rows.cuh"
#include "kernels/halves.hpp"
#include "kernels/sm80_mma/launch.hpp"
#include "kernels/sm80_mma/mainloop.cuh"
#include "kernels/sm80_mma/mainloop_f64.cuh"
#include "kernels/split_k/tile_place.cuh"

namespace tcgemm::sm80_mma {

template <class Policy>
using MainloopOf = std::conditional_t<std::is_same_v<typename Policy::Accumulator, double>,
                                      MainloopF64<Policy>, Mainloop<Policy>>;

// For the epilogue each warp passes its part of D through shared memory, a row of instructions at a
// time. With rows so much longer, the four that a store touches at once lie in different banks.
template <class Policy>
inline constexpr int kStagedLd = Policy::tile.warp_n + 8;

// Waits for the warps that share the k of a part of the tile.
template <class Shape>
__device__ __forceinline__ void sync_sharers() {
    if constexpr (Shape::kWarpsK > 1) {
        __syncthreads();
    } else {
        __syncwarp();
    }
}

// A warp adds to kRows x kCols sums, rows kLd apart, those of the other kParts of k, each `stride`
// sums behind the one before, always in this order.
template <int kRows, int kCols, int kLd, int kParts, class Sum>
__device__ __forceinline__ void add_up(Sum* sums, int stride) {
#pragma unroll
    for (int i = threadIdx.x % 32; i < kRows * kCols; i += 32) {
        Sum* const at = sums + i / kCols * kLd + i % kCols;
        Sum sum = at[0];
#pragma unroll
        for (int part = 1; part < kParts; ++part) sum += at[part * stride];
        at[0] = sum;
    }
}

template <class Policy, class Epilogue>
__device__ __forceinline__ void compute_tile(const GemmArgs& args, const Epilogue& epilogue,
                                             const device::TileScheduler& scheduler,
                                             const KRange& split, std::int64_t number) {
    using S = Shape<Policy>;
    extern __shared__ __align__(128) unsigned char shared[];
    using Mma = typename S::Mma;
    using Sum = typename S::Sum;
    static_assert(S::kWarps * Mma::kM * kStagedLd<Policy> * sizeof(Sum) <= S::kRingBytes);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_k = warp / S::kWarpsMn, warp_mn = warp % S::kWarpsMn;
    const int warp_m = warp_mn / S::kWarpsN * Policy::tile.warp_m;
    const int warp_n = warp_mn % S::kWarpsN * Policy::tile.warp_n;

    auto& keep = *reinterpret_cast<Keep*>(shared + S::kRingBytes);
    const std::uint32_t barrier = ptx::shared_address(&keep.barrier);
    if (threadIdx.x == 0) ptx::init_barrier(barrier, Policy::tile.threads);

    // 1. Where the block works.
    using Place = device::TilePlace<Policy::tile.block_m, Policy::tile.block_n>;
    const device::Tile tile = scheduler.tile(number);
    if (threadIdx.x == 0) keep.tile = tile;
    const Place place(tile, args, split);
    const std::int64_t k = place.part * split.k_per_split;

    // 2. Accumulate over K.
    const auto* a = static_cast<const typename Policy::ElementA*>(args.a.data) +
                    element_offset(args.batch, args.a, place.batch, place.m, k);
    const auto* b = static_cast<const typename Policy::ElementB*>(args.b.data) +
                    element_offset(args.batch, args.b, place.batch, k, place.n);
    typename S::Sums sums = {};
    using Loop = MainloopOf<Policy>;
    const typename Loop::Ring ring(
        ptx::shared_address(shared), barrier, a,
        Policy::a_major == Major::k ? args.a.row_stride : args.a.col_stride, b,
        Policy::b_major == Major::k ? args.b.col_stride : args.b.row_stride, place.rows, place.cols,
        min(args.k - k, split.k_per_split), args.k);
    Loop mainloop(ring, warp_m, warp_n, warp_k);
    if constexpr (Policy::kOverlaps) device::wait_for_predecessor();
    if constexpr (Policy::kBlockScales) {
        mainloop.run(sums,
                     BlockScales<S>(epilogue.in_batch(args.batch, place.batch), place.m + warp_m,
                                    place.n + warp_n, place.rows - warp_m, place.cols - warp_n));
    } else {
        mainloop.run(sums, NoBlockScales());
    }

    // 3. Store through the epilogue, 16 rows at a time, while the next kernel is launched. One that
    // adds up parts of K is not: it would keep blocks of this one from an SM.
    if (Policy::kOverlaps && split.split_k == 1) device::release_successor();
    __syncthreads();  // nobody reads or fills the ring any more
    const Place out(keep.tile, args, split);
    const epilogue::Output<Epilogue> output(epilogue, args, out.batch, out.part * split.d_stride);
    constexpr int kLd = kStagedLd<Policy>;
    const device::Exponents exponents(args, out.batch);
    auto* const all_staged = reinterpret_cast<Sum*>(shared);
    auto* const staged = all_staged + warp * Mma::kM * kLd;
    // Warps that share k add up a part of these rows each.
    constexpr int kRows = Mma::kM / S::kWarpsK;
    auto* const stored = all_staged + (warp_mn * Mma::kM + warp_k * kRows) * kLd;
#pragma unroll 1
    for (int i = 0; i < S::kMmasM; ++i) {
#pragma unroll
        for (int row = 0; row < S::kMmasM; ++row) {  // registers have no run-time index
            if (row != i) continue;
#pragma unroll
            for (int j = 0; j < S::kMmasN; ++j) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    auto pair = Mma::pair(sums[row][j], half);
                    if constexpr (Policy::kHalves) {
                        pair = exponents.apply(pair,
                                               out.m + warp_m + row * Mma::kM + lane / 4 + half * 8,
                                               out.n + warp_n + j * Mma::kN + lane % 4 * 2);
                    }
                    Sum* const to = staged + (lane / 4 + half * 8) * kLd + j * Mma::kN;
                    *reinterpret_cast<std::decay_t<decltype(pair)>*>(to + lane % 4 * 2) = pair;
                }
            }
        }
        sync_sharers<S>();
        if constexpr (S::kWarpsK > 1) {
            add_up<kRows, Policy::tile.warp_n, kLd, S::kWarpsK>(stored,
                                                                S::kWarpsMn * Mma::kM * kLd);
            __syncwarp();
        }
        const int row = warp_m + i * Mma::kM + warp_k * kRows;
        epilogue::store_staged<kRows, Policy::tile.warp_n, kLd>(
            output, stored, out.m + row, out.n + warp_n, out.rows - row, out.cols - warp_n);
        sync_sharers<S>();
    }
}

template <class Policy, class Epilogue>
__global__ void __launch_bounds__(Policy::tile.threads, Policy::kBlocksPerSm)
    gemm_kernel(const GemmArgs args, const __grid_constant__ Epilogue epilogue,
                const device::TileScheduler scheduler, const KRange split,
                const std::int64_t first_tile) {
#if defined(__CUDA_ARCH__)
    if constexpr (__CUDA_ARCH__ >= Policy::kLeastArch) {
        if constexpr (Policy::kHalves) {
            if (!halves::wanted(args.run_if)) return;
        }
        compute_tile<Policy>(args, epilogue, scheduler, split, first_tile + blockIdx.x);
    } else {
        TCGEMM_TRAP_WRONG_ARCH("sm80_mma");
    }
#endif
}

}  // namespace tcgemm::sm80_mma
