// The vocabulary of simd_generic.hpp in AVX2, FMA and F16C: 16 registers of 32 bytes.
#pragma once

#include <immintrin.h>

#include "kernels/host/convert.hpp"
#include "kernels/host/simd_eight_floats.hpp"

namespace tcgemm::host::avx2 {

// 16 bytes of two lines.
static inline __m256d pieces(const double* line, std::int64_t apart) {
    const __m256d low = _mm256_castpd128_pd256(_mm_loadu_pd(line));
    return _mm256_insertf128_pd(low, _mm_loadu_pd(line + apart), 1);
}

struct Tag;
struct F32 : EightFloats<Tag> {
    using Element = float;
    using Lines = F32;
    static constexpr int kLaneK = 1;
    static constexpr int kRows = 6, kVectors = 2;
    static constexpr bool kChain = false;

    static Reg load_any(const Lane* from) { return _mm256_loadu_ps(from); }
};

struct F16Sum : F32 {
    static constexpr bool kChain = true;
    static Reg round_sum(Reg sum) {
        return _mm256_cvtph_ps(_mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    }
};

struct F64 {
    using Lane = double;
    using Element = double;
    using Lines = F64;
    using Reg = __m256d;
    static constexpr int kLaneK = 1;
    static constexpr int kWidth = 4, kRows = 6, kVectors = 2;
    static constexpr bool kChain = false;

    static Reg zero() { return _mm256_setzero_pd(); }
    static Reg load(const Lane* from) { return _mm256_load_pd(from); }
    static Reg load_any(const Lane* from) { return _mm256_loadu_pd(from); }
    static void store(Lane* to, Reg value) { _mm256_store_pd(to, value); }
    static void transpose(const Lane* from, std::int64_t pitch, Reg (&to)[kWidth]) {
        for (int j = 0; j < kWidth; j += 2, from += 2) {
            const Reg even = pieces(from, 2 * pitch), odd = pieces(from + pitch, 2 * pitch);
            to[j] = _mm256_unpacklo_pd(even, odd);
            to[j + 1] = _mm256_unpackhi_pd(even, odd);
        }
    }
    static Reg broadcast(const Lane* from) { return _mm256_broadcast_sd(from); }
    static Reg add(Reg a, Reg b) { return _mm256_add_pd(a, b); }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return _mm256_fmadd_pd(a, b, sum); }
};

struct S16x2 {
    using Lane = std::int32_t;
    using Element = std::int16_t;
    using Reg = __m256i;
    static constexpr int kLaneK = 2;
    static constexpr int kWidth = 8, kRows = 6, kVectors = 2;
    static constexpr bool kChain = false;

    static Reg zero() { return _mm256_setzero_si256(); }
    static Reg load(const Lane* from) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
    }
    static void store(Lane* to, Reg value) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(to), value);
    }
    static Reg broadcast(const Lane* from) {
        Lane value;
        std::memcpy(&value, from, sizeof(value));
        return _mm256_set1_epi32(value);
    }
    static Reg add(Reg a, Reg b) { return _mm256_add_epi32(a, b); }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return add(sum, _mm256_madd_epi16(a, b)); }
};

struct Vocabulary {
    using F32 = avx2::F32;
    using F64 = avx2::F64;
    using F16Sum = avx2::F16Sum;
    using S16x2 = avx2::S16x2;
    static void widen(const Half* from, int count, float* to) {
        int i = 0;
        for (; i + 8 <= count; i += 8) {
            const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
        }
        for (; i < count; ++i) to[i] = to_float(from[i]);
    }
    static void narrow(const float* from, int count, Half* to) {
        int i = 0;
        for (; i + 8 <= count; i += 8) {
            const __m128i half =
                _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
        }
        for (; i < count; ++i) to[i] = to_half(from[i]);
    }
};

}  // namespace tcgemm::host::avx2
