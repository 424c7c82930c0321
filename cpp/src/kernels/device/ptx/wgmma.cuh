// Warpgroup matrix multiply-accumulate (sm_90a): D (64 x N) (+)= A (64 x k) B (k x N), k 32 bytes
// of elements, both out of shared memory, asynchronous.
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

// An operand in shared memory, in rows of 128 bytes with their 16-byte pieces swizzled, as the copy
// engine writes them; eight rows are 1024 aligned bytes.
// K-major: rows of k. MN-major, of 16-bit elements only: rows of 64 m (or n), one for each k;
// further slabs of 64 m (or n) follow after `slab_bytes`. The lower word holds the address in units
// of 16 bytes: adding to it moves on within the block's shared memory.
struct MatrixDescriptor {
    std::uint32_t low;

    __device__ MatrixDescriptor(std::uint32_t shared, int slab_bytes)
        : low((shared & 0x3ffff) >> 4 | static_cast<std::uint32_t>(slab_bytes >> 4) << 16) {}

    __device__ std::uint64_t at(unsigned bytes) const {
        constexpr std::uint32_t kSwizzle128 = 1u << 30, kEightRows = 1024 >> 4;
        constexpr std::uint32_t kHigh = kSwizzle128 | kEightRows;
        return static_cast<std::uint64_t>(kHigh) << 32 | (low + bytes / 16);
    }
};

// Registers of an accumulator: float, int, or two halves in 32 bits. Lane i of warp w holds
// rows 16 w + i / 4 and 8 below; register 4 j + r (of floats): column 8 j + 2 (i % 4) + r % 2, row
// r / 2. kTransA, kTransB: MN-major. `accumulate` = false: D = A B.
template <class ElementA, class ElementB, class Accumulator, int N, bool kTransA, bool kTransB>
struct Wgmma;

// clang-format off
#define TCGEMM_REGISTERS_0_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
    "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TCGEMM_REGISTERS_32_63 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TCGEMM_REGISTERS_64_95 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TCGEMM_REGISTERS_96_127 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
    "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, " \
    "%123, %124, %125, %126, %127"
#define TCGEMM_REGISTERS_32 TCGEMM_REGISTERS_0_31
#define TCGEMM_REGISTERS_64 TCGEMM_REGISTERS_32 ", " TCGEMM_REGISTERS_32_63
#define TCGEMM_REGISTERS_96 TCGEMM_REGISTERS_64 ", " TCGEMM_REGISTERS_64_95
#define TCGEMM_REGISTERS_128 TCGEMM_REGISTERS_96 ", " TCGEMM_REGISTERS_96_127
#define TCGEMM_OPERANDS_8(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define TCGEMM_OPERANDS_32(c, i) TCGEMM_OPERANDS_8(c, i), TCGEMM_OPERANDS_8(c, i + 8), TCGEMM_OPERANDS_8(c, i + 16), TCGEMM_OPERANDS_8(c, i + 24)
#define TCGEMM_OPERANDS_64(c, i) TCGEMM_OPERANDS_32(c, i), TCGEMM_OPERANDS_32(c, i + 32)
#define TCGEMM_OPERANDS_96(c, i) TCGEMM_OPERANDS_64(c, i), TCGEMM_OPERANDS_32(c, i + 64)
#define TCGEMM_OPERANDS_128(c, i) TCGEMM_OPERANDS_64(c, i), TCGEMM_OPERANDS_64(c, i + 64)

// Registers first, then descriptor of A, of B, accumulate, kTransA, kTransB: `da` and so on are their places.
#define TCGEMM_WGMMA(n, types, Element, Accumulator, Register, constraint, registers, da, db, acc, ta, tb)              \
    template <bool kTransA, bool kTransB>                                                                               \
    struct Wgmma<Element, Element, Accumulator, n, kTransA, kTransB> {                                                         \
        static constexpr int kRegisters = registers;                                                                    \
        __device__ __forceinline__ static void run(Register (&d)[registers], std::uint64_t a, std::uint64_t b,          \
                                                   bool accumulate) {                                                   \
            asm volatile(                                                                                               \
                "{\n"                                                                                                   \
                "  .reg .pred accumulate;\n"                                                                            \
                "  setp.ne.b32 accumulate, %" #acc ", 0;\n"                                                             \
                "  wgmma.mma_async.sync.aligned.m64n" #n "k16." types " {" TCGEMM_REGISTERS_##registers "},"            \
                " %" #da ", %" #db ", accumulate, 1, 1, %" #ta ", %" #tb ";\n"                                          \
                "}\n"                                                                                                   \
                : TCGEMM_OPERANDS_##registers(constraint, 0)                                                            \
                : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(int{kTransA}), "n"(int{kTransB}));             \
        }                                                                                                               \
    }

