// Warpgroup matrix multiply-accumulate (sm_90a): D (64 x N) (+)= A (64 x k) B (k x N), k 32 bytes
// of elements, both out of shared memory or A out of registers, asynchronous.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/device/fp8.cuh"
#include "kernels/device/tf32.hpp"

namespace tcgemm::device::ptx {

// Before the first wgmma, and where registers that it accumulates into were written since.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most `kPending` committed groups are at work.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Keeps the compiler from using accumulators before a wait: it does not know that they change.
template <int N>
__device__ __forceinline__ void fence_registers(float (&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(value[i])::"memory");
}
template <class T, int N>
__device__ __forceinline__ void fence_registers(T (&value)[N]) {
    static_assert(sizeof(T) == 4);
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+r"(value[i])::"memory");
}

template <class T, int kSubtiles, int N>
__device__ __forceinline__ void fence_registers(T (&sums)[kSubtiles][N]) {
#pragma unroll
    for (int s = 0; s < kSubtiles; ++s) fence_registers(sums[s]);
}

// All groups; the sums can be read then.
template <class T, int kSubtiles, int N>
__device__ __forceinline__ void wgmma_await_all(T (&sums)[kSubtiles][N]) {
    wgmma_wait<0>();
    fence_registers(sums);
}

// An operand in shared memory, in rows of 128 bytes with their 16-byte pieces swizzled, as the copy
// engine writes them; eight rows are 1024 aligned bytes.
// K-major: rows of k. MN-major, of 16-bit elements only: rows of 64 m (or n), one for each k;
// further slabs of 64 m (or n) follow after `slab_bytes`. The lower word holds the address in units
// of 16 bytes: adding to it moves on within the block's shared memory.
struct MatrixDescriptor {
    std::uint32_t low;

    __device__ MatrixDescriptor(std::uint32_t shared, int slab_bytes)
        : low((shared & 0x3ffff) >> 4 | static_cast<std::uint32_t>(slab_bytes >> 4) << 16) {}

    __device__ MatrixDescriptor further(unsigned bytes) const {
        MatrixDescriptor result = *this;
        result.low += bytes / 16;
        return result;
    }
    // What is the same in all lanes, as the compiler learns from a shuffle: it computes in uniform
    // registers then, where instructions want descriptors.
    __device__ MatrixDescriptor uniform() const {
        MatrixDescriptor result = *this;
        result.low = __shfl_sync(~0u, low, 0);
        return result;
    }

