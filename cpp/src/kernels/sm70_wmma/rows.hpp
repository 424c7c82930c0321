// The kernels of this family: one line each. Everything else is generated from these lists: the
// table, the cost model's entry and the instantiations.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sm70_wmma/policy.hpp"

namespace tcgemm::sm70_wmma {

// id (the name behind "sm70_wmma_"), element, accumulator, block M x N x K, warp M x N, blocks an
// SM (bounds the registers of a thread); then in microseconds on an H200: a k-block where the SM is
// full, and all that a block does besides its k-blocks. Measured for FP16; for INT8 those of as
// many bytes.
// clang-format off
// In all layouts.
#define TCGEMM_SM70_WMMA_ROWS(ROW)                                                        \
    ROW(f16_128x256x32, __half, float, 128, 256, 32, 64, 64, 1, 0.76, 5.0)                \
    ROW(f16_128x128x32, __half, float, 128, 128, 32, 64, 64, 2, 0.415, 4.0)               \
    ROW(f16_64x64x64, __half, float, 64, 64, 64, 32, 32, 3, 0.34, 1.5)                    \
    ROW(f16_acc16_128x128x32, __half, __half, 128, 128, 32, 64, 64, 2, 0.385, 3.0)        \
    ROW(f16_acc16_64x64x64, __half, __half, 64, 64, 64, 32, 32, 3, 0.34, 1.5)
// With contiguous k: loads of fragments transpose elements of 16 bits only.
#define TCGEMM_SM70_WMMA_K_MAJOR_ROWS(ROW)                                                \
    ROW(i8_128x256x64, std::int8_t, std::int32_t, 128, 256, 64, 64, 64, 1, 0.98, 5.0)     \
    ROW(i8_128x128x64, std::int8_t, std::int32_t, 128, 128, 64, 64, 64, 2, 0.48, 4.0)     \
    ROW(i8_64x64x64, std::int8_t, std::int32_t, 64, 64, 64, 32, 32, 3, 0.19, 1.5)
// clang-format on

#define TCGEMM_ROW(id, element, accumulator, block_m, block_n, block_k, warp_m, warp_n, blocks,   \
                   k_us, us)                                                                      \
    struct id {                                                                                   \
        using Element = element;                                                                  \
        using Accumulator = accumulator;                                                          \
        static constexpr const char* name = "sm70_wmma_" #id;                                     \
        static constexpr TileConfig tile = {block_m, block_n,                                     \
                                            block_k, warp_m,                                      \
                                            warp_n,  block_m / warp_m * (block_n / warp_n) * 32}; \
        static constexpr bool is_int8 = kIsInt8<element>;                                         \
        static constexpr int least_cc = is_int8 ? 75 : 70;                                        \
        static constexpr bool any_major = !is_int8; /* otherwise contiguous k only */             \
        static constexpr bool scales = is_int8;     /* has the epilogue `scaled` too */           \
        static constexpr int blocks_per_sm = blocks;                                              \
        static constexpr double k_block_us = k_us, block_us = us;                                 \
    };
TCGEMM_SM70_WMMA_ROWS(TCGEMM_ROW)
TCGEMM_SM70_WMMA_K_MAJOR_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW

}  // namespace tcgemm::sm70_wmma
