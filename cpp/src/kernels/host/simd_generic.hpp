// The vocabulary that the kernels are written in, for any CPU: 16-byte vectors of the compiler's
// own (SSE2 on x86-64, NEON on AArch64).
//
// A vocabulary has four arithmetics (F32, F64, S16x2, F16Sum). Each names
//   Lane       the type of an accumulator, and of what one step along K takes from A and from B
//   Element    what operands are converted to, kLaneK of them in a lane: as many products a step
//   Reg        a register of kWidth lanes
//   Lines      of F32 and F64: what multiplies lines along K, which may have narrower registers.
//   transpose  of Lines: to[j] holds from[i * pitch + j] of kWidth lines i, for kWidth j
//   kRows, kVectors   the register tile: kRows x (kVectors * kWidth) accumulators
//   kChain     products are added to the final sum at once, which round_sum() rounds every few of
//   them: blocks of K cannot be summed apart
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/host/convert.hpp"

namespace tcgemm::host::generic {

#if defined(__aarch64__)
inline constexpr int kTileRows = 8;  // 32 vector registers
#else
inline constexpr int kTileRows = 4;  // 16 of them
#endif

template <class Number>
struct Floating {
    using Lane = Number;
    using Element = Number;
    using Lines = Floating;
    typedef Number Reg __attribute__((vector_size(16)));
    static constexpr int kLaneK = 1;
    static constexpr int kWidth = 16 / sizeof(Number), kRows = kTileRows, kVectors = 2;
    static constexpr bool kChain = false;

    static Reg zero() { return Reg{}; }
    static Reg load(const Lane* from) { return *reinterpret_cast<const Reg*>(from); }
    static Reg load_any(const Lane* from) {
        Reg value;
        std::memcpy(&value, from, sizeof(value));
        return value;
    }
    static void store(Lane* to, Reg value) { *reinterpret_cast<Reg*>(to) = value; }
    static void transpose(const Lane* from, std::int64_t pitch, Reg (&to)[kWidth]) {
        for (int j = 0; j < kWidth; ++j) {
            Lane column[kWidth];
            for (int i = 0; i < kWidth; ++i) column[i] = from[i * pitch + j];
            to[j] = load_any(column);
        }
    }
    static Reg broadcast(const Lane* from) { return *from - Reg{}; }
    static Reg add(Reg a, Reg b) { return a + b; }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return sum + a * b; }
};

using F32 = Floating<float>;
using F64 = Floating<double>;

// Binary16 values in float lanes; the sum is rounded to binary16 every kChainStep products. A
// product of two such values is exact in binary32.
struct F16Sum : F32 {
    static constexpr bool kChain = true;
    typedef std::int32_t Bits __attribute__((vector_size(16)));

    static Reg round_sum(Reg value) {
        const Bits bits = reinterpret_cast<Bits>(value), magnitude = bits & 0x7fffffff;
        const Bits nan = magnitude > 0x7f800000;
        const Bits large = magnitude >= 0x477ff000;  // from 65520 on: Inf
        // 1.5 * 2^(exponent + 13): adding it leaves 11 significant bits, or multiples of 2^-24.
        const Bits exponent = magnitude & 0x7f800000 & ~large;
        const Bits missing = (exponent < (113 << 23)) & ((113 << 23) - exponent);
        const Reg magic = reinterpret_cast<Reg>(exponent + missing + (13 << 23) + 0x00400000);
        const Bits rounded = reinterpret_cast<Bits>((value + magic) - magic) & ~large;
        const Bits sign = bits & static_cast<std::int32_t>(0x80000000);
        return reinterpret_cast<Reg>(sign | rounded | (large & 0x7f800000) | (nan & bits));
    }
};

// Two 16-bit integers a lane: both products are added to a 32-bit sum that wraps.
struct S16x2 {
    using Lane = std::int32_t;
    using Element = std::int16_t;
    typedef std::int32_t Reg __attribute__((vector_size(16)));
    typedef std::uint32_t Wrapping __attribute__((vector_size(16)));
    static constexpr int kLaneK = 2;
    static constexpr int kWidth = 4, kRows = kTileRows, kVectors = 2;
    static constexpr bool kChain = false;

    static Reg zero() { return Reg{}; }
    static Reg load(const Lane* from) {
        Reg value;
        std::memcpy(&value, from, sizeof(value));
        return value;
    }
    static void store(Lane* to, Reg value) { std::memcpy(to, &value, sizeof(value)); }
    static Reg broadcast(const Lane* from) {
        Lane value;
        std::memcpy(&value, from, sizeof(value));
        return Reg{} + value;
    }
    static Reg add(Reg a, Reg b) {
        return reinterpret_cast<Reg>(reinterpret_cast<Wrapping>(a) + reinterpret_cast<Wrapping>(b));
    }
    static Reg multiply_add(Reg a, Reg b, Reg sum) {
#if defined(__SSE2__)  // has no 32-bit multiplication
        const __m128i products =
            _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b));
        return add(sum, reinterpret_cast<Reg>(products));
#else
        const Reg low = ((a << 16) >> 16) * ((b << 16) >> 16);
        const Reg high = (a >> 16) * (b >> 16);
        return add(sum, add(low, high));
#endif
    }
};

struct Vocabulary {
    using F32 = generic::F32;
    using F64 = generic::F64;
    using F16Sum = generic::F16Sum;
    using S16x2 = generic::S16x2;
    static void widen(const Half* from, int count, float* to) {
        for (int i = 0; i < count; ++i) to[i] = to_float(from[i]);
    }
    static void narrow(const float* from, int count, Half* to) {
        for (int i = 0; i < count; ++i) to[i] = to_half(from[i]);
    }
};

}  // namespace tcgemm::host::generic
