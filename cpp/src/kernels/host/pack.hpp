// Packing: a block of A or B, converted to the elements that a vocabulary computes with, in the
// order in which the micro-kernel reads it. Included once for each instruction set.
//
// A and B look alike from here: lines (rows of A, columns of B) of K elements. A lane holds kLaneK
// elements that follow each other along K; an odd rest is filled with zero.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <type_traits>

#include "kernels/host/convert.hpp"
#include "kernels/host/instruction_set.hpp"

namespace tcgemm::host {

// Conversion of a contiguous run. Compute is the type that elements are rounded to: Half, BFloat16,
// Tf32, float (all held in float), double or int8 (held in int16).
template <class V>
struct Runs {
    static constexpr int kChunk = 64;           // elements on the stack, for what takes two steps
    static constexpr unsigned kCacheLine = 64;  // bytes

    static void to_floats(const Half* from, int count, float* to) { V::widen(from, count, to); }
    static void to_floats(const BFloat16* from, int count, float* to) {
        for (int i = 0; i < count; ++i) to[i] = to_float(from[i]);
    }
    static void to_floats(const E4M3* from, int count, float* to) {
        for (int i = 0; i < count; ++i) to[i] = to_float(from[i]);
    }
    static void to_floats(const E5M2* from, int count, float* to) {
        for (int i = 0; i < count; ++i) to[i] = to_float(from[i]);
    }
    template <class Number>
    static void to_floats(const Number* from, int count, float* to) {
        for (int i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
    }
    // As floats that can be rounded again, to fewer bits, as if it were the first time.
    template <class Source>
    static void to_roundable(const Source* from, int count, float* to) {
        to_floats(from, count, to);
    }
    static void to_roundable(const double* from, int count, float* to) {
        for (int i = 0; i < count; ++i) to[i] = to_float_odd(from[i]);
    }

    static void convert(Half, const Half* from, int count, float* to) { V::widen(from, count, to); }
    template <class Source>
    static void convert(Half, const Source* from, int count, float* to) {
        Half rounded[kChunk];
        for (int i = 0; i < count; i += kChunk) {
            const int n = count - i < kChunk ? count - i : kChunk;
            to_roundable(from + i, n, to + i);
            V::narrow(to + i, n, rounded);
            V::widen(rounded, n, to + i);
        }
    }
    static void convert(BFloat16, const BFloat16* from, int count, float* to) {
        to_floats(from, count, to);
    }
    template <class Source>
    static void convert(BFloat16, const Source* from, int count, float* to) {
        to_roundable(from, count, to);
        for (int i = 0; i < count; ++i) to[i] = to_float(to_bfloat16(to[i]));
    }
    template <class Source>
    static void convert(Tf32, const Source* from, int count, float* to) {
        to_roundable(from, count, to);
        for (int i = 0; i < count; ++i) to[i] = to_tf32(to[i]);
    }
    template <class Source>
    static void convert(float, const Source* from, int count, float* to) {
        to_floats(from, count, to);
    }
    static void convert(double, const double* from, int count, double* to) {
        for (int i = 0; i < count; ++i) to[i] = from[i];
    }
    template <class Source>
    static void convert(double, const Source* from, int count, double* to) {
        float exact[kChunk];
        for (int i = 0; i < count; i += kChunk) {
            const int n = count - i < kChunk ? count - i : kChunk;
            to_floats(from + i, n, exact);
            for (int j = 0; j < n; ++j) to[i + j] = exact[j];
        }
    }
    static void convert(std::int8_t, const std::int8_t* from, int count, std::int16_t* to) {
        for (int i = 0; i < count; ++i) to[i] = from[i];
    }
    // `ahead`: elements from there to a run that is read soon, which is asked for; 0 where none is.
    // A block is a piece of each row: the hardware's own prefetch misses where the next one begins.
    template <class Compute, class Source, class Element>
    static void convert_strided(const Source* from, std::int64_t stride, int count, Element* to,
                                std::int64_t ahead = 0) {
        if (stride == 1) {
            if (ahead != 0) {
                const std::uintptr_t next = reinterpret_cast<std::uintptr_t>(from) +
                                            static_cast<std::uintptr_t>(ahead) * sizeof(Source);
                for (unsigned byte = 0; byte < count * sizeof(Source); byte += kCacheLine) {
                    __builtin_prefetch(reinterpret_cast<const void*>(next + byte));
                }
            }
            return convert(Compute{}, from, count, to);
        }
        Source gathered[kChunk];
        for (int i = 0; i < count; i += kChunk) {
            const int n = count - i < kChunk ? count - i : kChunk;
            for (int j = 0; j < n; ++j) gathered[j] = from[(i + j) * stride];
            convert(Compute{}, gathered, n, to + i);
        }
    }
    // `count` elements of `dtype`, the first one `offset` elements after `data`.
    template <class Compute, class Element>
    static void convert_any(DType dtype, const void* data, std::int64_t offset, std::int64_t stride,
                            int count, Element* to, std::int64_t ahead = 0) {
        if constexpr (std::is_integral_v<Compute>) {  // takes no other dtype
            return convert_strided<Compute>(static_cast<const std::int8_t*>(data) + offset, stride,
                                            count, to, ahead);
        } else {
            convert_float<Compute>(dtype, data, offset, stride, count, to, ahead);
        }
    }
    template <class Compute, class Element>
    static void convert_float(DType dtype, const void* data, std::int64_t offset,
                              std::int64_t stride, int count, Element* to, std::int64_t ahead) {
        switch (dtype) {
            case DType::f16:
                return convert_strided<Compute>(static_cast<const Half*>(data) + offset, stride,
                                                count, to, ahead);
            case DType::bf16:
                return convert_strided<Compute>(static_cast<const BFloat16*>(data) + offset, stride,
                                                count, to, ahead);
            case DType::f32:
                return convert_strided<Compute>(static_cast<const float*>(data) + offset, stride,
                                                count, to, ahead);
            case DType::f64:
                return convert_strided<Compute>(static_cast<const double*>(data) + offset, stride,
                                                count, to, ahead);
            case DType::i8:
                return convert_strided<Compute>(static_cast<const std::int8_t*>(data) + offset,
                                                stride, count, to, ahead);
            case DType::e4m3:
                return convert_strided<Compute>(static_cast<const E4M3*>(data) + offset, stride,
                                                count, to, ahead);
            case DType::e5m2:
                return convert_strided<Compute>(static_cast<const E5M2*>(data) + offset, stride,
                                                count, to, ahead);
            case DType::i32: return;  // no operand has it
        }
    }
};

// out[j][i] = in[i][j], `rows` and `cols` of `in`.
template <class Lane>
static void transpose(const Lane* in, std::int64_t in_pitch, int rows, int cols, Lane* out,
                      int out_pitch) {
    int i = 0;
#if defined(__SSE2__)
    if constexpr (sizeof(Lane) == 4) {
        for (; i + 4 <= rows; i += 4) {
            const float* from = reinterpret_cast<const float*>(in + i * in_pitch);
            float* to = reinterpret_cast<float*>(out + i);
            int j = 0;
            for (; j + 4 <= cols; j += 4) {
                __m128 r0 = _mm_loadu_ps(from + j), r1 = _mm_loadu_ps(from + in_pitch + j);
                __m128 r2 = _mm_loadu_ps(from + 2 * in_pitch + j);
                __m128 r3 = _mm_loadu_ps(from + 3 * in_pitch + j);
                _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
                _mm_storeu_ps(to + j * out_pitch, r0);
                _mm_storeu_ps(to + (j + 1) * out_pitch, r1);
                _mm_storeu_ps(to + (j + 2) * out_pitch, r2);
                _mm_storeu_ps(to + (j + 3) * out_pitch, r3);
            }
            for (; j < cols; ++j) {
                for (int r = 0; r < 4; ++r) out[j * out_pitch + i + r] = in[(i + r) * in_pitch + j];
            }
        }
    }
    if constexpr (std::is_same_v<Lane, double>) {
        for (; i + 2 <= rows; i += 2) {
            const double *even = in + i * in_pitch, *odd = even + in_pitch;
            double* to = out + i;
            int j = 0;
            for (; j + 2 <= cols; j += 2) {
                const __m128d r0 = _mm_loadu_pd(even + j), r1 = _mm_loadu_pd(odd + j);
                _mm_storeu_pd(to + j * out_pitch, _mm_unpacklo_pd(r0, r1));
                _mm_storeu_pd(to + (j + 1) * out_pitch, _mm_unpackhi_pd(r0, r1));
            }
            for (; j < cols; ++j) to[j * out_pitch] = even[j], to[j * out_pitch + 1] = odd[j];
        }
    }
#endif
    for (; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) out[j * out_pitch + i] = in[i * in_pitch + j];
    }
}

struct Lines {
    const void* data;
    DType dtype;
    std::int64_t line_stride;  // from line to line
    std::int64_t k_stride;     // along K
    std::int64_t k;            // elements of a line
    bool along_k() const {     // along K is the better order to read it in
        const std::int64_t line = line_stride < 0 ? -line_stride : line_stride;
        const std::int64_t step = k_stride < 0 ? -k_stride : k_stride;
        return step < line;
    }
};

// S: an arithmetic of vocabulary V. Compute: what elements are rounded to.
template <class V, class S, class Compute>
struct Packer {
    using Lane = typename S::Lane;
    using Element = typename S::Element;
    static constexpr int kTileCols = S::kVectors * S::kWidth;
    static constexpr int kChunk = 32;  // lanes of a line that are transposed at a time
    // Runs that are asked for ahead (1 x 4096 x 4096 on a Zen 5 core gains 40 %).
    static constexpr int kChunksAhead = 2, kLanesAhead = 8;

