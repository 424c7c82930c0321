// The epilogues: what is done to an accumulator before it is stored. Families instantiate those
// that they need, without a change to their main loops, and refuse the others by name.
#pragma once

#include <array>
#include <cstdint>

namespace tcgemm {

// linear: D = alpha * acc + beta * C, computed at accumulator precision, rounded once to D's dtype.
// scaled: D = scale_d * (alpha * scale_a * scale_b * acc + beta * C), in FP32. It is that of
// products with scales, of those with a D of FP8, and of INT8 products with a floating-point D.
#define TCGEMM_EPILOGUES(ROW) \
    ROW(linear)               \
    ROW(scaled)

// Which elements of A or B share a scale, a float32 number that they are multiplied by: all
// (tensor), each row of A or column of B (vector), 128 k of a row or column (block_1x128), or 128 k
// of 128 rows or columns (block_128x128). Scales of blocks multiply the sum over their 128 k.
#define TCGEMM_SCALE_KINDS(ROW) \
    ROW(none)                   \
    ROW(tensor)                 \
    ROW(vector)                 \
    ROW(block_1x128)            \
    ROW(block_128x128)
inline constexpr int kScaleBlock = 128;

// What values of D beyond the range of its FP8 format become: its largest number (448 for
// float8_e4m3fn, 57344 for float8_e5m2), or NaN (float8_e4m3fn) and Inf (float8_e5m2).
#define TCGEMM_OVERFLOWS(ROW) \
    ROW(saturate)             \
    ROW(nan)

#define TCGEMM_VALUE(id) id,
#define TCGEMM_NAME(id) #id,
enum class Epilogue : std::uint8_t { TCGEMM_EPILOGUES(TCGEMM_VALUE) };
enum class ScaleKind : std::uint8_t { TCGEMM_SCALE_KINDS(TCGEMM_VALUE) };
enum class Overflow : std::uint8_t { TCGEMM_OVERFLOWS(TCGEMM_VALUE) };

inline constexpr std::array kEpilogueNames = {TCGEMM_EPILOGUES(TCGEMM_NAME)};
inline constexpr std::array kScaleKindNames = {TCGEMM_SCALE_KINDS(TCGEMM_NAME)};
inline constexpr std::array kOverflowNames = {TCGEMM_OVERFLOWS(TCGEMM_NAME)};
#undef TCGEMM_VALUE
#undef TCGEMM_NAME

constexpr const char* name(Epilogue e) { return kEpilogueNames[static_cast<std::size_t>(e)]; }
constexpr const char* name(ScaleKind k) { return kScaleKindNames[static_cast<std::size_t>(k)]; }
constexpr const char* name(Overflow o) { return kOverflowNames[static_cast<std::size_t>(o)]; }

constexpr bool is_blockwise(ScaleKind k) {
    return k == ScaleKind::block_1x128 || k == ScaleKind::block_128x128;
}

}  // namespace tcgemm
