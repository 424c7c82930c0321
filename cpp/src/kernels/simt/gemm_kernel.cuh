// The matrix product on CUDA cores: any sizes, strides and alignment, one kernel for all dtypes.
#pragma once

#include <cstdint>

#include "kernels/device/launch.cuh"
#include "kernels/device/ptx/opaque.cuh"
#include "kernels/device/vector.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/halves.hpp"
#include "kernels/simt/multiply_add.cuh"
#include "kernels/simt/policy.hpp"
#include "kernels/simt/tile_feed.cuh"
#include "kernels/split_k/tile_place.cuh"

namespace tcgemm::simt {

// The work of a launch.
struct Work {
    device::TileScheduler tiles;
    KRange split;
    OperandPath a, b;
};

template <class Acc>
__device__ __forceinline__ void add(Acc& sum, Acc value) {
    if constexpr (std::is_integral_v<Acc>) {
        sum = static_cast<Acc>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(value));
    } else {
        sum += value;
    }
}

// The outputs of one thread. Its rows and columns come in groups of kGroup neighbours, a group a
// lane, so that a warp reads fragments in vectors of 16 bytes from neighbouring addresses.
template <class Policy>
struct ThreadTile {
    using Stage = typename Policy::Numbers::Stage;
    using Acc = typename Policy::Numbers::Acc;
    static constexpr int kGroup = sizeof(Stage) == 8 ? 2 : 4;
    static constexpr int kM = Policy::kThreadM, kN = Policy::kThreadN;
    static constexpr int kGroupsM = kM / kGroup, kGroupsN = kN / kGroup;
    using Group = device::Vector<Stage, kGroup>;

    Acc acc[kM][kN];
    int row0, col0;  // of the first output, in the block
    int k0;          // of the thread's slice, in a k-tile

    __device__ ThreadTile() {
        const int thread = threadIdx.x % Policy::kSliceThreads;
        const int lane = thread % 32, warp = thread / 32;
        constexpr int kWarpsN = Policy::kBlockN / Policy::kWarpN;
        // Eight neighbouring lanes, which shared memory serves together, cover 2 x 4 threads: fewer
        // different words than 1 x 8 (worth 5 % to 14 % on an H200).
        row0 = warp / kWarpsN * Policy::kWarpM + (lane / 16 * 2 + lane % 2) * kGroup;
        col0 = warp % kWarpsN * Policy::kWarpN + lane % 16 / 2 * kGroup;
        k0 = slice() * Policy::kSliceK;
#pragma unroll
        for (int i = 0; i < kM; ++i) {
#pragma unroll
            for (int j = 0; j < kN; ++j) acc[i][j] = Acc(0);
        }
    }

    __device__ static int slice() {
        return Policy::kSlices > 1 ? threadIdx.x / Policy::kSliceThreads : 0;
    }
    static constexpr int row(int i) { return i / kGroup * (Policy::kLanesM * kGroup) + i % kGroup; }
    static constexpr int col(int group) { return group * (Policy::kLanesN * kGroup); }

    // What a thread multiplies for one k.
    struct Fragments {
        Group a[kGroupsM], b[kGroupsN];
    };

    __device__ __forceinline__ void read(Fragments& fragments, const Stage* tile_a,
                                         const Stage* tile_b, int k) const {
        const Stage* a = tile_a + (k0 + k) * TileFeed<Policy>::LoaderA::kStride + row0;
        const Stage* b = tile_b + (k0 + k) * TileFeed<Policy>::LoaderB::kStride + col0;
#pragma unroll
        for (int g = 0; g < kGroupsM; ++g) {
            fragments.a[g] = *reinterpret_cast<const Group*>(a + row(g * kGroup));
        }
#pragma unroll
        for (int g = 0; g < kGroupsN; ++g) {
            fragments.b[g] = *reinterpret_cast<const Group*>(b + col(g));
        }
    }