    // Lines of A that are packed together where lanes lie across them, a few of each: those of
    // whole register tiles, about as many as lines of B.
    static constexpr int kAcross = (kTileCols > S::kRows ? kTileCols / S::kRows : 1) * S::kRows;
    static constexpr int kMostAcross = kAcross > kTileCols ? kAcross : kTileCols;

    // Whether elements are lanes as they lie.
    static constexpr bool kMayBeLanes = std::is_same_v<Compute, Lane>;
    static bool are_lanes(DType dtype) {
        return kMayBeLanes && dtype == (sizeof(Lane) == 8 ? DType::f64 : DType::f32);
    }

    static const Lane* lane_at(const Lines& lines, std::int64_t line, std::int64_t lane) {
        return static_cast<const Lane*>(lines.data) + line * lines.line_stride +
               lane * lines.k_stride;
    }

    // `count` lanes of one line, from lane `first` on.
    static void read_along(const Lines& lines, std::int64_t line, std::int64_t first, int count,
                           Lane* to) {
        const std::int64_t k = first * S::kLaneK;
        const std::int64_t rest = lines.k - k;
        const int elements = rest < count * S::kLaneK ? static_cast<int>(rest) : count * S::kLaneK;
        Element* out = reinterpret_cast<Element*>(to);
        Runs<V>::template convert_any<Compute>(
            lines.dtype, lines.data, line * lines.line_stride + k * lines.k_stride, lines.k_stride,
            elements, out, kChunksAhead * kChunk * S::kLaneK * lines.k_stride);
        for (int i = elements; i < count * S::kLaneK; ++i) out[i] = 0;
    }

