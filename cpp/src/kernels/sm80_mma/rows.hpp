// The kernels of this family: one line each. Everything else is generated from these lists: the
// table, the cost model's entry and the instantiations.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/device/f32_halves.hpp"
#include "kernels/device/fp8.cuh"
#include "kernels/device/tf32.hpp"
#include "kernels/sm80_mma/policy.hpp"

namespace tcgemm::sm80_mma {

// id (the name behind "sm80_mma_"), elements of A and B, accumulator, promoted (sums of a k-block
// go to a second accumulator), block M x N x K, warp M x N, k-blocks in shared memory, blocks an SM
// (bounds the registers of a thread); then for the cost model, see wave::RowCost: k-block, block,
// latency of a k-block from L2 and from memory.
// clang-format off
#define TCGEMM_SM80_MMA_TILES(ROW, type, T)                                                           \
    ROW(type##_256x128x64, T, T, float, false, 256, 128, 64, 64, 64, 3, 1, 1.08, 4.4, 0.75, 0.95)        \
    ROW(type##_256x128x32, T, T, float, false, 256, 128, 32, 64, 64, 4, 1, 0.55, 4.0, 0.4, 0.52)         \
    ROW(type##_128x128x32, T, T, float, false, 128, 128, 32, 64, 64, 4, 2, 0.29, 2.4, 0.33, 0.33)        \
    ROW(type##_64x128x32, T, T, float, false, 64, 128, 32, 32, 64, 4, 3, 0.18, 1.0, 0.28, 0.3)           \
    ROW(type##_64x64x32, T, T, float, false, 64, 64, 32, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)          \
    ROW(type##_promoted_128x128x64, T, T, float, true, 128, 128, 64, 64, 32, 3, 1, 0.76, 3.8, 0.76, 0.9)
// In all layouts.
#define TCGEMM_SM80_MMA_ROWS(ROW)                                                                           \
    ROW(f16_acc16_256x128x32, __half, __half, __half, false, 256, 128, 32, 64, 64, 4, 1, 0.55, 4.0, 0.4, 0.52)      \
    TCGEMM_SM80_MMA_TILES(ROW, f16, __half)                                                                 \
    TCGEMM_SM80_MMA_TILES(ROW, bf16, __nv_bfloat16)                                                         \
    ROW(f64_128x128x16, double, double, double, false, 128, 128, 16, 64, 32, 5, 1, 1.055, 5.0, 1.06, 1.06)           \
    ROW(f64_64x64x16, double, double, double, false, 64, 64, 16, 32, 32, 4, 3, 0.30, 2.5, 0.5, 0.6)                  \
    ROW(f64_32x64x16, double, double, double, false, 32, 64, 16, 32, 32, 6, 3, 0.172, 3.2, 0.25, 0.4)                 \
    ROW(f64_32x32x32, double, double, double, false, 32, 32, 32, 32, 32, 6, 2, 0.185, 2.4, 0.29, 0.45)                \
    ROW(f64_unaligned_128x128x16, UnalignedF64, UnalignedF64, double, false, 128, 128, 16, 64, 32, 5, 1, 1.09, 5.0, 1.06, 1.06) \
    ROW(f64_unaligned_64x64x16, UnalignedF64, UnalignedF64, double, false, 64, 64, 16, 32, 32, 4, 3, 0.36, 2.5, 0.5, 0.6)                  \
    ROW(f64_unaligned_32x32x32, UnalignedF64, UnalignedF64, double, false, 32, 32, 32, 32, 32, 5, 2, 0.29, 2.8, 0.37, 0.5)
// With contiguous k: ldmatrix transposes elements of 16 bits only.
#define TCGEMM_SM80_MMA_K_MAJOR_ROWS(ROW)                                                                   \
    ROW(i8_256x128x128, std::int8_t, std::int8_t, std::int32_t, false, 256, 128, 128, 64, 64, 3, 1, 1.02, 5.0, 0.75, 0.95) \
    ROW(i8_256x128x64, std::int8_t, std::int8_t, std::int32_t, false, 256, 128, 64, 64, 64, 4, 1, 0.53, 4.6, 0.4, 0.52)  \
    ROW(i8_128x128x64, std::int8_t, std::int8_t, std::int32_t, false, 128, 128, 64, 64, 64, 4, 2, 0.286, 2.4, 0.33, 0.33) \
    ROW(i8_64x64x64, std::int8_t, std::int8_t, std::int32_t, false, 64, 64, 64, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)   \
    ROW(tf32_256x128x32, device::Tf32, device::Tf32, float, false, 256, 128, 32, 64, 64, 3, 1, 1.02, 4.8, 0.75, 0.95)     \
    ROW(tf32_256x128x16, device::Tf32, device::Tf32, float, false, 256, 128, 16, 64, 64, 4, 1, 0.52, 4.6, 0.4, 0.52)      \
    ROW(tf32_128x128x16, device::Tf32, device::Tf32, float, false, 128, 128, 16, 64, 64, 4, 2, 0.28, 2.4, 0.33, 0.33)     \
    ROW(tf32_64x64x16, device::Tf32, device::Tf32, float, false, 64, 64, 16, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)
// FP8, likewise, on the tensor cores of sm_89 and newer.
#define TCGEMM_SM80_MMA_FP8(ROW, type, A, B)                                                                \
    ROW(type##_promoted_96x128x128, A, B, float, true, 96, 128, 128, 48, 32, 3, 1, 0.72, 3.8, 0.7, 0.9)   \
    ROW(type##_promoted_64x64x128, A, B, float, true, 64, 64, 128, 32, 32, 3, 2, 0.27, 1.0, 0.5, 0.6)       \
    ROW(type##_fast_128x128x128, A, B, float, false, 128, 128, 128, 64, 32, 3, 1, 0.55, 4.6, 0.4, 0.52)       \
    ROW(type##_fast_64x64x64, A, B, float, false, 64, 64, 64, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)
#define TCGEMM_SM80_MMA_FP8_ROWS(ROW)                                                                       \
    TCGEMM_SM80_MMA_FP8(ROW, e4m3, device::E4M3, device::E4M3)                                              \
    TCGEMM_SM80_MMA_FP8(ROW, e4m3_e5m2, device::E4M3, device::E5M2)                                         \
    TCGEMM_SM80_MMA_FP8(ROW, e5m2_e4m3, device::E5M2, device::E4M3)                                         \
    TCGEMM_SM80_MMA_FP8(ROW, e5m2, device::E5M2, device::E5M2)
// float32 operands in halves, packed with contiguous k: a k-block is 32 k of both halves.
#define TCGEMM_SM80_MMA_HALVES_ROWS(ROW)                                                                    \
    ROW(f32_halves_96x128x64, device::F32Halves, device::F32Halves, float, true, 96, 128, 64, 48, 32, 3, 1, 0.85, 4.0, 0.85, 0.95)
// clang-format on

#define TCGEMM_ROW(id, A, B, accumulator, promotes, block_m, block_n, block_k, warp_m, warp_n,    \
                   stage_count, blocks, k_us, us, latency, far_latency)                           \
    struct id {                                                                                   \
        using ElementA = A;                                                                       \
        using ElementB = B;                                                                       \
        using Accumulator = accumulator;                                                          \
        static constexpr const char* name = "sm80_mma_" #id;                                      \
        static constexpr int warps_mn = block_m / warp_m * (block_n / warp_n);                    \
        static constexpr int warps_k = warps_along_k<accumulator>(warps_mn);                      \
        static constexpr TileConfig tile = {block_m, block_n, block_k,                            \
                                            warp_m,  warp_n,  warps_mn * warps_k * 32};           \
        /* Starts while the kernel before ends (device::LaunchConfig). Small products gain a      \
           fifth; many blocks, several an SM, would crowd on the SMs that are free first. */      \
        static constexpr bool overlaps = warps_k > 2;                                             \
        static constexpr bool promoted = promotes;                                                \
        static constexpr bool halves = std::is_same_v<A, device::F32Halves>;                      \
        static constexpr bool unaligned = std::is_same_v<A, UnalignedF64>;                        \
        static constexpr bool fp8 = device::kIsFp8<A>;                                            \
        static constexpr int least_cc = fp8 ? kFp8Cc : 80;                                        \
        /* The others take contiguous k only. */                                                  \
        static constexpr bool any_major = (sizeof(A) == 2 && !halves) || sizeof(A) == 8;          \
        static constexpr bool scales = sizeof(A) == 1; /* has the epilogue `scaled`, */           \
        static constexpr bool block_scales = fp8 && promotes && block_n <= 64; /* registers */    \
        static constexpr bool linear = !fp8;                                   /* and `linear` */ \
        static constexpr int stages = stage_count, blocks_per_sm = blocks;                        \
        static constexpr double k_block_us = k_us, block_us = us, latency_us = latency,           \
                                far_latency_us = far_latency;                                     \
        static constexpr int ring_bytes =                                                         \
            stages * (block_m + block_n) * block_k * static_cast<int>(sizeof(A));                 \
        static constexpr int shared_bytes = ring_bytes + static_cast<int>(sizeof(Keep));          \
    };
TCGEMM_SM80_MMA_ROWS(TCGEMM_ROW)
TCGEMM_SM80_MMA_K_MAJOR_ROWS(TCGEMM_ROW)
TCGEMM_SM80_MMA_FP8_ROWS(TCGEMM_ROW)
TCGEMM_SM80_MMA_HALVES_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW

}  // namespace tcgemm::sm80_mma
