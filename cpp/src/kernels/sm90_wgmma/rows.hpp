// The kernels of this family: one line each. Everything else is generated from this list: the
// table, the cost model's entry and the instantiations for the four layouts.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/sm90_wgmma/policy.hpp"

namespace tcgemm::sm90_wgmma {

// id (the name behind "sm90_wgmma_"), element, accumulator, promoted, block M x N, ping-pong.
#define TCGEMM_SM90_WGMMA_ROWS(ROW)                                         \
    ROW(f16_128x256, __half, float, false, 128, 256, false)                 \
    ROW(f16_128x128, __half, float, false, 128, 128, true)                  \
    ROW(f16_64x128, __half, float, false, 64, 128, true)                    \
    ROW(f16_64x64, __half, float, false, 64, 64, true)                      \
    ROW(bf16_128x256, __nv_bfloat16, float, false, 128, 256, false)         \
    ROW(bf16_128x128, __nv_bfloat16, float, false, 128, 128, true)          \
    ROW(bf16_64x128, __nv_bfloat16, float, false, 64, 128, true)            \
    ROW(bf16_64x64, __nv_bfloat16, float, false, 64, 64, true)              \
    ROW(f16_promoted_128x128, __half, float, true, 128, 128, false)         \
    ROW(bf16_promoted_128x128, __nv_bfloat16, float, true, 128, 128, false) \
    ROW(f16_acc16_128x256, __half, __half, false, 128, 256, false)

#define TCGEMM_ROW(id, element, accumulator, promotes, block_m, block_n, pingpong)           \
    struct id {                                                                              \
        using Element = element;                                                             \
        using Accumulator = accumulator;                                                     \
        static constexpr const char* name = "sm90_wgmma_" #id;                               \
        static constexpr TileConfig tile = {                                                 \
            block_m, block_n, kBlockK, pingpong ? block_m : block_m / 2, block_n, kThreads}; \
        static constexpr bool promoted = promotes, ping_pong = pingpong;                     \
    };
TCGEMM_SM90_WGMMA_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW

}  // namespace tcgemm::sm90_wgmma
