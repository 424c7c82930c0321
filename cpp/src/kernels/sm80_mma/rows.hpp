// The kernels of this family: one line each. Everything else is generated from these lists: the
// table, the cost model's entry and the instantiations.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/device/tf32.hpp"
#include "kernels/sm80_mma/policy.hpp"

namespace tcgemm::sm80_mma {

// id (the name behind "sm80_mma_"), element, accumulator, promoted (sums of 128 k go to a second
// accumulator), block M x N x K, warp M x N, k-blocks in shared memory, blocks an SM (bounds the
// registers of a thread); then for the cost model, see RowCost: k-block, block, latency of a
// k-block from L2 and from memory.
// clang-format off
#define TCGEMM_SM80_MMA_TILES(ROW, type, element)                                                           \
    ROW(type##_256x128x64, element, float, false, 256, 128, 64, 64, 64, 3, 1, 1.08, 4.4, 0.75, 0.95)        \
    ROW(type##_256x128x32, element, float, false, 256, 128, 32, 64, 64, 4, 1, 0.55, 4.0, 0.4, 0.52)         \
    ROW(type##_128x128x32, element, float, false, 128, 128, 32, 64, 64, 4, 2, 0.29, 2.4, 0.33, 0.33)        \
    ROW(type##_64x128x32, element, float, false, 64, 128, 32, 32, 64, 4, 3, 0.18, 1.0, 0.28, 0.3)           \
    ROW(type##_64x64x32, element, float, false, 64, 64, 32, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)          \
    ROW(type##_promoted_128x128x32, element, float, true, 128, 128, 32, 64, 32, 4, 1, 0.36, 3.5, 0.35, 0.45)
// In all layouts.
#define TCGEMM_SM80_MMA_ROWS(ROW)                                                                           \
    TCGEMM_SM80_MMA_TILES(ROW, f16, __half)                                                                 \
    TCGEMM_SM80_MMA_TILES(ROW, bf16, __nv_bfloat16)                                                         \
    ROW(f16_acc16_256x128x32, __half, __half, false, 256, 128, 32, 64, 64, 4, 1, 0.55, 4.0, 0.4, 0.52)      \
    ROW(f64_128x128x16, double, double, false, 128, 128, 16, 64, 32, 4, 1, 1.055, 5.0, 1.06, 1.06)           \
    ROW(f64_64x64x16, double, double, false, 64, 64, 16, 32, 32, 4, 3, 0.30, 2.5, 0.5, 0.6)
// With contiguous k: ldmatrix transposes elements of 16 bits only.
#define TCGEMM_SM80_MMA_K_MAJOR_ROWS(ROW)                                                                   \
    ROW(i8_256x128x128, std::int8_t, std::int32_t, false, 256, 128, 128, 64, 64, 3, 1, 1.02, 5.0, 0.75, 0.95) \
    ROW(i8_256x128x64, std::int8_t, std::int32_t, false, 256, 128, 64, 64, 64, 4, 1, 0.53, 4.6, 0.4, 0.52)  \
    ROW(i8_128x128x64, std::int8_t, std::int32_t, false, 128, 128, 64, 64, 64, 4, 2, 0.286, 2.4, 0.33, 0.33) \
    ROW(i8_64x64x64, std::int8_t, std::int32_t, false, 64, 64, 64, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)   \
    ROW(tf32_256x128x32, device::Tf32, float, false, 256, 128, 32, 64, 64, 3, 1, 1.02, 4.8, 0.75, 0.95)     \
    ROW(tf32_256x128x16, device::Tf32, float, false, 256, 128, 16, 64, 64, 4, 1, 0.52, 4.6, 0.4, 0.52)      \
    ROW(tf32_128x128x16, device::Tf32, float, false, 128, 128, 16, 64, 64, 4, 2, 0.28, 2.4, 0.33, 0.33)     \
    ROW(tf32_64x64x16, device::Tf32, float, false, 64, 64, 16, 32, 32, 4, 3, 0.125, 0.5, 0.255, 0.29)
// clang-format on

#define TCGEMM_ROW(id, element, accumulator, promotes, block_m, block_n, block_k, warp_m, warp_n, \
                   stage_count, blocks, k_us, us, latency, far_latency)                           \
    struct id {                                                                                   \
        using Element = element;                                                                  \
        using Accumulator = accumulator;                                                          \
        static constexpr const char* name = "sm80_mma_" #id;                                      \
        static constexpr TileConfig tile = {block_m, block_n,                                     \
                                            block_k, warp_m,                                      \
                                            warp_n,  block_m / warp_m * (block_n / warp_n) * 32}; \
        static constexpr bool promoted = promotes;                                                \
        /* The others take contiguous k only. */                                                  \
        static constexpr bool any_major = sizeof(element) == 2 || sizeof(element) == 8;           \
        static constexpr bool scales = sizeof(element) == 1; /* has the epilogue `scaled` too */  \
        static constexpr int stages = stage_count, blocks_per_sm = blocks;                        \
        static constexpr double k_block_us = k_us, block_us = us, latency_us = latency,           \
                                far_latency_us = far_latency;                                     \
        static constexpr int stage_bytes =                                                        \
            (block_m + block_n) * block_k * static_cast<int>(sizeof(element));                    \
        static constexpr int shared_bytes = stages * stage_bytes + 64;                            \
    };
TCGEMM_SM80_MMA_ROWS(TCGEMM_ROW)
TCGEMM_SM80_MMA_K_MAJOR_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW

}  // namespace tcgemm::sm80_mma