    __device__ std::uint64_t at(unsigned bytes) const {
        constexpr std::uint32_t kSwizzle128 = 1u << 30, kEightRows = 1024 >> 4;
        constexpr std::uint32_t kHigh = kSwizzle128 | kEightRows;
        return static_cast<std::uint64_t>(kHigh) << 32 | (low + bytes / 16);
    }
};

// Registers of an accumulator: float, int, or two halves in 32 bits. Lane i of warp w holds
// rows 16 w + i / 4 and 8 below; register 4 j + r (of floats): column 8 j + 2 (i % 4) + r % 2, row
// r / 2. kTransA, kTransB: MN-major. `accumulate` = false: D = A B. Of a longer array, run() takes
// the first kRegisters.
template <class ElementA, class ElementB, class Accumulator, int N, bool kTransA, bool kTransB>
struct Wgmma;

// The same with A in registers, of elements of 32 bits. Lane i of warp w holds of rows 16 w + i / 4
// and 8 below column i % 4, then of both rows column i % 4 + 4. They may not change while the
// instruction is at work.
template <class Element, int N>
struct WgmmaOfRegisters;

// Two that share A, for columns side by side: those of the second lie kBytes behind.
template <class First, class Second, int kBytes>
struct WgmmaPair {
    static constexpr int kRegisters = First::kRegisters + Second::kRegisters;
    template <class Register, int kSize>
    __device__ __forceinline__ static void run(Register (&d)[kSize], std::uint64_t a,
                                               std::uint64_t b, bool accumulate) {
        constexpr int kFirst = First::kRegisters;
        auto& beside = reinterpret_cast<Register(&)[kSize - kFirst]>(d[kFirst]);
        First::run(d, a, b, accumulate);
        Second::run(beside, a, b + kBytes / 16, accumulate);
    }
};

// clang-format off
#define TCGEMM_REGISTERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define TCGEMM_REGISTERS_16 TCGEMM_REGISTERS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TCGEMM_REGISTERS_24 TCGEMM_REGISTERS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define TCGEMM_REGISTERS_32 TCGEMM_REGISTERS_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define TCGEMM_REGISTERS_40 TCGEMM_REGISTERS_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define TCGEMM_REGISTERS_48 TCGEMM_REGISTERS_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define TCGEMM_REGISTERS_56 TCGEMM_REGISTERS_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define TCGEMM_REGISTERS_64 TCGEMM_REGISTERS_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define TCGEMM_REGISTERS_72 TCGEMM_REGISTERS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define TCGEMM_REGISTERS_80 TCGEMM_REGISTERS_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define TCGEMM_REGISTERS_88 TCGEMM_REGISTERS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define TCGEMM_REGISTERS_96 TCGEMM_REGISTERS_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define TCGEMM_REGISTERS_104 TCGEMM_REGISTERS_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define TCGEMM_REGISTERS_112 TCGEMM_REGISTERS_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define TCGEMM_REGISTERS_120 TCGEMM_REGISTERS_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define TCGEMM_REGISTERS_128 TCGEMM_REGISTERS_120 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define TCGEMM_OPERANDS_8_FROM(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define TCGEMM_OPERANDS_8(c) TCGEMM_OPERANDS_8_FROM(c, 0)
#define TCGEMM_OPERANDS_16(c) TCGEMM_OPERANDS_8(c), TCGEMM_OPERANDS_8_FROM(c, 8)
#define TCGEMM_OPERANDS_24(c) TCGEMM_OPERANDS_16(c), TCGEMM_OPERANDS_8_FROM(c, 16)
#define TCGEMM_OPERANDS_32(c) TCGEMM_OPERANDS_24(c), TCGEMM_OPERANDS_8_FROM(c, 24)
#define TCGEMM_OPERANDS_40(c) TCGEMM_OPERANDS_32(c), TCGEMM_OPERANDS_8_FROM(c, 32)
#define TCGEMM_OPERANDS_48(c) TCGEMM_OPERANDS_40(c), TCGEMM_OPERANDS_8_FROM(c, 40)
#define TCGEMM_OPERANDS_56(c) TCGEMM_OPERANDS_48(c), TCGEMM_OPERANDS_8_FROM(c, 48)
#define TCGEMM_OPERANDS_64(c) TCGEMM_OPERANDS_56(c), TCGEMM_OPERANDS_8_FROM(c, 56)
#define TCGEMM_OPERANDS_72(c) TCGEMM_OPERANDS_64(c), TCGEMM_OPERANDS_8_FROM(c, 64)
#define TCGEMM_OPERANDS_80(c) TCGEMM_OPERANDS_72(c), TCGEMM_OPERANDS_8_FROM(c, 72)
#define TCGEMM_OPERANDS_88(c) TCGEMM_OPERANDS_80(c), TCGEMM_OPERANDS_8_FROM(c, 80)
#define TCGEMM_OPERANDS_96(c) TCGEMM_OPERANDS_88(c), TCGEMM_OPERANDS_8_FROM(c, 88)
#define TCGEMM_OPERANDS_104(c) TCGEMM_OPERANDS_96(c), TCGEMM_OPERANDS_8_FROM(c, 96)
#define TCGEMM_OPERANDS_112(c) TCGEMM_OPERANDS_104(c), TCGEMM_OPERANDS_8_FROM(c, 104)
#define TCGEMM_OPERANDS_120(c) TCGEMM_OPERANDS_112(c), TCGEMM_OPERANDS_8_FROM(c, 112)
#define TCGEMM_OPERANDS_128(c) TCGEMM_OPERANDS_120(c), TCGEMM_OPERANDS_8_FROM(c, 120)

// Registers first, then descriptor of A, of B, accumulate, kTransA, kTransB: `da` and so on are their places.
// `behind` the predicate: factors 1 of A and B, which whole numbers have not, and whether 16-bit elements are MN-major.
#define TCGEMM_WGMMA(n, registers, da, db, acc, ta, tb, unused, k_and_types, behind, A, B, Accumulator, Register, constraint)   \
    template <bool kTransA, bool kTransB>                                                                               \
    struct Wgmma<A, B, Accumulator, n, kTransA, kTransB> {                                                              \
        static_assert(sizeof(A) == 2 || !(kTransA || kTransB), "k is contiguous");                                      \
        static constexpr int kRegisters = registers;                                                                    \
        template <int kSize>                                                                                            \
        __device__ __forceinline__ static void run(Register (&d)[kSize], std::uint64_t a, std::uint64_t b,              \
                                                   bool accumulate) {                                                   \
            asm volatile(                                                                                               \
                "{\n"                                                                                                   \
                "  .reg .pred accumulate;\n"                                                                            \
                "  setp.ne.b32 accumulate, %" #acc ", 0;\n"                                                             \
                "  wgmma.mma_async.sync.aligned.m64n" #n k_and_types " {" TCGEMM_REGISTERS_##registers "},"             \
                " %" #da ", %" #db ", accumulate" behind(ta, tb) ";\n"                                                  \
                "}\n"                                                                                                   \
                : TCGEMM_OPERANDS_##registers(constraint)                                                               \
                : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(int{kTransA}), "n"(int{kTransB}));             \
        }                                                                                                               \
    };
// Registers of D, then of A from place `a0` on, descriptor of B, accumulate.
#define TCGEMM_WGMMA_OF_REGISTERS(n, registers, a0, a1, a2, a3, db, acc, k_and_types, A)                                \
    template <>                                                                                                         \
    struct WgmmaOfRegisters<A, n> {                                                                                     \
        static constexpr int kRegisters = registers;                                                                    \
        template <int kSize>                                                                                            \
        __device__ __forceinline__ static void run(float (&d)[kSize], const std::uint32_t (&a)[4], std::uint64_t b,     \
                                                   bool accumulate) {                                                   \
            asm volatile(                                                                                               \
                "{\n"                                                                                                   \
                "  .reg .pred accumulate;\n"                                                                            \
                "  setp.ne.b32 accumulate, %" #acc ", 0;\n"                                                             \
                "  wgmma.mma_async.sync.aligned.m64n" #n k_and_types " {" TCGEMM_REGISTERS_##registers "},"             \
                " {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #db ", accumulate, 1, 1;\n"                              \
                "}\n"                                                                                                   \
                : TCGEMM_OPERANDS_##registers("+f")                                                                     \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));               \
        }                                                                                                               \
    };
#define TCGEMM_FACTORS(ta, tb) ", 1, 1"
#define TCGEMM_FACTORS_AND_ORDERS(ta, tb) ", 1, 1, %" #ta ", %" #tb
#define TCGEMM_NOTHING(ta, tb) ""
// n and, with a register for two columns, the other numbers.
#define TCGEMM_WIDTHS(ROW, ...)                                 \
    ROW(32, 16, 16, 17, 18, 19, 20, 21, __VA_ARGS__)            \
    ROW(48, 24, 24, 25, 26, 27, 28, 29, __VA_ARGS__)            \
    ROW(64, 32, 32, 33, 34, 35, 36, 37, __VA_ARGS__)            \
    ROW(80, 40, 40, 41, 42, 43, 44, 45, __VA_ARGS__)            \
    ROW(96, 48, 48, 49, 50, 51, 52, 53, __VA_ARGS__)            \
    ROW(112, 56, 56, 57, 58, 59, 60, 61, __VA_ARGS__)           \
    ROW(128, 64, 64, 65, 66, 67, 68, 69, __VA_ARGS__)           \
    ROW(144, 72, 72, 73, 74, 75, 76, 77, __VA_ARGS__)           \
    ROW(160, 80, 80, 81, 82, 83, 84, 85, __VA_ARGS__)           \
    ROW(176, 88, 88, 89, 90, 91, 92, 93, __VA_ARGS__)           \
    ROW(192, 96, 96, 97, 98, 99, 100, 101, __VA_ARGS__)         \
    ROW(208, 104, 104, 105, 106, 107, 108, 109, __VA_ARGS__)    \
    ROW(224, 112, 112, 113, 114, 115, 116, 117, __VA_ARGS__)    \
    ROW(240, 120, 120, 121, 122, 123, 124, 125, __VA_ARGS__)    \
    ROW(256, 128, 128, 129, 130, 131, 132, 133, __VA_ARGS__)

TCGEMM_WIDTHS(TCGEMM_WGMMA, "k16.f32.f16.f16", TCGEMM_FACTORS_AND_ORDERS, __half, __half, float, float, "+f")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k16.f32.bf16.bf16", TCGEMM_FACTORS_AND_ORDERS, __nv_bfloat16, __nv_bfloat16, float, float, "+f")
TCGEMM_WGMMA(256, 64, 64, 65, 66, 67, 68, 69, "k16.f16.f16.f16", TCGEMM_FACTORS_AND_ORDERS, __half, __half, __half, std::uint32_t, "+r")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k8.f32.tf32.tf32", TCGEMM_FACTORS, Tf32, Tf32, float, float, "+f")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k32.s32.s8.s8", TCGEMM_NOTHING, std::int8_t, std::int8_t, std::int32_t, std::int32_t, "+r")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k32.f32.e4m3.e4m3", TCGEMM_FACTORS, E4M3, E4M3, float, float, "+f")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k32.f32.e4m3.e5m2", TCGEMM_FACTORS, E4M3, E5M2, float, float, "+f")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k32.f32.e5m2.e4m3", TCGEMM_FACTORS, E5M2, E4M3, float, float, "+f")
TCGEMM_WIDTHS(TCGEMM_WGMMA, "k32.f32.e5m2.e5m2", TCGEMM_FACTORS, E5M2, E5M2, float, float, "+f")
TCGEMM_WIDTHS(TCGEMM_WGMMA_OF_REGISTERS, "k8.f32.tf32.tf32", Tf32)
// clang-format on

#undef TCGEMM_WGMMA
#undef TCGEMM_WGMMA_OF_REGISTERS
#undef TCGEMM_FACTORS
#undef TCGEMM_FACTORS_AND_ORDERS
#undef TCGEMM_NOTHING
#undef TCGEMM_WIDTHS
#undef TCGEMM_REGISTERS_8
#undef TCGEMM_REGISTERS_16
#undef TCGEMM_REGISTERS_24
#undef TCGEMM_REGISTERS_32
#undef TCGEMM_REGISTERS_40
#undef TCGEMM_REGISTERS_48
#undef TCGEMM_REGISTERS_56
#undef TCGEMM_REGISTERS_64
#undef TCGEMM_REGISTERS_72
#undef TCGEMM_REGISTERS_80
#undef TCGEMM_REGISTERS_88
#undef TCGEMM_REGISTERS_96
#undef TCGEMM_REGISTERS_104
#undef TCGEMM_REGISTERS_112
#undef TCGEMM_REGISTERS_120
#undef TCGEMM_REGISTERS_128
#undef TCGEMM_OPERANDS_8
#undef TCGEMM_OPERANDS_16
#undef TCGEMM_OPERANDS_24
#undef TCGEMM_OPERANDS_32
#undef TCGEMM_OPERANDS_40
#undef TCGEMM_OPERANDS_48
#undef TCGEMM_OPERANDS_56
#undef TCGEMM_OPERANDS_64
#undef TCGEMM_OPERANDS_72
#undef TCGEMM_OPERANDS_80
#undef TCGEMM_OPERANDS_88
#undef TCGEMM_OPERANDS_96
#undef TCGEMM_OPERANDS_104
#undef TCGEMM_OPERANDS_112
#undef TCGEMM_OPERANDS_120
#undef TCGEMM_OPERANDS_128
#undef TCGEMM_OPERANDS_8_FROM

}  // namespace tcgemm::device::ptx
