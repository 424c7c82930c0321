// Eight floats in a register of 32 bytes: of AVX2 all float arithmetic, of AVX-512 that of lines.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tcgemm::host {

// Owner: the instruction set whose file is compiled, so that none has code of another one.
template <class Owner>
struct EightFloats {
    using Lane = float;
    using Reg = __m256;
    static constexpr int kWidth = 8;

    static Reg zero() { return _mm256_setzero_ps(); }
    static Reg load(const Lane* from) { return _mm256_load_ps(from); }
    static void store(Lane* to, Reg value) { _mm256_store_ps(to, value); }
    static Reg broadcast(const Lane* from) { return _mm256_broadcast_ss(from); }
    static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
    static Reg multiply_add(Reg a, Reg b, Reg sum) { return _mm256_fmadd_ps(a, b, sum); }

    static void transpose(const Lane* from, std::int64_t pitch, Reg (&to)[kWidth]) {
        for (int j = 0; j < kWidth; j += 4, from += 4) {
            const Reg line0 = pieces(from, 4 * pitch), line1 = pieces(from + pitch, 4 * pitch);
            const Reg line2 = pieces(from + 2 * pitch, 4 * pitch);
            const Reg line3 = pieces(from + 3 * pitch, 4 * pitch);
            const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(line0, line1));
            const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(line2, line3));
            const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(line0, line1));
            const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(line2, line3));
            to[j] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
            to[j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
            to[j + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
            to[j + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
        }
    }

   private:
    // 16 bytes of two lines.
    static Reg pieces(const Lane* line, std::int64_t apart) {
        const Reg low = _mm256_castps128_ps256(_mm_loadu_ps(line));
        return _mm256_insertf128_ps(low, _mm_loadu_ps(line + apart), 1);
    }
};

}  // namespace tcgemm::host
