// The kernels of this family: one line each. Everything else is generated from these lists: the
// table, the cost model's entry and the instantiations.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/device/f32_halves.hpp"
#include "kernels/device/fp8.cuh"
#include "kernels/device/tf32.hpp"
#include "kernels/sm90_wgmma/policy.hpp"

namespace tcgemm::sm90_wgmma {

// id (the name behind "sm90_wgmma_"), elements of A and B, accumulator, promoted, block M x N,
// consumers, ping-pong, blocks an SM; then fitted to schedules measured on an H100 (step 82), in
// microseconds: what a block does besides its k-blocks, the multiplications of a k-block where few
// SMs are at work, and what each further tile adds.
// clang-format off
#define TCGEMM_SM90_WGMMA_TILES(ROW, type, T)                                                          \
    ROW(type##_128x256, T, T, float, false, 128, 256, 2, false, 1, 3.2, 0.55, 2.94)                    \
    ROW(type##_192x208, T, T, float, false, 192, 208, 3, false, 1, 3.24, 0.704, 3.42)                  \
    ROW(type##_128x128_pp, T, T, float, false, 128, 128, 2, true, 1, 2.31, 0.305, 0.5)                 \
    ROW(type##_64x128_pp, T, T, float, false, 64, 128, 2, true, 1, 2.02, 0.166, 0.88)                  \
    ROW(type##_64x64, T, T, float, false, 64, 64, 1, false, 2, 1.63, 0.076, 0.65)                      \
    ROW(type##_64x64_pp, T, T, float, false, 64, 64, 2, true, 1, 1.9, 0.067, 0.53)                     \
    ROW(type##_promoted_128x192, T, T, float, true, 128, 192, 2, false, 1, 2.93, 0.476, 3.48)          \
    ROW(type##_promoted_64x128, T, T, float, true, 64, 128, 1, false, 2, 2.4, 0.153, 0.42)
// 16-bit elements, in all layouts, with K split where that pays.
#define TCGEMM_SM90_WGMMA_ROWS(ROW)                                                                    \
    ROW(f16_acc16_128x256, __half, __half, __half, false, 128, 256, 2, false, 1, 3.2, 0.55, 2.94)      \
    TCGEMM_SM90_WGMMA_TILES(ROW, f16, __half)                                                          \
    TCGEMM_SM90_WGMMA_TILES(ROW, bf16, __nv_bfloat16)
#define TCGEMM_SM90_WGMMA_FP8(ROW, type, A, B)                                                         \
    ROW(type##_promoted_128x208, A, B, float, true, 128, 208, 2, false, 1, 3.6, 0.455, 2.83)           \
    ROW(type##_promoted_64x128, A, B, float, true, 64, 128, 1, false, 2, 3.0, 0.33, 0.92)              \
    ROW(type##_fast_128x256, A, B, float, false, 128, 256, 2, false, 1, 5, 0.533, 2.7)                 \
    ROW(type##_fast_128x128_pp, A, B, float, false, 128, 128, 2, true, 1, 2.6, 0.29, 0.6)              \
    ROW(type##_fast_64x128_pp, A, B, float, false, 64, 128, 2, true, 1, 2.6, 0.168, 0.5)
// All others, with contiguous k.
#define TCGEMM_SM90_WGMMA_E4M3_ROWS(ROW)                                                               \
    TCGEMM_SM90_WGMMA_FP8(ROW, e4m3, device::E4M3, device::E4M3)                                       \
    TCGEMM_SM90_WGMMA_FP8(ROW, e4m3_e5m2, device::E4M3, device::E5M2)
#define TCGEMM_SM90_WGMMA_E5M2_ROWS(ROW)                                                               \
    TCGEMM_SM90_WGMMA_FP8(ROW, e5m2_e4m3, device::E5M2, device::E4M3)                                  \
    TCGEMM_SM90_WGMMA_FP8(ROW, e5m2, device::E5M2, device::E5M2)
#define TCGEMM_SM90_WGMMA_I8_TF32_ROWS(ROW)                                                            \
    ROW(i8_128x256, std::int8_t, std::int8_t, std::int32_t, false, 128, 256, 2, false, 1, 2.8, 0.54, 3.0) \
    ROW(i8_128x128_pp, std::int8_t, std::int8_t, std::int32_t, false, 128, 128, 2, true, 1, 2.6, 0.27, 0.8) \
    ROW(i8_64x128_pp, std::int8_t, std::int8_t, std::int32_t, false, 64, 128, 2, true, 1, 2.61, 0.171, 0.39) \
    ROW(tf32_128x128_pp, device::Tf32, device::Tf32, float, false, 128, 128, 2, true, 1, 2.41, 0.295, 1.4)
// With A of any layout, and a B with contiguous k.
#define TCGEMM_SM90_WGMMA_ANY_A_ROWS(ROW)                                                              \
    ROW(tf32_128x256, device::Tf32, device::Tf32, float, false, 128, 256, 2, false, 1, 4.12, 0.59, 6.5) \
    ROW(tf32_64x128_pp, device::Tf32, device::Tf32, float, false, 64, 128, 2, true, 1, 2.29, 0.203, 1.34)
#define TCGEMM_SM90_WGMMA_K_MAJOR_ROWS(ROW)                                                            \
    TCGEMM_SM90_WGMMA_E4M3_ROWS(ROW)                                                                   \
    TCGEMM_SM90_WGMMA_E5M2_ROWS(ROW)                                                                   \
    TCGEMM_SM90_WGMMA_I8_TF32_ROWS(ROW)                                                                \
    TCGEMM_SM90_WGMMA_ANY_A_ROWS(ROW)
// float32 operands in halves, three products of halves for one. A k-block is of one half of 64 k, so that the times
// are those of half a stage.
#define TCGEMM_SM90_WGMMA_HALVES_ROWS(ROW)                                                             \
    ROW(f32_halves_128x128, device::F32Halves, device::F32Halves, float, true, 128, 128, 2, false, 1, 3.3, 0.46, 5)
// clang-format on

#define TCGEMM_ROW(id, A, B, accumulator, promotes, block_m, block_n, consumer_count, pingpong,    \
                   blocks, start, k_block, tile_time)                                              \
    struct id {                                                                                    \
        using ElementA = A;                                                                        \
        using ElementB = B;                                                                        \
        using Accumulator = accumulator;                                                           \
        static constexpr const char* name = "sm90_wgmma_" #id;                                     \
        static constexpr TileConfig tile = {block_m,                                               \
                                            block_n,                                               \
                                            kRowBytes / sizeof(A),                                 \
                                            pingpong ? block_m : block_m / consumer_count,         \
                                            block_n,                                               \
                                            (1 + consumer_count) * kWarpgroup};                    \
        static constexpr bool promoted = promotes, ping_pong = pingpong;                           \
        static constexpr bool halves = std::is_same_v<A, device::F32Halves>;                       \
        /* the others: contiguous k, */                                                            \
        static constexpr bool any_major = sizeof(A) == 2 && !halves;                               \
        /* but of A, which comes out of registers where m is contiguous. With 128 rows a */        \
        /* warpgroup there are too few to load it as far ahead as it takes. */                     \
        static constexpr bool any_major_a =                                                        \
            any_major || (std::is_same_v<A, device::Tf32> && tile.warp_m == kMmaM);                \
        static constexpr bool few_rows = !any_major && !halves && block_m * block_n <= 64 * 128;   \
        /* K over the two blocks of a cluster: for few rows alone it pays. */                      \
        static constexpr bool splits_in_cluster =                                                  \
            any_major && pingpong && block_m * block_n <= 64 * 64;                                 \
        /* Small tiles of contiguous k are for few rows too, large ones become narrower (but */    \
        /* those of integers, whose loops would spill): what that leaves of shared memory */       \
        /* holds further stages. */                                                                \
        static constexpr bool narrows = block_n > 128 && !std::is_same_v<A, std::int8_t>;          \
        /* Large tiles that promote lose a tenth to a ring whose size is not known before. Small   \
           ones would wait for loads in theirs, where a block has an SM for itself. */             \
        static constexpr bool small_promoted = any_major && promotes && blocks > 1;                \
        static constexpr bool fits_ring = few_rows || (narrows && !promotes) || small_promoted;    \
        /* A quarter of those. Otherwise half or less is for the next smaller tile, if any. */     \
        static constexpr int least_n = few_rows || small_promoted                        ? 32      \
                                       : !narrows || std::is_same_v<accumulator, __half> ? block_n \
                                       : any_major || !promotes                                    \
                                           ? block_n / 4 / kWidthStep * kWidthStep                 \
                                           : (block_n / 2 + kWidthStep) / kWidthStep * kWidthStep; \
        /* Columns that do not exist cost time where they are promoted, or many. */                \
        static constexpr bool by_steps = promotes || !few_rows;                                    \
        static constexpr bool scales = sizeof(A) == 1;                                             \
        static constexpr bool block_scales = scales && promotes;                                   \
        static constexpr int consumers = consumer_count, blocks_per_sm = blocks;                   \
        /* k-blocks that come and go together: a small tile's wgmma are done sooner than a */      \
        /* barrier and the issue of the next ones take. Two blocks on an SM hide that from each */ \
        /* other. And both halves, each of which is multiplied twice. */                           \
        static constexpr int stage_blocks =                                                        \
            halves || (block_m * block_n <= 64 * 128 && blocks == 1 && !promotes) ? 2 : 1;         \
        /* Large tiles have more boxes of D than there are stagings: see ring_of(). */             \
        static constexpr bool more_stagings = !halves && !promotes && consumer_count == 2 &&       \
                                              block_m * block_n >= 128 * 128 &&                    \
                                              (any_major || pingpong);                             \
        static constexpr double start_us = start, k_block_us = k_block, tile_us = tile_time;       \
    };
TCGEMM_SM90_WGMMA_ROWS(TCGEMM_ROW)
TCGEMM_SM90_WGMMA_K_MAJOR_ROWS(TCGEMM_ROW)
TCGEMM_SM90_WGMMA_HALVES_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW

}  // namespace tcgemm::sm90_wgmma