    // Each multiplication shares an operand with the one before, which then comes out of the reuse
    // cache: a scheduler's two banks of registers give two operands a cycle, and with the sum they
    // would be three. Along the shorter side first, forth and back: the assembler keeps that order.
    __device__ __forceinline__ void multiply(const Fragments& fragments) {
        constexpr bool kRowsFirst = kM < kN;
        constexpr int kInner = kRowsFirst ? kM : kN, kOuter = kRowsFirst ? kN : kM;
#pragma unroll
        for (int outer = 0; outer < kOuter; ++outer) {
#pragma unroll
            for (int step = 0; step < kInner; ++step) {
                const int inner = outer % 2 ? kInner - 1 - step : step;
                const int i = kRowsFirst ? inner : outer, j = kRowsFirst ? outer : inner;
                multiply_add(acc[i][j], fragments.a[i / kGroup].element[i % kGroup],
                             fragments.b[j / kGroup].element[j % kGroup]);
            }
        }
    }

    // By all threads: the first slice gets the sums of all, in their order, through `shared`, in
    // halves where that has no room for all rows.
    __device__ __forceinline__ void add_slices(FeedTiles<Policy>& shared) {
        constexpr int kThreads = Policy::kSliceThreads;
        constexpr int kRows = sizeof(acc) * kThreads <= sizeof(shared) ? kM : kM / 2;
        static_assert(sizeof(Acc) * kRows * kN * kThreads <= sizeof(shared));
        Acc* const place = reinterpret_cast<Acc*>(&shared) + threadIdx.x % kThreads;
#pragma unroll
        for (int row = 0; row < kM; row += kRows) {
#pragma unroll 1
            for (int from = 1; from < Policy::kSlices; ++from) {
                __syncthreads();  // nobody reads k-tiles, or what was here before
#pragma unroll
                for (int i = 0; i < kRows * kN; ++i) {
                    if (slice() == from) place[i * kThreads] = acc[row + i / kN][i % kN];
                }
                __syncthreads();
#pragma unroll
                for (int i = 0; i < kRows * kN; ++i) {
                    if (slice() == 0) add(acc[row + i / kN][i % kN], place[i * kThreads]);
                }
            }
        }
        __syncthreads();
    }

    // Moves the sums of another tile here.
    __device__ __forceinline__ void take(ThreadTile& from) {
#pragma unroll
        for (int i = 0; i < kM; ++i) {
#pragma unroll
            for (int j = 0; j < kN; ++j) {
                add(acc[i][j], from.acc[i][j]);
                from.acc[i][j] = Acc(0);
            }
        }
    }

    // The same with each sum multiplied by what `scales` have for its row and column in a k-block.
    // row_of_block and col_of_block are the block's first, last_row and last_col the matrix's last.
    template <class Scales>
    __device__ __forceinline__ void take_scaled(ThreadTile& from, const Scales& scales,
                                                std::int64_t row_of_block,
                                                std::int64_t col_of_block, std::int64_t last_row,
                                                std::int64_t last_col, std::int64_t k_block) {
        float b[kN];
#pragma unroll
        for (int j = 0; j < kN; ++j) {
            const std::int64_t at = col_of_block + col0 + col(j / kGroup) + j % kGroup;
            b[j] = scales.b_partial_factor(min(at, last_col), k_block);
        }
#pragma unroll
        for (int i = 0; i < kM; ++i) {
            const std::int64_t at = row_of_block + row0 + row(i);
            const float a = scales.a_partial_factor(min(at, last_row), k_block);
#pragma unroll
            for (int j = 0; j < kN; ++j) {
                add(acc[i][j], from.acc[i][j] * (a * b[j]));
                from.acc[i][j] = Acc(0);
            }
        }
    }

    // Calls store(row, col, group) for each group of neighbours in a row, by the block's rows and
    // columns. A loop over rows that shifts the accumulators keeps the code of `store` small
    // without indexing registers at run time.
    template <class Store>
    __device__ __forceinline__ void for_each_group(Store&& store) {
#pragma unroll 1
        for (int i = 0; i < kM; ++i) {
#pragma unroll
            for (int g = 0; g < kGroupsN; ++g) {
                Acc group[kGroup];
#pragma unroll
                for (int j = 0; j < kGroup; ++j) group[j] = acc[0][g * kGroup + j];
                store(row0 + row(i), col0 + col(g), group);
            }
#pragma unroll
            for (int next = 1; next < kM; ++next) {
#pragma unroll
                for (int j = 0; j < kN; ++j) acc[next - 1][j] = acc[next][j];
            }
        }
    }
};

template <class Policy>
using Place = device::TilePlace<Policy::kBlockM, Policy::kBlockN>;

