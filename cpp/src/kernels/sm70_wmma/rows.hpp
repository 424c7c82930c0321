// The kernels of this family: one line each. Everything else is generated from this list: the
// table, the cost model's entry and the instantiations for the four layouts.
#pragma once

#include <cuda_fp16.h>

#include "kernels/kernel_info.hpp"

namespace tcgemm::sm70_wmma {

// id (the name behind "sm70_wmma_"), accumulator, block M x N x K, warp M x N, blocks an SM (bounds
// the registers of a thread); then measured on an H200, in microseconds: a k-block where the SM is
// full, and all that a block does besides its k-blocks.
#define TCGEMM_SM70_WMMA_ROWS(ROW)                                         \
    ROW(f16_128x256x32, float, 128, 256, 32, 64, 64, 1, 0.76, 5.0)         \
    ROW(f16_128x128x32, float, 128, 128, 32, 64, 64, 2, 0.415, 4.0)        \
    ROW(f16_64x64x64, float, 64, 64, 64, 32, 32, 3, 0.34, 1.5)             \
    ROW(f16_acc16_128x128x32, __half, 128, 128, 32, 64, 64, 2, 0.385, 3.0) \
    ROW(f16_acc16_64x64x64, __half, 64, 64, 64, 32, 32, 3, 0.34, 1.5)

#define TCGEMM_ROW(id, accumulator, block_m, block_n, block_k, warp_m, warp_n, blocks, k_us, us)  \
    struct id {                                                                                   \
        using Accumulator = accumulator;                                                          \
        static constexpr const char* name = "sm70_wmma_" #id;                                     \
        static constexpr TileConfig tile = {block_m, block_n,                                     \
                                            block_k, warp_m,                                      \
                                            warp_n,  block_m / warp_m * (block_n / warp_n) * 32}; \
        static constexpr int blocks_per_sm = blocks;                                              \
        static constexpr double k_block_us = k_us, block_us = us;                                 \
    };
TCGEMM_SM70_WMMA_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW

}  // namespace tcgemm::sm70_wmma
