// D = epilogue(A B) on tensor cores through WMMA: FP16 operands with FP32 or FP16 accumulators,
// INT8 ones with INT32.
//
// A block computes one tile of D, each of its warps a part of it. While the tensor cores work on
// one k-block in shared memory, the next one goes from registers to the other half of shared memory
// and the one after that is on its way from global memory to registers. One barrier a k-block.
#pragma once

#include <mma.h>

#include <type_traits>

#include "kernels/device/arch_guard.cuh"
#include "kernels/device/tile_loader.cuh"
#include "kernels/epilogue/staged_rows.cuh"
#include "kernels/sm70_wmma/launch.hpp"
#include "kernels/split_k/tile_place.cuh"

namespace tcgemm::sm70_wmma {

namespace wmma = nvcuda::wmma;

// The only fragment shape that every tensor core since Volta has; of INT8 since Turing.
inline constexpr int kFragment = 16;
// The main loop counts so many k-blocks beyond the one that it multiplies.
inline constexpr int kBlocksAhead = 3;

// Whether the architecture that is compiled for has such fragments.
template <class Element>
inline constexpr bool kHasFragments =
#ifdef __CUDA_ARCH__
    __CUDA_ARCH__ >= (kIsInt8<Element> ? 750 : 700);
#else
    true;
#endif

template <class Policy>
struct Shape {
    using Element = typename Policy::Element;
    static constexpr TileConfig tile = Policy::tile;
    static constexpr int kWarpsM = tile.block_m / tile.warp_m;
    static constexpr int kWarpsN = tile.block_n / tile.warp_n;
    static constexpr int kWarps = kWarpsM * kWarpsN;
    static constexpr int kFragmentsM = tile.warp_m / kFragment;
    static constexpr int kFragmentsN = tile.warp_n / kFragment;
    static constexpr int kSteps = tile.block_k / kFragment;  // fragments along k in a k-block
    static_assert(tile.warp_m % kFragment == 0 && tile.warp_n % kFragment == 0);
    static_assert(tile.block_m % tile.warp_m == 0 && tile.block_n % tile.warp_n == 0);
    static_assert(tile.threads == kWarps * 32 && tile.block_k % (2 * kFragment) == 0);

    static constexpr bool kRowA = Policy::a_major == Major::k;
    static constexpr bool kRowB = Policy::b_major == Major::mn;
    // Tiles in shared memory keep the order of global memory: WMMA transposes while it loads.
    template <bool kRow, int kRows, int kCols>
    using Loader = std::conditional_t<kRow, device::TileLoader<Element, kRows, kCols, tile.threads>,
                                      device::TileLoader<Element, kCols, kRows, tile.threads>>;
    using LoaderA = Loader<kRowA, tile.block_m, tile.block_k>;
    using LoaderB = Loader<kRowB, tile.block_k, tile.block_n>;
    template <bool kRow>
    using Layout = std::conditional_t<kRow, wmma::row_major, wmma::col_major>;
    using FragmentA =
        wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, Element, Layout<kRowA>>;
    using FragmentB =
        wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, Element, Layout<kRowB>>;
    using FragmentD = wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment,
                                     typename Policy::Accumulator>;
    // As the epilogue takes it.
    using Sum = std::conditional_t<kIsInt8<Element>, std::int32_t, float>;

    // Registers of a thread: accumulators, vectors on their way, one set of A's fragments, two of
    // B's (before sm_80 one of halves holds every element twice). Where a fifth is left for
    // addresses, the fragments of the next 16 k are loaded while these are multiplied; with less
    // the kernel spills.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    static constexpr int kFragmentRegisters = kIsInt8<Element> ? 2 : 8;
#else
    static constexpr int kFragmentRegisters = kIsInt8<Element> ? 2 : 4;
#endif
    static constexpr int kRegisters = tile.warp_m * tile.warp_n / 32 *
                                          static_cast<int>(sizeof(typename Policy::Accumulator)) /
                                          4 +
                                      (LoaderA::kVectors + LoaderB::kVectors) * 4 +
                                      (kFragmentsM + 2 * kFragmentsN) * kFragmentRegisters;
    static constexpr int kMaxRegisters = 65536 / (tile.threads * Policy::blocks_per_sm);
    static constexpr bool kPrefetch =
        kRegisters * 5 <= (kMaxRegisters < 255 ? kMaxRegisters : 255) * 4;
};

template <class Policy>
struct SharedMemory {
    using S = Shape<Policy>;
    // 16 bytes longer rows, as in the tiles.
    static constexpr int kOutputLd = S::tile.warp_n + 16 / sizeof(typename Policy::Accumulator);

