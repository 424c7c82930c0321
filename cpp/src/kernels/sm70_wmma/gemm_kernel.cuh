// D = epilogue(A B) on tensor cores through WMMA: FP16 operands, FP32 or FP16 accumulators.
//
// A block computes one tile of D, each of its warps a part of it. While the tensor cores work on one
// k-block in shared memory, the next one is on its way from global memory into registers; at the
// end of a k-block it is written to the other half of shared memory, behind a single barrier.
#pragma once

#include <mma.h>

#include <type_traits>

#include "kernels/device/arch_guard.cuh"
#include "kernels/device/tile_loader.cuh"
#include "kernels/device/tile_scheduler.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm70_wmma/launch.hpp"

namespace tcgemm::sm70_wmma {

namespace wmma = nvcuda::wmma;

// The only fragment shape that every tensor core since Volta has.
inline constexpr int kFragment = 16;

template <class Policy>
struct Shape {
    static constexpr TileConfig tile = Policy::tile;
    static constexpr int kWarpsM = tile.block_m / tile.warp_m;
    static constexpr int kWarpsN = tile.block_n / tile.warp_n;
    static constexpr int kWarps = kWarpsM * kWarpsN;
    static constexpr int kFragmentsM = tile.warp_m / kFragment;
    static constexpr int kFragmentsN = tile.warp_n / kFragment;
    static constexpr int kSteps = tile.block_k / kFragment;  // fragments along k in a k-block
    static_assert(tile.threads == kWarps * 32 && kSteps % 2 == 0);

    static constexpr bool kRowA = Policy::a_major == Major::row;
    static constexpr bool kRowB = Policy::b_major == Major::row;
    // Tiles in shared memory keep the order of global memory: WMMA transposes while it loads.
    template <int kMajor, int kMinor, bool kClear>
    using Loader = device::TileLoader<kMajor, kMinor, tile.threads, kClear>;
    using LoaderA = std::conditional_t<kRowA, Loader<tile.block_m, tile.block_k, true>,
                                       Loader<tile.block_k, tile.block_m, false>>;
    using LoaderB = std::conditional_t<kRowB, Loader<tile.block_k, tile.block_n, false>,
                                       Loader<tile.block_n, tile.block_k, true>>;
    template <bool kRow>
    using Layout = std::conditional_t<kRow, wmma::row_major, wmma::col_major>;
    using FragmentA = wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, __half, Layout<kRowA>>;
    using FragmentB = wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, __half, Layout<kRowB>>;
    using FragmentD = wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment,
                                     typename Policy::Accumulator>;
};

template <class Policy>
union SharedMemory {
    using S = Shape<Policy>;
    // 16 bytes longer rows, as in the tiles.
    static constexpr int kOutputLd = S::tile.warp_n + 16 / sizeof(typename Policy::Accumulator);

    struct {
        __half a[S::LoaderA::kElements];
        __half b[S::LoaderB::kElements];
    } stage[2];
    // For the epilogue: fragments have no documented layout, so each warp passes its part of D
    // through here, one row of fragments at a time.
    typename Policy::Accumulator output[S::kWarps][kFragment * kOutputLd];
};

// Two sets of fragments hide shared memory's latency where the registers allow it: before sm_80 a
// fragment holds every element twice.
#ifdef WMMA_SETS
inline constexpr int kFragmentSets = WMMA_SETS;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kFragmentSets = 1;
#else
inline constexpr int kFragmentSets = 2;
#endif

template <class Policy>
struct Fragments {
    using S = Shape<Policy>;
    typename S::FragmentA a[S::kFragmentsM];
    typename S::FragmentB b[S::kFragmentsN];

