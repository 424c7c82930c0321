// Matrix instructions of a warp (sm_80).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/device/fp8.cuh"
#include "kernels/device/tf32.hpp"

namespace tcgemm::device::ptx {

// sums += A B of kM x kK and kK x kN elements. A lane holds of the sums those of rows lane / 4 and
// + 8, columns lane % 4 * 2 and + 1. `b` is of two B side by side, of which `half` takes part.
// pair() gives the sums of a row, lane / 4 + 8 * half, as the epilogue takes them.
template <class A, class B, class Accumulator>
struct Mma;

// Elements of 16 bits and others: an instruction takes 32 bytes of k. In registers of 4 bytes of k,
// a lane holds of A rows lane / 4 and + 8 from byte lane % 4 * 4 on, then the same 16 bytes
// further; of B column lane / 4 from the same bytes on.
template <class Element>
struct MmaOf32Bytes {
    static constexpr int kM = 16, kN = 8, kK = 32 / static_cast<int>(sizeof(Element));
    using Fragment = std::uint32_t[4];
};

#define TCGEMM_MMA(A, B, sum, pair_of_sums, in_register, shape_and_types)                   \
    template <>                                                                             \
    struct Mma<A, B, sum> : MmaOf32Bytes<A> {                                               \
        using Sums = sum[4];                                                                \
        static __device__ __forceinline__ void multiply(Sums& d, const Fragment& a,         \
                                                        const Fragment& b, int half) {      \
            asm volatile("mma.sync.aligned." shape_and_types                                \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                         : in_register(d[0]), in_register(d[1]), in_register(d[2]),         \
                           in_register(d[3])                                                \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * half]),    \
                           "r"(b[2 * half + 1]));                                           \
        }                                                                                   \
        static __device__ __forceinline__ pair_of_sums pair(const Sums& d, int half) {      \
            return {d[2 * half], d[2 * half + 1]};                                          \
        }                                                                                   \
    }
TCGEMM_MMA(__half, __half, float, float2, "+f", "m16n8k16.row.col.f32.f16.f16.f32");
TCGEMM_MMA(__nv_bfloat16, __nv_bfloat16, float, float2, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32");
TCGEMM_MMA(Tf32, Tf32, float, float2, "+f", "m16n8k8.row.col.f32.tf32.tf32.f32");
TCGEMM_MMA(std::int8_t, std::int8_t, std::int32_t, int2, "+r",
           "m16n8k32.row.col.s32.s8.s8.s32");  // wraps
// From sm_89 on.
TCGEMM_MMA(E4M3, E4M3, float, float2, "+f", "m16n8k32.row.col.f32.e4m3.e4m3.f32");
TCGEMM_MMA(E4M3, E5M2, float, float2, "+f", "m16n8k32.row.col.f32.e4m3.e5m2.f32");
TCGEMM_MMA(E5M2, E4M3, float, float2, "+f", "m16n8k32.row.col.f32.e5m2.e4m3.f32");
TCGEMM_MMA(E5M2, E5M2, float, float2, "+f", "m16n8k32.row.col.f32.e5m2.e5m2.f32");
#undef TCGEMM_MMA

template <>
struct Mma<__half, __half, __half> : MmaOf32Bytes<__half> {
    using Sums = std::uint32_t[2];  // two neighbours in each
    static __device__ __forceinline__ void multiply(Sums& d, const Fragment& a, const Fragment& b,
                                                    int half) {
        asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, "
            "{%6, %7}, {%0, %1};"
            : "+r"(d[0]), "+r"(d[1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * half]), "r"(b[2 * half + 1]));
    }
    static __device__ __forceinline__ float2 pair(const Sums& d, int half) {
        return __half22float2(*reinterpret_cast<const __half2*>(&d[half]));
    }
};

// A lane holds for each quad of k, at k lane % 4 of it, of A the elements of rows lane / 4 and + 8,
// of B those of column lane / 4 of either B. One instruction for all of its k, 8 or 16 (sm_90),
// reads and writes the sums once.
template <int kDepth>
struct MmaF64 {
    static constexpr int kM = 16, kN = 8, kK = kDepth;
    static_assert(kK == 8 || kK == 16);
    using Fragment = double[kK / 2];
    using Sums = double[4];
    static __device__ __forceinline__ void multiply(Sums& d, const Fragment& a, const Fragment& b,
                                                    int half) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        if constexpr (kK == 16) {
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
                  "d"(a[7]), "d"(b[half]), "d"(b[2 + half]), "d"(b[4 + half]), "d"(b[6 + half]));
        } else {
            asm volatile(
                "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[half]), "d"(b[2 + half]));
        }
#else
#pragma unroll
        for (int k = 0; k < kK / 2; k += 2) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, "
                    "%1};"
                    : "+d"(d[2 * i]), "+d"(d[2 * i + 1])
                    : "d"(a[k + i]), "d"(b[k + half]));
            }
        }
#endif
    }
    static __device__ __forceinline__ double2 pair(const Sums& d, int half) {
        return make_double2(d[2 * half], d[2 * half + 1]);
    }
};
template <>
struct Mma<double, double, double> : MmaF64<16> {};

}  // namespace tcgemm::device::ptx