    union {
        struct {
            typename S::Element a[S::LoaderA::kElements];
            typename S::Element b[S::LoaderB::kElements];
        } stage[2];
        // For the epilogue: fragments have no documented layout, so each warp passes its part of D
        // through here, one row of fragments at a time.
        typename Policy::Accumulator output[S::kWarps][kFragment * kOutputLd];
    };
    // Waits here for the epilogue: during the main loop every register counts.
    device::Tile tile;
};

template <class Policy>
using Place = device::TilePlace<Policy::tile.block_m, Policy::tile.block_n>;

// A warp's part of A and B, 16 k of it.
template <class Policy>
struct Fragments {
    using S = Shape<Policy>;
    using Element = typename Policy::Element;
    typename S::FragmentA a[S::kFragmentsM];
    typename S::FragmentB b[S::kPrefetch ? 2 : 1][S::kFragmentsN];

    // Addresses are multiples of 16 bytes: all that the instruction (LDSM) asks for, and what 16 k
    // of INT8 have, though CUDA's guide says 32.
    __device__ void load_a(int i, const Element* tile, int warp_m, int step) {
        constexpr int kLd = S::LoaderA::kLd;
        const int m = warp_m + i * kFragment, k = step * kFragment;
        wmma::load_matrix_sync(a[i], tile + (S::kRowA ? m * kLd + k : k * kLd + m), kLd);
    }
    __device__ void load_b(int set, const Element* tile, int warp_n, int step) {
        constexpr int kLd = S::LoaderB::kLd;
#pragma unroll
        for (int j = 0; j < S::kFragmentsN; ++j) {
            const int n = warp_n + j * kFragment, k = step * kFragment;
            wmma::load_matrix_sync(b[set][j], tile + (S::kRowB ? k * kLd + n : n * kLd + k), kLd);
        }
    }
};

template <class Policy>
class Mainloop {
    using S = Shape<Policy>;
    using Element = typename Policy::Element;
    static constexpr TileConfig tile = Policy::tile;
    static constexpr bool kPrefetch = S::kPrefetch;

   public:
    using Accumulators = typename S::FragmentD[S::kFragmentsM][S::kFragmentsN];

    // Matrices start at the block's rows of A, columns of B and k.
    __device__ Mainloop(SharedMemory<Policy>& shared, const Element* a, std::int64_t lda,
                        const Element* b, std::int64_t ldb, int rows, int cols, std::int64_t k)
        : shared_(shared),
          load_a_(a, lda),
          load_b_(b, ldb),
          step_a_(tile.block_k * (S::kRowA ? 1 : lda)),
          step_b_(tile.block_k * (S::kRowB ? ldb : 1)),
          rows_(rows),
          cols_(cols),
          blocks_(k > 0 ? static_cast<int>((k + tile.block_k - 1) / tile.block_k) : 0),
          last_k_(static_cast<int>(k - (blocks_ - 1) * std::int64_t{tile.block_k})) {}

    __device__ void run(Accumulators& acc, int warp_m, int warp_n) {
        if (blocks_ == 0) return;
        fill_stages();

        Fragments<Policy> fragments;
        int stage = 0;
        const auto load_a = [&](int i, int step) {
            fragments.load_a(i, shared_.stage[stage].a, warp_m, step);
        };
        const auto load_b = [&](int set, int step) {
            fragments.load_b(set, shared_.stage[stage].b, warp_n, step);
        };
        if (kPrefetch) {
            load_b(0, 0);
#pragma unroll
            for (int i = 0; i < S::kFragmentsM; ++i) load_a(i, 0);
        }

        for (int block = 0; block < blocks_; ++block) {
#pragma unroll
            for (int step = 0; step < S::kSteps; ++step) {
                const bool last_step = step == S::kSteps - 1;
                const int set = kPrefetch ? step % 2 : 0, next_step = (step + 1) % S::kSteps;
                if (kPrefetch) {
                    if (last_step) next_stage(stage);
                    load_b(set ^ 1, next_step);
                } else {
                    load_b(0, step);
#pragma unroll
                    for (int i = 0; i < S::kFragmentsM; ++i) load_a(i, step);
                }
#pragma unroll
                for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
                    for (int j = 0; j < S::kFragmentsN; ++j) {
                        wmma::mma_sync(acc[i][j], fragments.a[i], fragments.b[set][j], acc[i][j]);
                    }
                    if (kPrefetch) load_a(i, next_step);
                    // The other stage was last read before the last barrier, so it is free.
                    if (step == 0 && i == 0) copy(stage ^ 1, block + kBlocksAhead);
                }
                if (!kPrefetch && last_step) next_stage(stage);
            }
        }
    }

   private:
    // The k-blocks are visited last one first: only there K may end within a block, and outside the
    // main loop this costs nothing.
    __device__ void fill_stages() {
        load_a_.advance((blocks_ - 1) * step_a_);
        load_b_.advance((blocks_ - 1) * step_b_);
        limit(last_k_);
        load_a_.load();
        load_b_.load();
        if (S::kRowA) load_a_.clear_behind(last_k_);
        if (!S::kRowB) load_b_.clear_behind(last_k_);
        load_a_.advance(-blocks_ * step_a_);
        load_b_.advance(-blocks_ * step_b_);
        limit(tile.block_k);
        advance(1);
        copy(0, 2);
        __syncthreads();
    }