    // One lane of each of `count` lines.
    static void read_across(const Lines& lines, std::int64_t line, std::int64_t lane, int count,
                            Lane* to) {
        Element step[S::kLaneK][kMostAcross];
        for (int s = 0; s < S::kLaneK; ++s) {
            const std::int64_t k = lane * S::kLaneK + s;
            Element* out = S::kLaneK == 1 ? reinterpret_cast<Element*>(to) : step[s];
            if (k < lines.k) {
                Runs<V>::template convert_any<Compute>(
                    lines.dtype, lines.data, line * lines.line_stride + k * lines.k_stride,
                    lines.line_stride, count, out, kLanesAhead * S::kLaneK * lines.k_stride);
            } else {
                for (int i = 0; i < count; ++i) out[i] = 0;
            }
        }
        if constexpr (S::kLaneK > 1) {
            Element* out = reinterpret_cast<Element*>(to);
            for (int i = 0; i < count; ++i) {
                for (int s = 0; s < S::kLaneK; ++s) out[i * S::kLaneK + s] = step[s][i];
            }
        }
    }

    // A: lines one below the other, `pitch` lanes apart; unused ones below `used` are zero.
    static void pack_a(const Lines& lines, std::int64_t line, int count, int used,
                       std::int64_t first_lane, int lanes, Lane* to, int pitch) {
        alignas(64) Lane chunk[kChunk * kAcross];
        if (are_lanes(lines.dtype) && lines.line_stride == 1) {
            transpose(lane_at(lines, line, first_lane), lines.k_stride, lanes, count, to, pitch);
        } else if (lines.along_k()) {
            for (int i = 0; i < count; ++i) {
                read_along(lines, line + i, first_lane, lanes, to + i * pitch);
            }
        } else {
            for (int lane = 0; lane < lanes; lane += kChunk) {
                const int n = lanes - lane < kChunk ? lanes - lane : kChunk;
                for (int i = 0; i < n; ++i) {
                    read_across(lines, line, first_lane + lane + i, count, chunk + i * kAcross);
                }
                transpose(chunk, kAcross, n, count, to + lane, pitch);
            }
        }
        for (int i = count; i < used; ++i) {
            for (int lane = 0; lane < lanes; ++lane) to[i * pitch + lane] = 0;
        }
    }