    // `step`: which 16 of the k-block.
    __device__ void load(const __half* tile_a, const __half* tile_b, int warp_m, int warp_n, int step) {
        constexpr int kLdA = S::LoaderA::kLd, kLdB = S::LoaderB::kLd;
#pragma unroll
        for (int i = 0; i < S::kFragmentsM; ++i) {
            const int m = warp_m + i * kFragment, k = step * kFragment;
            wmma::load_matrix_sync(a[i], tile_a + (S::kRowA ? m * kLdA + k : k * kLdA + m), kLdA);
        }
#pragma unroll
        for (int j = 0; j < S::kFragmentsN; ++j) {
            const int n = warp_n + j * kFragment, k = step * kFragment;
            wmma::load_matrix_sync(b[j], tile_b + (S::kRowB ? k * kLdB + n : n * kLdB + k), kLdB);
        }
    }
};

template <class Policy>
class Mainloop {
    using S = Shape<Policy>;
    static constexpr TileConfig tile = Policy::tile;

   public:
    using Accumulators = typename S::FragmentD[S::kFragmentsM][S::kFragmentsN];

    // Matrices start at the block's rows of A, columns of B and k.
    __device__ Mainloop(SharedMemory<Policy>& shared, const __half* a, std::int64_t lda,
                        const __half* b, std::int64_t ldb, int rows, int cols, std::int64_t k)
        : shared_(shared), load_a_(a, lda), load_b_(b, ldb),
          step_a_(tile.block_k * (S::kRowA ? 1 : lda)), step_b_(tile.block_k * (S::kRowB ? ldb : 1)),
          rows_(rows), cols_(cols),
          blocks_(k > 0 ? static_cast<int>((k + tile.block_k - 1) / tile.block_k) : 0),
          last_k_(static_cast<int>(k - (blocks_ - 1) * std::int64_t{tile.block_k})),
          blocks_left_(blocks_) {}

    __device__ void run(Accumulators& acc, int warp_m, int warp_n) {
        if (blocks_ == 0) return;

        // Fill the first stage; the second is on its way.
        load_global();
        store_shared(0);
        load_global();
        __syncthreads();
        Fragments<Policy> fragments[kFragmentSets];
        int stage = 0;
        if constexpr (kFragmentSets == 2) load_fragments(fragments[0], stage, warp_m, warp_n, 0);

        for (int block = 0; block < blocks_; ++block) {
#pragma unroll
            for (int step = 0; step < S::kSteps; ++step) {
                const bool last_step = step == S::kSteps - 1;
                if constexpr (kFragmentSets == 1) {
                    load_fragments(fragments[0], stage, warp_m, warp_n, step);
                }
                if (last_step) {
                    // The other stage was last read before the last barrier, so it is free.
                    stage ^= 1;
                    store_shared(stage);
                    load_global();
                    __syncthreads();
                }
                if constexpr (kFragmentSets == 2) {
                    load_fragments(fragments[(step + 1) % 2], stage, warp_m, warp_n,
                                   (step + 1) % S::kSteps);
                }
                multiply(acc, fragments[kFragmentSets == 2 ? step % 2 : 0]);
            }
        }
    }

   private:
    // Behind the end of K this reads nothing and yields zeros.
    __device__ void load_global() {
        const int k = blocks_left_ > 1 ? tile.block_k : blocks_left_ == 1 ? last_k_ : 0;
        S::kRowA ? load_a_.load(rows_, k) : load_a_.load(k, rows_);
        S::kRowB ? load_b_.load(k, cols_) : load_b_.load(cols_, k);
        load_a_.advance(step_a_);
        load_b_.advance(step_b_);
        --blocks_left_;
    }
    __device__ void store_shared(int stage) {
        load_a_.store(shared_.stage[stage].a);
        load_b_.store(shared_.stage[stage].b);
    }
    __device__ void load_fragments(Fragments<Policy>& fragments, int stage, int warp_m, int warp_n,
                                   int step) {
        fragments.load(shared_.stage[stage].a, shared_.stage[stage].b, warp_m, warp_n, step);
    }
    static __device__ void multiply(Accumulators& acc, const Fragments<Policy>& fragments) {
#pragma unroll
        for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
            for (int j = 0; j < S::kFragmentsN; ++j) {
                wmma::mma_sync(acc[i][j], fragments.a[i], fragments.b[j], acc[i][j]);
            }
        }
    }

    SharedMemory<Policy>& shared_;
    typename S::LoaderA load_a_;
    typename S::LoaderB load_b_;
    std::int64_t step_a_, step_b_;  // elements from one k-block to the next
    int rows_, cols_;               // of the block's tile of D that exist
    int blocks_, last_k_;           // k-blocks, and the size of the last one
    int blocks_left_;               // not yet loaded
};