    // What was loaded before goes to shared memory, and the next loads start. They have a whole
    // k-block of time; so do the stores, as seen from the barrier. Then the loaders move on to the
    // `visit`-th block.
    __device__ void copy(int stage, int visit) {
        load_a_.store(shared_.stage[stage].a);
        load_b_.store(shared_.stage[stage].b);
        load_a_.load();
        load_b_.load();
        advance(visit);
    }

    // Behind the last block the loaders read nothing.
    __device__ void advance(int visit) {
        load_a_.advance(step_a_);
        load_b_.advance(step_b_);
        if (visit >= blocks_) {
            load_a_.stop();
            load_b_.stop();
        }
    }
    __device__ void limit(int k) {
        S::kRowA ? load_a_.limit(rows_, k) : load_a_.limit(k, rows_);
        S::kRowB ? load_b_.limit(k, cols_) : load_b_.limit(cols_, k);
    }

    static __device__ void next_stage(int& stage) {
        __syncthreads();
        stage ^= 1;
    }

    SharedMemory<Policy>& shared_;
    typename S::LoaderA load_a_;
    typename S::LoaderB load_b_;
    std::int64_t step_a_, step_b_;  // elements from one k-block to the next
    int rows_, cols_;               // of the block's tile of D that exist
    int blocks_, last_k_;           // k-blocks, and the size of the last one
};

template <class Policy, class Epilogue>
__global__ void __launch_bounds__(Policy::tile.threads, Policy::blocks_per_sm)
    gemm_kernel(const GemmArgs args, const __grid_constant__ Epilogue epilogue,
                const device::TileScheduler scheduler, const KRange split,
                const std::int64_t first_tile) {
    if constexpr (!kHasFragments<typename Policy::Element>) {
        TCGEMM_TRAP_WRONG_ARCH("sm70_wmma");
    } else {
        using S = Shape<Policy>;
        using Element = typename Policy::Element;
        extern __shared__ __align__(128) unsigned char shared_bytes[];
        auto& shared = *reinterpret_cast<SharedMemory<Policy>*>(shared_bytes);

        const int warp = threadIdx.x / 32;
        const int warp_m = warp / S::kWarpsN * Policy::tile.warp_m;
        const int warp_n = warp % S::kWarpsN * Policy::tile.warp_n;

        // 1. Where the block works.
        const device::Tile tile = scheduler.tile(first_tile + blockIdx.x);
        if (threadIdx.x == 0) shared.tile = tile;
        const Place<Policy> in(tile, args, split);
        const std::int64_t k = in.part * split.k_per_split;

        // 2. Accumulate over K.
        const auto* a = static_cast<const Element*>(args.a.data) +
                        element_offset(args.batch, args.a, in.batch, in.m, k);
        const auto* b = static_cast<const Element*>(args.b.data) +
                        element_offset(args.batch, args.b, in.batch, k, in.n);
        typename Mainloop<Policy>::Accumulators acc;
#pragma unroll
        for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
            for (int j = 0; j < S::kFragmentsN; ++j) wmma::fill_fragment(acc[i][j], 0);
        }
        Mainloop<Policy>(shared, a, S::kRowA ? args.a.row_stride : args.a.col_stride, b,
                         S::kRowB ? args.b.row_stride : args.b.col_stride, in.rows, in.cols,
                         min(args.k - k, split.k_per_split))
            .run(acc, warp_m, warp_n);

        // 3. Store through the epilogue, one row of fragments at a time.
        __syncthreads();  // the last k-block has been read
        const Place<Policy> out(shared.tile, args, split);
        const epilogue::Output<Epilogue> output(epilogue, args, out.batch,
                                                out.part * split.d_stride);
        const std::int64_t col = out.n + warp_n;
        const int cols = out.cols - warp_n;
        auto* staged = shared.output[warp];
#pragma unroll 1
        for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
            for (int f = 0; f < S::kFragmentsM; ++f) {  // registers have no run-time index
                if (f != i) continue;
#pragma unroll
                for (int j = 0; j < S::kFragmentsN; ++j) {
                    wmma::store_matrix_sync(staged + j * kFragment, acc[f][j],
                                            SharedMemory<Policy>::kOutputLd, wmma::mem_row_major);
                }
            }
            __syncwarp();
            const std::int64_t row = out.m + warp_m + i * kFragment;
            const int rows = out.rows - warp_m - i * kFragment;
            epilogue::store_staged<kFragment, Policy::tile.warp_n, SharedMemory<Policy>::kOutputLd>(
                output, staged, row, col, rows, cols);
            __syncwarp();
        }
    }
}

}  // namespace tcgemm::sm70_wmma
