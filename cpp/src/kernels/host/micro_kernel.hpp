// The innermost loop: one register tile. Included once for each instruction set.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#define TCGEMM_HOST_INLINE __attribute__((always_inline))

namespace tcgemm::host {

// body(0), body(1), ... written out with constant indices: GCC keeps an array in registers only if
// no loop over it is left when it first looks.
template <class Body, int... index>
TCGEMM_HOST_INLINE static inline void unrolled(std::integer_sequence<int, index...>,
                                               const Body& body) {
    (body(std::integral_constant<int, index>{}), ...);
}

// Products that are added to a chain before it is rounded, like the step of a tensor core: what the
// bound of FP16 sums counts on (K / 4 roundings).
static constexpr int kChainStep = 4;

// Rows of B in memory that are asked for ahead.
static constexpr int kRowsAhead = 8;

// tile[Rows][Vectors * kWidth] (+)= A B. `a`: Rows lines of `lanes` lanes, kPitch apart; `b`:
// `lanes` rows, b_step apart, of which the first Vectors * kWidth are used; `tile` has rows of
// kVectors * kWidth. An element of A costs a broadcast for all vectors of B: B comes from the L2
// cache, A from L1. Further vectors are those of the next tiles. kInPlace: B comes from memory, at
// any address.
template <class S, int kPitch, int Rows, int Vectors, bool kInPlace = false>
static void micro_kernel(int lanes, const typename S::Lane* a, const typename S::Lane* b,
                         std::int64_t b_step, typename S::Lane* tile, bool first) {
    constexpr int kTileCols = S::kVectors * S::kWidth;
    constexpr auto rows = std::make_integer_sequence<int, Rows>{};
    constexpr auto vectors = std::make_integer_sequence<int, Vectors>{};
    const auto at = [tile](int i, int v) {
        return tile + (v / S::kVectors * S::kRows + i) * kTileCols + v % S::kVectors * S::kWidth;
    };
    const auto each = [=](const auto& body) TCGEMM_HOST_INLINE {
        unrolled(rows, [&](auto i) TCGEMM_HOST_INLINE {
            unrolled(vectors, [&](auto v) TCGEMM_HOST_INLINE { body(i, v); });
        });
    };

    typename S::Reg sum[Rows][Vectors], row[Vectors];
    each([&](auto i, auto v) TCGEMM_HOST_INLINE { sum[i][v] = S::zero(); });
    if (S::kChain && !first) {
        each([&](auto i, auto v) TCGEMM_HOST_INLINE { sum[i][v] = S::load(at(i, v)); });
    }
    for (int lane = 0; lane < lanes; ++lane, b += b_step) {
        unrolled(vectors, [&](auto v) TCGEMM_HOST_INLINE {
            if constexpr (kInPlace) {
                __builtin_prefetch(b + kRowsAhead * b_step + v * S::kWidth);
                row[v] = S::load_any(b + v * S::kWidth);
            } else {
                row[v] = S::load(b + v * S::kWidth);
            }
        });
        unrolled(rows, [&](auto i) TCGEMM_HOST_INLINE {
            const auto value = S::broadcast(a + i * kPitch + lane);
            unrolled(vectors, [&](auto v) TCGEMM_HOST_INLINE {
                sum[i][v] = S::multiply_add(value, row[v], sum[i][v]);
            });
        });
        if constexpr (S::kChain) {
            if ((lane + 1) % kChainStep == 0 || lane + 1 == lanes) {
                each([&](auto i, auto v)
                         TCGEMM_HOST_INLINE { sum[i][v] = S::round_sum(sum[i][v]); });
            }
        }
    }
    if (!S::kChain && !first) {
        each([&](auto i, auto v)
                 TCGEMM_HOST_INLINE { sum[i][v] = S::add(S::load(at(i, v)), sum[i][v]); });
    }
    each([&](auto i, auto v) TCGEMM_HOST_INLINE { S::store(at(i, v), sum[i][v]); });
}

// Of a line of B, asked for ahead.
static constexpr int kBytesAhead = 256;

// tile[Rows][kWidth] (+)= A B for kWidth lines of B, b_line apart, whose lanes are neighbours in
// memory: squares of kWidth lanes are transposed in registers. `a`: Rows lines, a_line apart, the
// last one again for those behind `last`; `tile` has rows of kTileCols.
template <class S, int kTileCols, int Rows>
static void lines_kernel(int lanes, const typename S::Lane* a, std::int64_t a_line, int last,
                         const typename S::Lane* b, std::int64_t b_line, typename S::Lane* tile,
                         bool first) {
    using Lane = typename S::Lane;
    constexpr auto square = std::make_integer_sequence<int, S::kWidth>{};
    constexpr auto rows = std::make_integer_sequence<int, Rows>{};
    const Lane* line[Rows];
    typename S::Reg total[Rows];
    unrolled(rows, [&](auto i) TCGEMM_HOST_INLINE {
        line[i] = a + (i < last ? i : last) * a_line;
        total[i] = S::zero();
    });
    const auto multiply = [&](int lane, typename S::Reg column) TCGEMM_HOST_INLINE {
        unrolled(rows, [&](auto i) TCGEMM_HOST_INLINE {
            total[i] = S::multiply_add(S::broadcast(line[i] + lane), column, total[i]);
        });
    };
    int lane = 0;
    for (; lane + S::kWidth <= lanes; lane += S::kWidth) {
        unrolled(square, [&](auto i) TCGEMM_HOST_INLINE {
            const auto ahead = reinterpret_cast<std::uintptr_t>(b + i * b_line + lane);
            __builtin_prefetch(reinterpret_cast<const void*>(ahead + kBytesAhead));
        });
        typename S::Reg column[S::kWidth];
        S::transpose(b + lane, b_line, column);
        unrolled(square, [&](auto j) TCGEMM_HOST_INLINE { multiply(lane + j, column[j]); });
    }
    for (; lane < lanes; ++lane) {
        alignas(64) Lane column[S::kWidth];
        for (int i = 0; i < S::kWidth; ++i) column[i] = b[i * b_line + lane];
        multiply(lane, S::load(column));
    }
    unrolled(rows, [&](auto i) TCGEMM_HOST_INLINE {
        Lane* const sum = tile + i * kTileCols;
        S::store(sum, first ? total[i] : S::add(S::load(sum), total[i]));
    });
}

// The products of a line of A and a line of B over `lanes` lanes.
template <class S>
static typename S::Lane line_product(int lanes, const typename S::Lane* a,
                                     const typename S::Lane* b) {
    typename S::Reg total = S::zero();
    for (int lane = 0; lane < lanes; ++lane) {
        total = S::multiply_add(S::broadcast(a + lane), S::broadcast(b + lane), total);
    }
    alignas(64) typename S::Lane sum[S::kWidth];
    S::store(sum, total);
    return sum[0];
}

// The same of kWidth stretches of kBlock lanes that follow each other, a sum of each: they are the
// lanes of a register, for which squares of both lines are transposed.
template <class S, int kBlock>
static void line_products(const typename S::Lane* a, const typename S::Lane* b,
                          typename S::Lane* sums) {
    constexpr auto square = std::make_integer_sequence<int, S::kWidth>{};
    static_assert(kBlock % S::kWidth == 0);
    typename S::Reg total = S::zero();
    for (int lane = 0; lane < kBlock; lane += S::kWidth) {
        typename S::Reg of_a[S::kWidth], of_b[S::kWidth];
        S::transpose(a + lane, kBlock, of_a);
        S::transpose(b + lane, kBlock, of_b);
        unrolled(square, [&](auto j) TCGEMM_HOST_INLINE {
            total = S::multiply_add(of_a[j], of_b[j], total);
        });
    }
    S::store(sums, total);
}

}  // namespace tcgemm::host

#undef TCGEMM_HOST_INLINE
