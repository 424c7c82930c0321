// One instruction of a warpgroup: the first row of A is a, the first column of B is b, all else is
// 0.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

#include "kernels/device/arch_guard.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/launch.cuh"
#include "probe/launch.hpp"
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "kernels/device/ptx/wgmma.cuh"
#endif

namespace tcgemm::probe_wgmma {
namespace {

using probe::Cases;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
namespace ptx = device::ptx;

constexpr int kRowBytes = 32;  // K of every type: two core matrices of 8 rows x 16 bytes
constexpr int kCoreBytes = 128;

// K-major without a swizzle: the other half of K follows after kCoreBytes, the next eight rows
// after two of them.
__device__ std::uint64_t descriptor(const void* shared) {
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
    return (address & 0x3ffff) >> 4 | std::uint64_t{kCoreBytes >> 4} << 16 |
           std::uint64_t{2 * kCoreBytes >> 4} << 32;
}

__device__ __half element(float value, __half) { return __float2half_rn(value); }
__device__ __nv_bfloat16 element(float value, __nv_bfloat16) { return __float2bfloat16_rn(value); }
__device__ float element(float value, float) { return value; }
template <DType kFormat>
__device__ device::Fp8<kFormat> element(float value, device::Fp8<kFormat>) {
    return device::Fp8<kFormat>::round(value, false);
}

// m64n8: D(0, 0) is the first register of thread 0.
#define TCGEMM_PROBE_WGMMA(k, type, transposes)                                             \
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8" k \
                 ".f32." type "." type " {%0, %1, %2, %3}, %4, %5, p, 1, 1" transposes ";}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                           \
                 : "l"(a), "l"(b))

template <class Element>
__device__ float multiply(Precision precision, const float* from_a, const float* from_b, float c) {
    constexpr int kRowElements = kRowBytes / sizeof(Element);
    constexpr int kHalf = kRowElements / 2;
    __shared__ alignas(128) unsigned char tile_a[64 * kRowBytes], tile_b[8 * kRowBytes];
    for (int i = threadIdx.x; i < 64 * kRowBytes / 4; i += 128) {
        reinterpret_cast<std::uint32_t*>(tile_a)[i] = 0;
    }
    for (int i = threadIdx.x; i < 8 * kRowBytes / 4; i += 128) {
        reinterpret_cast<std::uint32_t*>(tile_b)[i] = 0;
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < kRowElements) {
        const int k = threadIdx.x;
        const int place = k / kHalf * kCoreBytes / static_cast<int>(sizeof(Element)) + k % kHalf;
        reinterpret_cast<Element*>(tile_a)[place] = element(from_a[k], Element());
        reinterpret_cast<Element*>(tile_b)[place] = element(from_b[k], Element());
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const std::uint64_t a = descriptor(tile_a), b = descriptor(tile_b);
    float d[4] = {threadIdx.x == 0 ? c : 0.0f, 0, 0, 0};
    ptx::fence_registers(d);
    ptx::wgmma_fence();
    switch (precision) {
        case Precision::fp16: TCGEMM_PROBE_WGMMA("k16", "f16", ", 0, 0"); break;
        case Precision::bf16: TCGEMM_PROBE_WGMMA("k16", "bf16", ", 0, 0"); break;
        case Precision::tf32: TCGEMM_PROBE_WGMMA("k8", "tf32", ""); break;
        case Precision::fp8_e4m3: TCGEMM_PROBE_WGMMA("k32", "e4m3", ""); break;
        default: TCGEMM_PROBE_WGMMA("k32", "e5m2", ""); break;
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::fence_registers(d);
    return d[0];
}
#undef TCGEMM_PROBE_WGMMA
#endif

__global__ void __launch_bounds__(128) wgmma_kernel(Precision precision, Cases cases) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    for (int index = blockIdx.x; index < cases.count; index += gridDim.x) {
        const auto at = [&](const float* operand, int k) {
            return operand + std::int64_t{k} * index;
        };
        const float c = cases.c[index];
        float d = 0;
        switch (precision) {
            case Precision::fp16:
                d = multiply<__half>(precision, at(cases.a, 16), at(cases.b, 16), c);
                break;
            case Precision::bf16:
                d = multiply<__nv_bfloat16>(precision, at(cases.a, 16), at(cases.b, 16), c);
                break;
            case Precision::tf32:
                d = multiply<float>(precision, at(cases.a, 8), at(cases.b, 8), c);
                break;
            case Precision::fp8_e4m3:
                d = multiply<device::E4M3>(precision, at(cases.a, 32), at(cases.b, 32), c);
                break;
            default: d = multiply<device::E5M2>(precision, at(cases.a, 32), at(cases.b, 32), c);
        }
        if (threadIdx.x == 0) cases.d[index] = d;
        __syncthreads();
    }
#elif defined(__CUDA_ARCH__)
    TCGEMM_TRAP_WRONG_ARCH("probe");
#endif
}

}  // namespace

void launch(Precision precision, const Cases& cases, StreamView stream) {
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(std::min(cases.count, 65536));
    config.threads = 128;
    config.stream = stream;
    device::launch("probe wgmma_kernel", wgmma_kernel, config, precision, cases);
}

}  // namespace tcgemm::probe_wgmma