// Passes 16 rows of a warp's accumulators from shared memory to D, kVector columns a lane at a time.
template <int kVector, class Policy, class Output>
__device__ void store_rows(const Output& output, const typename Policy::Accumulator* staged,
                           std::int64_t row, std::int64_t col, int rows, int cols) {
    constexpr int kChunks = Policy::tile.warp_n / kVector;
    constexpr int kLd = SharedMemory<Policy>::kOutputLd;
#pragma unroll 2
    for (int chunk = threadIdx.x % 32; chunk < kFragment * kChunks; chunk += 32) {
        const int i = chunk / kChunks, j = chunk % kChunks * kVector;
        if (i >= rows || j >= cols) continue;
        float acc[kVector];
#pragma unroll
        for (int e = 0; e < kVector; ++e) acc[e] = static_cast<float>(staged[i * kLd + j + e]);
        output.template store<kVector>(row + i, col + j, acc, min(kVector, cols - j));
    }
}

template <class Policy, class Epilogue>
__global__ void __launch_bounds__(Policy::tile.threads, Policy::blocks_per_sm)
    gemm_kernel(const GemmArgs args, const Epilogue epilogue, const device::TileScheduler scheduler,
                const KSplit split, const std::int64_t first_tile) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
    using S = Shape<Policy>;
    constexpr TileConfig tile = Policy::tile;
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    auto& shared = *reinterpret_cast<SharedMemory<Policy>*>(shared_bytes);

    const int warp = threadIdx.x / 32;
    const int warp_m = warp / S::kWarpsN * tile.warp_m;
    const int warp_n = warp % S::kWarpsN * tile.warp_n;

    // 1. Where the block works.
    const device::Tile at = scheduler.tile(first_tile + blockIdx.x);
    const int part = split.split_k == 1 ? 0 : static_cast<int>(at.slice / args.batch.count);
    const std::int64_t batch = at.slice - part * args.batch.count;
    const std::int64_t m = static_cast<std::int64_t>(at.m) * tile.block_m;
    const std::int64_t n = static_cast<std::int64_t>(at.n) * tile.block_n;
    const std::int64_t k = part * split.k_per_split;
    const int rows = static_cast<int>(min(args.m - m, std::int64_t{tile.block_m}));
    const int cols = static_cast<int>(min(args.n - n, std::int64_t{tile.block_n}));

    // 2. Accumulate over K.
    const auto* a = static_cast<const __half*>(args.a.data) +
                    batch_offset(args.batch, args.a.batch_stride, batch) +
                    m * args.a.row_stride + k * args.a.col_stride;
    const auto* b = static_cast<const __half*>(args.b.data) +
                    batch_offset(args.batch, args.b.batch_stride, batch) +
                    k * args.b.row_stride + n * args.b.col_stride;
    typename Mainloop<Policy>::Accumulators acc;
#pragma unroll
    for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < S::kFragmentsN; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
    }
    Mainloop<Policy>(shared, a, S::kRowA ? args.a.row_stride : args.a.col_stride, b,
                     S::kRowB ? args.b.row_stride : args.b.col_stride, rows, cols,
                     min(args.k - k, split.k_per_split))
        .run(acc, warp_m, warp_n);

    // 3. Store through the epilogue, one row of fragments at a time.
    const epilogue::Output<Epilogue> output(epilogue, args, batch, part * split.d_stride);
    auto* staged = shared.output[warp];
    __syncthreads();  // the last k-block has been read
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
        const int row = warp_m + i * kFragment;
        if (output.template vectorizable<4>()) {
            store_rows<4, Policy>(output, staged, m + row, n + warp_n, rows - row, cols - warp_n);
        } else {
            store_rows<1, Policy>(output, staged, m + row, n + warp_n, rows - row, cols - warp_n);
        }
        __syncwarp();
    }
#else
    TCGEMM_TRAP_WRONG_ARCH("sm70_wmma");
#endif
}

}  // namespace tcgemm::sm70_wmma
