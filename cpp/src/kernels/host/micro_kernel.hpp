// The innermost loop: one register tile. Included once for each instruction set.
#pragma once

#include <cstdint>

namespace tcgemm::host {

// tile[Rows][Vectors * kWidth] (+)= A B. `a`: Rows lines of `lanes` lanes, kPitch apart; `b`:
// `lanes` rows of kVectors * kWidth, of which the first Vectors * kWidth are used; `tile` has B's
// row length. A line of A costs a broadcast for all vectors of B: those come from the L2 cache, A
// from L1.
template <class S, int kPitch, int Rows, int Vectors>
static void micro_kernel(int lanes, const typename S::Lane* a, const typename S::Lane* b,
                         typename S::Lane* tile, bool first) {
    using Reg = typename S::Reg;
    constexpr int kTileCols = S::kVectors * S::kWidth;
    Reg sum[Rows][Vectors];
    for (int i = 0; i < Rows; ++i) {
        for (int v = 0; v < Vectors; ++v) {
            const bool goes_on = S::kChain && !first;
            sum[i][v] = goes_on ? S::load(tile + i * kTileCols + v * S::kWidth) : S::zero();
        }
    }
    for (int lane = 0; lane < lanes; ++lane, b += kTileCols) {
        Reg row[Vectors];
        for (int v = 0; v < Vectors; ++v) row[v] = S::load(b + v * S::kWidth);
        for (int i = 0; i < Rows; ++i) {
            const Reg value = S::broadcast(a + i * kPitch + lane);
            for (int v = 0; v < Vectors; ++v) sum[i][v] = S::multiply_add(value, row[v], sum[i][v]);
        }
    }
    for (int i = 0; i < Rows; ++i) {
        for (int v = 0; v < Vectors; ++v) {
            typename S::Lane* to = tile + i * kTileCols + v * S::kWidth;
            const bool adds = !S::kChain && !first;
            S::store(to, adds ? S::add(S::load(to), sum[i][v]) : sum[i][v]);
        }
    }
}

}  // namespace tcgemm::host