template <class Policy, class Epilogue>
__device__ __forceinline__ void write_tile(ThreadTile<Policy>& tile, const GemmArgs& args,
                                           const Work& work, const Epilogue& epilogue,
                                           std::int64_t index) {
    using Acc = typename Policy::Numbers::Acc;
    constexpr int kGroup = ThreadTile<Policy>::kGroup;
    const Place<Policy> place(work.tiles.tile(index), args, work.split);
    const epilogue::Output<Epilogue> output(epilogue, args, place.batch,
                                            place.part * work.split.d_stride);
    tile.for_each_group([&](int row, int col, const Acc(&group)[kGroup]) {
        if (row >= place.rows || col >= place.cols) return;
        typename Epilogue::Value value[kGroup];
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
            value[j] = epilogue::widen<typename Epilogue::Value>(group[j]);
        }
        output.template store<kGroup>(place.m + row, place.n + col, value,
                                      min(place.cols - col, kGroup));
    });
}

template <class Policy, class Epilogue>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerSm)
    gemm_kernel(const __grid_constant__ GemmArgs args, const __grid_constant__ Work work,
                const __grid_constant__ Epilogue epilogue) {
    using Numbers = typename Policy::Numbers;
    using Element = typename Numbers::Element;
    using Feed = TileFeed<Policy>;
    constexpr bool kPromotes = Numbers::kAccumulate == Accumulate::promoted;
    constexpr int kPromotedTiles = kPromotedK / Policy::kBlockK;
    __shared__ FeedTiles<Policy> shared;
    // Lets nobody in before its end: blocks of a successor would crowd on the SMs that have room.
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;

    for (std::int64_t index = blockIdx.x; index < work.tiles.count(); index += gridDim.x) {
        const Place<Policy> place(work.tiles.tile(index), args, work.split);
        const std::int64_t row0 = place.m, col0 = place.n, batch = place.batch;
        const std::int64_t k0 = place.part * work.split.k_per_split;
        const std::int64_t k = min(work.split.k_per_split, args.k - k0);

        // Main loop. Loads past the end read nothing.
        ThreadTile<Policy> tile, promoted;
        Feed feed(shared,
                  {work.a,
                   static_cast<const Element*>(args.a.data) +
                       element_offset(args.batch, args.a, batch, row0, k0),
                   args.m - row0},
                  {work.b,
                   static_cast<const Element*>(args.b.data) +
                       element_offset(args.batch, args.b, batch, k0, col0),
                   args.n - col0},
                  k);
        std::int64_t tiles = (k + Policy::kBlockK - 1) / Policy::kBlockK;
        int unpromoted = 0;  // k-tiles that `tile` holds
        [[maybe_unused]] std::int64_t k_block = k0 / kPromotedK;
        typename ThreadTile<Policy>::Fragments fragments[2];
        feed.arrive();
        tile.read(fragments[0], feed.a(), feed.b(), 0);
        for (; tiles > 0; --tiles) {
            feed.load();
            // Fragments are read one k ahead, also those of the next k-tile: while the last k is
            // multiplied, threads wait for each other and for shared memory.
#pragma unroll 1
            for (int first = 0; first < Policy::kSliceK; first += Policy::kUnrolledK) {
#pragma unroll
                for (int step = 1; step <= Policy::kUnrolledK; ++step) {
                    const bool last = first + step == Policy::kSliceK;
                    if (last) feed.arrive();
                    tile.read(fragments[step % 2], feed.a(), feed.b(), last ? 0 : first + step);
                    tile.multiply(fragments[(step - 1) % 2]);
                }
            }
            if constexpr (kPromotes) {
                if (++unpromoted == kPromotedTiles || tiles == 1) {
                    unpromoted = 0;
                    if constexpr (kIsScaled<Numbers>) {
                        promoted.take_scaled(tile, epilogue.in_batch(args.batch, batch), row0, col0,
                                             args.m - 1, args.n - 1, k_block++);
                    } else {
                        promoted.take(tile);
                    }
                }
            }
        }

        if constexpr (Policy::kSlices > 1) {
            static_assert(!kPromotes);
            tile.add_slices(shared);
            if (tile.slice() > 0) continue;
        }
        // Where the tile lies is computed again: kept, it would cost registers in the main loop.
        index = device::ptx::opaque(index);
        write_tile<Policy>(kPromotes ? promoted : tile, args, work, epilogue, index);
    }
}

}  // namespace tcgemm::simt
