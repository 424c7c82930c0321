// The vocabulary of simd_generic.hpp in AVX-512 (F, BW, VL, DQ): 32 registers of 64 bytes.
#pragma once

#include <immintrin.h>

#include "kernels/host/convert.hpp"
#include "kernels/host/simd_eight_floats.hpp"

namespace tcgemm::host::avx512 {

// With an all-ones mask: the forms without one read an uninitialised register, and GCC warns.
static inline __m512 from_half(__m256i half) { return _mm512_maskz_cvtph_ps(0xffff, half); }
static inline __m256i to_half(__m512 value) {
    return _mm512_maskz_cvtps_ph(0xffff, value, _MM_FROUND_TO_NEAREST_INT);
}

struct Tag;
struct F32 {
    using Lane = float;
    using Element = float;
    // Sixteen lines a power of two apart would fall into one set of the L1 cache.
    using Lines = EightFloats<Tag>;
    using Reg = __m512;
    static constexpr int kLaneK = 1;
    static constexpr int kWidth = 16, kRows = 8, kVectors = 3;
    static constexpr bool kChain = false;

    static Reg zero() { return _mm512_setzero_ps(); }
    static Reg load(const Lane* from) { return _mm512_load_ps(from); }
    static Reg load_any(const Lane* from) { return _mm512_loadu_ps(from); }
    static void store(Lane* to, Reg value) { _mm512_store_ps(to, value); }
    static Reg broadcast(const Lane* from) { return _mm512_set1_ps(*from); }
    static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return _mm512_fmadd_ps(a, b, sum); }
};

struct F16Sum : F32 {
    static constexpr bool kChain = true;
    static Reg round_sum(Reg sum) { return from_half(to_half(sum)); }
};

struct F64 {
    using Lane = double;
    using Element = double;
    using Lines = F64;
    using Reg = __m512d;
    static constexpr int kLaneK = 1;
    static constexpr int kWidth = 8, kRows = 8, kVectors = 3;
    static constexpr bool kChain = false;

    static Reg zero() { return _mm512_setzero_pd(); }
    static Reg load(const Lane* from) { return _mm512_load_pd(from); }
    static Reg load_any(const Lane* from) { return _mm512_loadu_pd(from); }
    static void store(Lane* to, Reg value) { _mm512_store_pd(to, value); }
    static void transpose(const Lane* from, std::int64_t pitch, Reg (&to)[kWidth]) {
        Reg pair[4][2];  // [g][c]: of lines 2 g and 2 g + 1, column c of each two
        for (int g = 0; g < 4; ++g, from += 2 * pitch) {
            const Reg line0 = load_any(from), line1 = load_any(from + pitch);
            pair[g][0] = _mm512_unpacklo_pd(line0, line1);
            pair[g][1] = _mm512_unpackhi_pd(line0, line1);
        }
        for (int c = 0; c < 2; ++c) {  // as above
            const Reg even = _mm512_shuffle_f64x2(pair[0][c], pair[1][c], 0x88);
            const Reg odd = _mm512_shuffle_f64x2(pair[0][c], pair[1][c], 0xdd);
            const Reg even2 = _mm512_shuffle_f64x2(pair[2][c], pair[3][c], 0x88);
            const Reg odd2 = _mm512_shuffle_f64x2(pair[2][c], pair[3][c], 0xdd);
            to[c] = _mm512_shuffle_f64x2(even, even2, 0x88);
            to[2 + c] = _mm512_shuffle_f64x2(odd, odd2, 0x88);
            to[4 + c] = _mm512_shuffle_f64x2(even, even2, 0xdd);
            to[6 + c] = _mm512_shuffle_f64x2(odd, odd2, 0xdd);
        }
    }
    static Reg broadcast(const Lane* from) { return _mm512_set1_pd(*from); }
    static Reg add(Reg a, Reg b) { return _mm512_add_pd(a, b); }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return _mm512_fmadd_pd(a, b, sum); }
};

struct S16x2 {
    using Lane = std::int32_t;
    using Element = std::int16_t;
    using Reg = __m512i;
    static constexpr int kLaneK = 2;
    static constexpr int kWidth = 16, kRows = 8, kVectors = 3;
    static constexpr bool kChain = false;

    static Reg zero() { return _mm512_setzero_si512(); }
    static Reg load(const Lane* from) { return _mm512_load_si512(from); }
    static void store(Lane* to, Reg value) { _mm512_store_si512(to, value); }
    static Reg broadcast(const Lane* from) {
        Lane value;
        std::memcpy(&value, from, sizeof(value));
        return _mm512_set1_epi32(value);
    }
    static Reg add(Reg a, Reg b) { return _mm512_add_epi32(a, b); }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return add(sum, _mm512_madd_epi16(a, b)); }
};

struct Vocabulary {
    using F32 = avx512::F32;
    using F64 = avx512::F64;
    using F16Sum = avx512::F16Sum;
    using S16x2 = avx512::S16x2;
    static void widen(const Half* from, int count, float* to) {
        int i = 0;
        for (; i + 16 <= count; i += 16) {
            const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
            _mm512_storeu_ps(to + i, from_half(half));
        }
        for (; i < count; ++i) to[i] = to_float(from[i]);
    }
    static void narrow(const float* from, int count, Half* to) {
        int i = 0;
        for (; i + 16 <= count; i += 16) {
            const __m256i half = to_half(_mm512_loadu_ps(from + i));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), half);
        }
        for (; i < count; ++i) to[i] = host::to_half(from[i]);
    }
};

}  // namespace tcgemm::host::avx512
