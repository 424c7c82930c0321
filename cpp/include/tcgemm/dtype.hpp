// Element types, and the modes in which a product can be computed.
#pragma once

#include <array>
#include <cstdint>

namespace tcgemm {

// The dtype table: id, name, bits, DLPack type code (dlpack.h: kDLInt 0, kDLFloat 2, kDLBfloat 4,
// kDLFloat8_e4m3fn 10, kDLFloat8_e5m2 12).
#define TCGEMM_DTYPES(ROW)            \
    ROW(f16, "float16", 16, 2)        \
    ROW(bf16, "bfloat16", 16, 4)      \
    ROW(f32, "float32", 32, 2)        \
    ROW(f64, "float64", 64, 2)        \
    ROW(i8, "int8", 8, 0)             \
    ROW(i32, "int32", 32, 0)          \
    ROW(e4m3, "float8_e4m3fn", 8, 10) \
    ROW(e5m2, "float8_e5m2", 8, 12)

enum class DType : std::uint8_t {
#define TCGEMM_ROW(id, name, bits, dlpack_code) id,
    TCGEMM_DTYPES(TCGEMM_ROW)
#undef TCGEMM_ROW
};

struct DTypeInfo {
    DType id;
    const char* name;
    int bits;
    std::uint8_t dlpack_code;
};

inline constexpr std::array kDTypes = {
#define TCGEMM_ROW(id, name, bits, dlpack_code) DTypeInfo{DType::id, name, bits, dlpack_code},
    TCGEMM_DTYPES(TCGEMM_ROW)
#undef TCGEMM_ROW
};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
constexpr const char* name(DType dtype) { return info(dtype).name; }
constexpr int size_of(DType dtype) { return info(dtype).bits / 8; }  // bytes
constexpr bool is_integer(DType dtype) { return info(dtype).dlpack_code == 0; }
constexpr bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

// What the elements of A and B are rounded to (to nearest even) before they are multiplied.
// `automatic`: the format that holds the values of both operands. fp8: each operand keeps its own
// FP8 format. fp32: by any kernel with FP32-grade sums; fp32_simt: only by one that multiplies in
// FP32 itself, on CUDA cores.
#define TCGEMM_PRECISIONS(ROW) \
    ROW(automatic)             \
    ROW(fp16)                  \
    ROW(bf16)                  \
    ROW(tf32)                  \
    ROW(fp32)                  \
    ROW(fp64)                  \
    ROW(int8)                  \
    ROW(fp8_e4m3)              \
    ROW(fp8_e5m2)              \
    ROW(fp8)                   \
    ROW(fp32_simt)

// What the products are summed in. `automatic`: promoted for FP8; FP32 for fp16, bf16, tf32, fp32
// and fp32_simt; FP64 for fp64; INT32 for int8. `fp16`, for precision fp16 only, allows FP16 sums
// where they are faster. `promoted` adds FP32 sums of at most kPromotedK products to a second FP32
// accumulator, rounding to nearest: on tensor cores, which truncate, the error then hardly grows
// with K. `fast` is for FP8 alone: the accumulator of the tensor cores as it is, which keeps fewer
// bits than FP32.
#define TCGEMM_ACCUMULATES(ROW) \
    ROW(automatic)              \
    ROW(fp16)                   \
    ROW(fp32)                   \
    ROW(promoted)               \
    ROW(fp64)                   \
    ROW(int32)                  \
    ROW(fast)
inline constexpr int kPromotedK = 128;

// run_to_run: the same build, device model and problem give the same bits, on any stream or thread.
// batch_invariant: in addition, a row of D is a function of the values in that row of A and C and
// in B, of alpha, beta, N, K, dtypes and precision. It does not depend on M, on the batch, on its
// place in either, or on how operands lie in memory. (The bits of a NaN may differ.)
#define TCGEMM_DETERMINISMS(ROW) \
    ROW(run_to_run)              \
    ROW(batch_invariant)

#define TCGEMM_VALUE(id) id,
#define TCGEMM_NAME(id) #id,
enum class Precision : std::uint8_t { TCGEMM_PRECISIONS(TCGEMM_VALUE) };
enum class Accumulate : std::uint8_t { TCGEMM_ACCUMULATES(TCGEMM_VALUE) };
enum class Determinism : std::uint8_t { TCGEMM_DETERMINISMS(TCGEMM_VALUE) };

inline constexpr std::array kPrecisionNames = {TCGEMM_PRECISIONS(TCGEMM_NAME)};
inline constexpr std::array kAccumulateNames = {TCGEMM_ACCUMULATES(TCGEMM_NAME)};
inline constexpr std::array kDeterminismNames = {TCGEMM_DETERMINISMS(TCGEMM_NAME)};
#undef TCGEMM_VALUE
#undef TCGEMM_NAME

constexpr const char* name(Precision p) { return kPrecisionNames[static_cast<std::size_t>(p)]; }
constexpr const char* name(Accumulate a) { return kAccumulateNames[static_cast<std::size_t>(a)]; }
constexpr bool is_fp8(Precision p) {
    return p == Precision::fp8_e4m3 || p == Precision::fp8_e5m2 || p == Precision::fp8;
}
constexpr const char* name(Determinism d) { return kDeterminismNames[static_cast<std::size_t>(d)]; }

}  // namespace tcgemm