    // B: panels of kTileCols lines; in a panel, all lines' first lanes, then all second ones, and
    // so on; unused ones that the micro-kernel reads are zero.
    static void pack_b(const Lines& lines, std::int64_t line_count, std::int64_t first_lane,
                       int lanes, Lane* to) {
        alignas(64) Lane chunk[kTileCols * kChunk];
        const bool along = lines.along_k();
        for (std::int64_t line = 0; line < line_count; line += kTileCols, to += lanes * kTileCols) {
            const std::int64_t rest = line_count - line;
            const int count = rest < kTileCols ? static_cast<int>(rest) : kTileCols;
            if (count < S::kWidth) {
                for (int lane = 0; lane < lanes; ++lane) {
                    std::memset(static_cast<void*>(to + lane * kTileCols), 0,
                                sizeof(Lane) * S::kWidth);
                }
            } else if (count > S::kWidth && count < kTileCols) {
                std::memset(static_cast<void*>(to), 0, sizeof(Lane) * lanes * kTileCols);
            }
            if (!along) {
                for (int lane = 0; lane < lanes; ++lane) {
                    read_across(lines, line, first_lane + lane, count, to + lane * kTileCols);
                }
                continue;
            }
            if (are_lanes(lines.dtype) && lines.k_stride == 1) {
                transpose(lane_at(lines, line, first_lane), lines.line_stride, count, lanes, to,
                          kTileCols);
                continue;
            }
            for (int lane = 0; lane < lanes; lane += kChunk) {
                const int n = lanes - lane < kChunk ? lanes - lane : kChunk;
                for (int i = 0; i < count; ++i) {
                    read_along(lines, line + i, first_lane + lane, n, chunk + i * kChunk);
                }
                transpose(chunk, kChunk, count, n, to + lane * kTileCols, kTileCols);
            }
        }
    }
};

}  // namespace tcgemm::host