TCGEMM_WGMMA(64, "f32.f16.f16", __half, float, float, "+f", 32, 32, 33, 34, 35, 36);
TCGEMM_WGMMA(128, "f32.f16.f16", __half, float, float, "+f", 64, 64, 65, 66, 67, 68);
TCGEMM_WGMMA(192, "f32.f16.f16", __half, float, float, "+f", 96, 96, 97, 98, 99, 100);
TCGEMM_WGMMA(256, "f32.f16.f16", __half, float, float, "+f", 128, 128, 129, 130, 131, 132);
TCGEMM_WGMMA(64, "f32.bf16.bf16", __nv_bfloat16, float, float, "+f", 32, 32, 33, 34, 35, 36);
TCGEMM_WGMMA(128, "f32.bf16.bf16", __nv_bfloat16, float, float, "+f", 64, 64, 65, 66, 67, 68);
TCGEMM_WGMMA(192, "f32.bf16.bf16", __nv_bfloat16, float, float, "+f", 96, 96, 97, 98, 99, 100);
TCGEMM_WGMMA(256, "f32.bf16.bf16", __nv_bfloat16, float, float, "+f", 128, 128, 129, 130, 131, 132);
TCGEMM_WGMMA(128, "f16.f16.f16", __half, __half, std::uint32_t, "+r", 32, 32, 33, 34, 35, 36);
TCGEMM_WGMMA(256, "f16.f16.f16", __half, __half, std::uint32_t, "+r", 64, 64, 65, 66, 67, 68);

// K-major only. Behind the predicate: factors 1 of A and B, or nothing.
#define TCGEMM_WGMMA_K(n, k, types, factors, ElementA, ElementB, Register, constraint, registers, da, db, acc)          \
    template <>                                                                                                         \
    struct Wgmma<ElementA, ElementB, Register, n, false, false> {                                                       \
        static constexpr int kRegisters = registers;                                                                    \
        __device__ __forceinline__ static void run(Register (&d)[registers], std::uint64_t a, std::uint64_t b,          \
                                                   bool accumulate) {                                                   \
            asm volatile(                                                                                               \
                "{\n"                                                                                                   \
                "  .reg .pred accumulate;\n"                                                                            \
                "  setp.ne.b32 accumulate, %" #acc ", 0;\n"                                                             \
                "  wgmma.mma_async.sync.aligned.m64n" #n k "." types " {" TCGEMM_REGISTERS_##registers "},"             \
                " %" #da ", %" #db ", accumulate" factors ";\n"                                                         \
                "}\n"                                                                                                   \
                : TCGEMM_OPERANDS_##registers(constraint, 0)                                                            \
                : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                                   \
        }                                                                                                               \
    }
#define TCGEMM_WGMMA_K_TILES(k, types, factors, ElementA, ElementB, Register, constraint)                               \
    TCGEMM_WGMMA_K(128, k, types, factors, ElementA, ElementB, Register, constraint, 64, 64, 65, 66);                   \
    TCGEMM_WGMMA_K(256, k, types, factors, ElementA, ElementB, Register, constraint, 128, 128, 129, 130)

TCGEMM_WGMMA_K_TILES("k8", "f32.tf32.tf32", ", 1, 1", Tf32, Tf32, float, "+f");
TCGEMM_WGMMA_K_TILES("k32", "s32.s8.s8", "", std::int8_t, std::int8_t, std::int32_t, "+r");
TCGEMM_WGMMA_K_TILES("k32", "f32.e4m3.e4m3", ", 1, 1", E4M3, E4M3, float, "+f");
TCGEMM_WGMMA_K_TILES("k32", "f32.e4m3.e5m2", ", 1, 1", E4M3, E5M2, float, "+f");
TCGEMM_WGMMA_K_TILES("k32", "f32.e5m2.e4m3", ", 1, 1", E5M2, E4M3, float, "+f");
TCGEMM_WGMMA_K_TILES("k32", "f32.e5m2.e5m2", ", 1, 1", E5M2, E5M2, float, "+f");
// clang-format on

#undef TCGEMM_WGMMA
#undef TCGEMM_WGMMA_K
#undef TCGEMM_WGMMA_K_TILES
#undef TCGEMM_REGISTERS_0_31
#undef TCGEMM_REGISTERS_32_63
#undef TCGEMM_REGISTERS_64_95
#undef TCGEMM_REGISTERS_96_127
#undef TCGEMM_REGISTERS_32
#undef TCGEMM_REGISTERS_64
#undef TCGEMM_REGISTERS_96
#undef TCGEMM_REGISTERS_128
#undef TCGEMM_OPERANDS_8
#undef TCGEMM_OPERANDS_32
#undef TCGEMM_OPERANDS_64
#undef TCGEMM_OPERANDS_96
#undef TCGEMM_OPERANDS_128

}  // namespace tcgemm::device::ptx
