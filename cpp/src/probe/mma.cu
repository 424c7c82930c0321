// One instruction of a warp: the first row of A is a, the first column of B is b, all else is 0.
#include <mma.h>

#include <algorithm>
#include <cstdint>

#include "kernels/device/fp8.cuh"
#include "kernels/device/launch.cuh"
#include "probe/launch.hpp"

namespace tcgemm::probe {
namespace {

using namespace nvcuda;

// 16 x 16 x 16 through nvcuda::wmma.
template <class Element>
__device__ float multiply(const float* a, const float* b, float c) {
    constexpr int K = 16;
    __shared__ alignas(32) Element tile_a[16 * K];
    __shared__ alignas(32) Element tile_b[K * 16];  // its columns lie end to end
    __shared__ alignas(32) float tile_d[16 * 16];
    for (int i = threadIdx.x; i < 16 * K; i += 32) {
        tile_a[i] = Element(i < K ? a[i] : 0.0f);
        tile_b[i] = Element(i < K ? b[i] : 0.0f);
    }
    for (int i = threadIdx.x; i < 16 * 16; i += 32) tile_d[i] = i == 0 ? c : 0.0f;
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, K, Element, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, K, Element, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, K, float> sum;
    wmma::load_matrix_sync(left, tile_a, K);
    wmma::load_matrix_sync(right, tile_b, K);
    wmma::load_matrix_sync(sum, tile_d, 16, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(tile_d, sum, 16, wmma::mem_row_major);
    __syncwarp();
    return tile_d[0];
}

#if __CUDA_ARCH__ >= 800
// m16n8k8. Of A and B, lane i < 4 holds k = i and i + 4 of row (column) 0.
__device__ float multiply_tf32(const float* a, const float* b, float c) {
    const int lane = threadIdx.x;
    const auto element = [&](const float* from, int k) {
        return lane < 4 ? __float_as_uint(from[k + lane]) : 0u;
    };
    float d0 = lane == 0 ? c : 0.0f, d1 = 0, d2 = 0, d3 = 0;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(element(a, 0)), "r"(0), "r"(element(a, 4)), "r"(0), "r"(element(b, 0)),
          "r"(element(b, 4)));
    return d0;
}
#endif

#if __CUDA_ARCH__ >= 890
// m16n8k32. Of A and B, lane i < 4 holds k = 4 i .. 4 i + 3 and 16 + 4 i .. of row (column) 0.
template <DType kFormat>
__device__ float multiply_fp8(const float* a, const float* b, float c) {
    const auto four = [](const float* from) {
        std::uint32_t packed = 0;
        for (int i = 0; i < 4; ++i) {
            packed |= std::uint32_t{device::Fp8<kFormat>::round(from[i], false).bits} << 8 * i;
        }
        return packed;
    };
    const int lane = threadIdx.x;
    std::uint32_t a0 = 0, a2 = 0, b0 = 0, b1 = 0;
    if (lane < 4) {
        a0 = four(a + 4 * lane), a2 = four(a + 16 + 4 * lane);
        b0 = four(b + 4 * lane), b1 = four(b + 16 + 4 * lane);
    }
    float d0 = lane == 0 ? c : 0.0f, d1 = 0, d2 = 0, d3 = 0;
#define TCGEMM_FP8_MMA(type)                                                            \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." type "." type                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                               \
                 : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1))
    if constexpr (kFormat == DType::e4m3) {
        TCGEMM_FP8_MMA("e4m3");
    } else {
        TCGEMM_FP8_MMA("e5m2");
    }
#undef TCGEMM_FP8_MMA
    return d0;
}
#endif

__global__ void mma_kernel(Precision precision, Cases cases) {
    for (int index = blockIdx.x; index < cases.count; index += gridDim.x) {
        const auto at = [&](const float* operand, int k) {
            return operand + std::int64_t{k} * index;
        };
        const float c = cases.c[index];
        float d = 0;
        switch (precision) {
            case Precision::fp16: d = multiply<__half>(at(cases.a, 16), at(cases.b, 16), c); break;
#if __CUDA_ARCH__ >= 800
            case Precision::bf16:
                d = multiply<__nv_bfloat16>(at(cases.a, 16), at(cases.b, 16), c);
                break;
            case Precision::tf32: d = multiply_tf32(at(cases.a, 8), at(cases.b, 8), c); break;
#endif
#if __CUDA_ARCH__ >= 890
            case Precision::fp8_e4m3:
                d = multiply_fp8<DType::e4m3>(at(cases.a, 32), at(cases.b, 32), c);
                break;
            case Precision::fp8_e5m2:
                d = multiply_fp8<DType::e5m2>(at(cases.a, 32), at(cases.b, 32), c);
                break;
#endif
            default: __trap();  // run_mma() lets no other through
        }
        if (threadIdx.x == 0) cases.d[index] = d;
        __syncwarp();
    }
}

}  // namespace

void launch(Precision precision, const Cases& cases, StreamView stream) {
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(std::min(cases.count, 65536));
    config.threads = 32;
    config.stream = stream;
    device::launch("probe mma_kernel", mma_kernel, config, precision, cases);
}

}  // namespace tcgemm::probe
