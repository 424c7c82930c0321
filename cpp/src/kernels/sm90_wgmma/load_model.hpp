// How long the loads of a k-block take at least, by how the operands come: for the cost model.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/sm90_wgmma/arrangement.hpp"

namespace tcgemm::sm90_wgmma {

// Measured on an H200 and an H100. Bytes a microsecond, or microseconds.
// To each SM out of L2, where all load: of rows that begin at its lines, at its sectors amid lines,
// and of rows of which half begin amid sectors.
inline constexpr double kWholeBytesPerUs = 1.15e5, kAmidLinesBytesPerUs = 8.2e4;
inline constexpr double kCrossingBytesPerUs = 5.3e4;
// The copy engine: a row of a box that ends before its 128 bytes do.
inline constexpr double kClippedRowUs = 8e-3;
inline constexpr double kShortClipped = 0.75;  // of that, where K is shorter than a k-block
inline constexpr double kClippedOnce = 0.6;    // of that, where each block has one tile
// Such a row, where blocks on all SMs ask for it at once: at sectors of L2, and amid them.
inline constexpr double kHotRowUs = 4.7e-3, kHotCrossingRowUs = 1.5e-2;
// The same of boxes that end with the row, where a block has one small tile. (Of more tiles they
// are as slow, at least in tall products of a short K: the lines of so small a B are few.)
inline constexpr double kShortRowUs = 1.8e-3, kShortCrossingRowUs = 4e-3;

// To an SM, of rows so far apart that each is in a page of its own: addresses take longer.
inline constexpr double kFarBytesPerUs = 6e4;
inline constexpr std::int64_t kPageBytes = 2 << 20;

// Where all rows of an operand begin in L2. Amid lines each piece of a box comes out of two, amid
// sectors out of more of them.
enum class RowsBegin : std::uint8_t { at_lines, at_sectors, amid_sectors };

// How the operands come to a row, as its A and B.
struct Forms {
    bool packs_a, packs_b;
    RowsBegin a, b;

    bool at_lines() const { return a == RowsBegin::at_lines && b == RowsBegin::at_lines; }
};

// What L2 needs for a k-block of a tile, where all SMs load: so many rows of A and columns of B,
// `beside` of which belong to the next tile, so that not all boxes begin at lines.
inline double load_us(int rows, int columns, int beside, const Arrangement& arrangement,
                      const Forms& forms) {
    const auto rate = [&](RowsBegin begin) {
        return begin == RowsBegin::amid_sectors ? kCrossingBytesPerUs
               : begin == RowsBegin::at_lines   ? kWholeBytesPerUs
                                                : kAmidLinesBytesPerUs;
    };
    const bool amid = beside > 0 && arrangement.cluster_m == 1;
    return rows * kRowBytes / rate(forms.a) / arrangement.cluster_n +
           (columns + beside) * kRowBytes /
               rate(amid ? std::max(forms.b, RowsBegin::at_sectors) : forms.b) /
               arrangement.cluster_m;
}

// Whether boxes of A lie along m, or of B along n.
inline bool m_is_contiguous(const RowInfo& row, const ValidProblem& problem,
                            const Schedule& schedule) {
    return row.any_major() && problem->a.col_stride != 1 && !schedule.packs_a_k_major;
}
inline bool n_is_contiguous(const RowInfo& row, const ValidProblem& problem,
                            const Schedule& schedule) {
    return row.any_major() && problem->b.row_stride != 1 && !schedule.packs_b_k_major;
}

// What L2 needs for a k-block of an operand all of whose rows are shorter than a box, those of A
// along m or of B along n: each is a few bytes, which all tiles of a matrix ask for at about the
// same time.
inline double hot_us(const RowInfo& row, const ValidProblem& problem, const Schedule& schedule,
                     const Forms& forms, const Arrangement& arrangement, int sm_count) {
    const double blocks = static_cast<double>(arrangement.tiles() * schedule.split_k);
    const double at_once = std::min(1.0, blocks / std::max(sm_count, 1));
    const bool has_one_tile = row.tile.block_m == kMmaM && blocks <= sm_count * row.blocks_per_sm;
    const auto rows_us = [&](bool along_mn, std::int64_t mn, bool crosses) {
        if (!along_mn || mn >= kBoxMn) return 0.0;
        const bool ends_with_box = mn * row.element_bytes() % kTensorBytes == 0;
        double row_us = at_once * (crosses ? kHotCrossingRowUs : kHotRowUs);
        if (has_one_tile && ends_with_box) {
            row_us = crosses ? std::max(kShortRowUs, at_once * kShortCrossingRowUs) : kShortRowUs;
        }
        return row.tile.block_k * row_us;
    };
    return std::max(rows_us(m_is_contiguous(row, problem, schedule), problem->m,
                            forms.a == RowsBegin::amid_sectors),
                    rows_us(n_is_contiguous(row, problem, schedule), problem->n,
                            forms.b == RowsBegin::amid_sectors));
}

// What a k-block's rows of A and columns of B need at least where they are far apart, which those
// that lie along m or n are not.
inline double far_us(const ValidProblem& problem, const Forms& forms, int rows, int columns) {
    const bool far_a =
        !forms.packs_a && problem->a.row_stride * size_of(problem->a.dtype) >= kPageBytes;
    const bool far_b =
        !forms.packs_b && problem->b.col_stride * size_of(problem->b.dtype) >= kPageBytes;
    const std::int64_t lines = (far_a ? std::min<std::int64_t>(rows, problem->m) : 0) +
                               (far_b ? std::min<std::int64_t>(columns, problem->n) : 0);
    return static_cast<double>(lines * kRowBytes) / kFarBytesPerUs;
}

// Whether A comes through registers, for it lies along m.
inline bool a_in_registers(const RowInfo& row, const ValidProblem& problem, const Forms& forms) {
    return row.any_major_a && !row.any_major() && !forms.packs_a && problem->a.col_stride != 1;
}

// What the copy engine needs for a k-block of a tile where it clips rows: all of a K shorter than a
// k-block, and those of B along an n shorter than a box. Where each block has one tile, most of it
// is hidden.
inline double clipped_us(const RowInfo& row, const ValidProblem& problem, const Schedule& schedule,
                         int columns, bool has_more_tiles) {
    const bool along_n = n_is_contiguous(row, problem, schedule);
    const std::int64_t k = std::min<std::int64_t>(row.k(problem->k), row.tile.block_k);
    std::int64_t rows = along_n && problem->n < kBoxMn ? k : 0;
    if (k < row.tile.block_k) {
        const bool along_k = problem->a.col_stride == 1 || schedule.packs_a_k_major;
        rows += along_k ? std::min<std::int64_t>(problem->m, row.tile.block_m) : 0;
        rows += along_n ? 0 : columns;
    }
    const double us = static_cast<double>(rows) * kClippedRowUs;
    if (k == row.tile.block_k) return has_more_tiles ? us : 0;
    return us * kShortClipped * (has_more_tiles ? 1 : kClippedOnce) / row.blocks_per_sm;
}

}  // namespace tcgemm::sm90_wgmma
