// Scalar conversions between element types, each with one rounding to nearest, ties to even.
// Subnormals are kept, too large values become Inf (for FP8: see below), NaN stays NaN (quiet, sign
// and leading payload bits kept, as the CPU's own conversion instructions do).
//
// The functions have no branches, so that loops over them vectorise. They are `static`: a copy that
// was compiled for one instruction set must never be linked into code for another.
#pragma once

#include <cstdint>
#include <cstring>

namespace tcgemm::host {

struct Half {  // IEEE binary16
    std::uint16_t bits;
};
struct BFloat16 {  // the upper half of a binary32
    std::uint16_t bits;
};

struct E4M3 {  // float8_e4m3fn: bias 7, up to 448, no Inf, NaN where all bits but the sign are set
    std::uint8_t bits;
};
struct E5M2 {  // float8_e5m2: the upper half of a binary16
    std::uint8_t bits;
};
struct Tf32 {  // binary32 with 11 significant bits
    float value;
};

template <class To, class From>
static inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}

static inline float to_float(Half half) {
    const std::uint32_t magnitude = (half.bits & 0x7fffu) << 13;
    // Moves the exponent from binary16's bias (15) to binary32's (127); subnormals come out normal.
    const float scaled = bit_cast<float>(magnitude) * 0x1p112f;
    const std::uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0u;
    const std::uint32_t quiet = magnitude > (0x7c00u << 13) ? 0x00400000u : 0u;
    const std::uint32_t sign = (half.bits & 0x8000u) << 16;
    return bit_cast<float>(bit_cast<std::uint32_t>(scaled) | special | quiet | sign);
}

static inline float to_float(BFloat16 value) {
    return bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

static inline float to_float(E4M3 value) {
    const std::uint32_t magnitude = value.bits & 0x7fu;
    // From bias 7 to 127, as for halves.
    const float scaled = bit_cast<float>(magnitude << 20) * 0x1p120f;
    const std::uint32_t nan = magnitude == 0x7fu ? 0x7fc00000u : 0u;
    const std::uint32_t sign = (value.bits & 0x80u) << 24;
    return bit_cast<float>(bit_cast<std::uint32_t>(scaled) | nan | sign);
}

static inline float to_float(E5M2 value) {
    return to_float(Half{static_cast<std::uint16_t>(value.bits << 8)});
}

static inline float to_tf32(float value) {
    const std::uint32_t bits = bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0xfffu + ((bits >> 13) & 1u);
    const std::uint32_t nan = bits | 0x00400000u;
    return bit_cast<float>(((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded) & ~0x1fffu);
}

// To FP8 (NaN: one bit pattern, positive), with `kMantissa` bits behind the point and the
// exponent's `kBias`. Values that round to more than `kLargest`, and Inf, become that (saturate) or
// `kOverflow`.
template <int kMantissa, int kBias, std::uint32_t kLargest, std::uint32_t kOverflow,
          std::uint32_t kNan>
static inline std::uint8_t to_fp8_bits(float value, bool saturate) {
    constexpr int kDropped = 23 - kMantissa;
    constexpr std::uint32_t kNormal = static_cast<std::uint32_t>(128 - kBias) << 23;
    const std::uint32_t bits = bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t half = (1u << (kDropped - 1)) - 1u;
    const std::uint32_t rounded = magnitude + half + ((magnitude >> kDropped) & 1u);
    const std::uint32_t normal = (rounded - kNormal + (1u << 23)) >> kDropped;
    // Where binary32 has the spacing of these subnormals, an addition rounds to it.
    constexpr std::uint32_t kMagic = static_cast<std::uint32_t>(128 - kBias - kMantissa + 23) << 23;
    const std::uint32_t subnormal =
        bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(kMagic)) - kMagic;
    std::uint32_t result = magnitude < kNormal ? subnormal : normal;
    const std::uint32_t beyond = saturate ? kLargest : kOverflow;
    result = magnitude >= kNormal && normal > kLargest ? beyond : result;
    result |= (bits >> 24) & 0x80u;
    const bool nan = magnitude > 0x7f800000u || (result & 0x7fu) == kNan;
    return static_cast<std::uint8_t>(nan ? kNan : result);
}
static inline E4M3 to_e4m3(float value, bool saturate) {
    return {to_fp8_bits<3, 7, 0x7e, 0x7f, 0x7f>(value, saturate)};
}
static inline E5M2 to_e5m2(float value, bool saturate) {
    return {to_fp8_bits<2, 15, 0x7b, 0x7c, 0x7e>(value, saturate)};
}

static inline Half to_half(float value) {
    const std::uint32_t bits = bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    const std::uint32_t normal = (rounded - (112u << 23)) >> 13;
    // The spacing of binary32 at 0.5 is 2^-24, that of subnormal halves: the addition rounds.
    const std::uint32_t subnormal =
        bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
    result = rounded >= (143u << 23) ? 0x7c00u : result;
    result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result;
    return {static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000u))};
}

static inline BFloat16 to_bfloat16(float value) {
    const std::uint32_t bits = bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40u;
    return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// Rounds to odd: an inexact result gets an odd last bit. Rounding that once more, to a type with at
// least two bits less, gives what a single rounding to nearest even of `value` would have given.
static inline float to_float_odd(double value) {
    const float nearest = static_cast<float>(value);
    const std::uint32_t bits = bit_cast<std::uint32_t>(nearest);
    const double back = static_cast<double>(nearest);
    const double distance = value < 0 ? value - back : back - value;  // > 0: rounded away from 0
    const std::uint32_t odd = (bits - (distance > 0 ? 1u : 0u)) | 1u;
    const bool exact = back == value || value != value;
    return bit_cast<float>(exact ? bits : odd);
}

static inline Half to_half(double value) { return to_half(to_float_odd(value)); }
static inline BFloat16 to_bfloat16(double value) { return to_bfloat16(to_float_odd(value)); }

}  // namespace tcgemm::host
