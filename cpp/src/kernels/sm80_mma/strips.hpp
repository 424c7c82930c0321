// Kernels for a whole K of 16-bit elements, in tiles of 64 x 64 and 128 x 128 whose warps have a
// strip of 16 rows each: which products they take, how much shared memory, and how long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/whole_k/whole_k.hpp"

namespace tcgemm::sm80_mma {

using whole_k::ImageLayout;
using whole_k::kVectorBytes;

inline constexpr int kStripRows = 16, kStripItem = 2;  // kStripItem: bytes of an element
constexpr int strip_threads(int tile) { return tile / kStripRows * 32; }
// By the registers of a thread: so many, so that four schedulers have six warps each, or four.
constexpr int strip_blocks_on_sm(int tile) { return tile > 64 ? 2 : 6; }

// What align_image() makes of an image: lines that begin at vectors. Instructions take 16 k, so
// that behind the last line along k, or the last of those across, there are zeros.
struct AlignedLayout {
    int lines = 0;                  // most
    int pitch = 0;                  // bytes
    int lanes = 0, lanes_log2 = 0;  // of a line, which have eight bytes each
    constexpr int bytes() const { return lines * pitch; }
};
inline AlignedLayout aligned_layout(const ImageLayout& image, std::int64_t outer, std::int64_t k) {
    constexpr int kStep = 16, kEach = 4;
    const std::int64_t whole_k = round_up(k, kStep), whole_outer = round_up(outer, kStep);
    const std::int64_t line = image.along_k ? whole_k : whole_outer;
    AlignedLayout layout;
    layout.lines = static_cast<int>(image.along_k ? whole_outer : whole_k);
    // An odd number of vectors: eight lines lie in different banks.
    layout.pitch = static_cast<int>((line * kStripItem / kVectorBytes | 1) * kVectorBytes);
    layout.lanes = static_cast<int>(line / kEach);
    layout.lanes_log2 = layout.lanes > 16 ? 5 : 4;
    return layout;
}

// Sums of a strip where D is stored by elements, a row behind the other; rows of lanes lie in
// different banks.
constexpr int staged_ld(int tile) { return tile + 4; }

// The shared memory of a block: images of A and B, then both aligned, and in the place of those a
// part for each warp's strip of D.
struct StripsLayout {
    ImageLayout a, b;
    AlignedLayout aligned_a, aligned_b;
    ImageLayout d;  // of a strip, where `has_rows`
    bool has_rows;  // rows of D are contiguous, and C is not read
    int strip_bytes;

    constexpr int image_bytes() const { return a.bytes() + b.bytes(); }
    constexpr int bytes(int tile) const {
        return image_bytes() +
               std::max(aligned_a.bytes() + aligned_b.bytes(), tile / kStripRows * strip_bytes);
    }
};
// `rows`, `cols`: of D that a tile has at most. `d_stride`: from row to row, in elements of
// `d_bytes`.
inline StripsLayout strips_layout(const ImageLayout& a, const ImageLayout& b, int tile,
                                  std::int64_t rows, std::int64_t cols, std::int64_t k,
                                  bool has_rows, std::int64_t d_stride, int d_bytes) {
    StripsLayout layout;
    layout.a = a;
    layout.b = b;
    layout.aligned_a = aligned_layout(a, rows, k);
    // Half of a tile's columns are always multiplied.
    layout.aligned_b = aligned_layout(b, std::max<std::int64_t>(cols, tile / 2), k);
    layout.has_rows = has_rows;
    layout.strip_bytes = kStripRows * staged_ld(tile) * static_cast<int>(sizeof(float));
    if (has_rows) {
        layout.d = whole_k::image_layout(std::min<std::int64_t>(rows, kStripRows), d_stride, cols,
                                         1, d_bytes, 1, false);
        layout.strip_bytes = static_cast<int>(round_up(kStripRows * layout.d.pitch, kVectorBytes)) +
                             2 * kVectorBytes;
    }
    return layout;
}

// Of any layouts and alignments of a tile's operands.
inline int most_strips_bytes(std::int64_t m, std::int64_t n, std::int64_t k, int tile) {
    const std::int64_t rows = std::min<std::int64_t>(m, tile);
    const std::int64_t cols = std::min<std::int64_t>(n, tile);
    int most = 0;
    for (const bool along_a : {false, true}) {
        for (const bool along_b : {false, true}) {
            // Lines that are not merged, and lie amid vectors.
            const auto image = [&](bool along_k, std::int64_t outer) {
                const std::int64_t line = (along_k ? k : outer) + kVectorBytes;
                ImageLayout layout =
                    whole_k::image_layout(outer, along_k ? line : 1, k, along_k ? 1 : line,
                                          kStripItem, kStripItem, false);
                layout.pitch += kVectorBytes;
                return layout;
            };
            const ImageLayout a = image(along_a, rows), b = image(along_b, cols);
            for (const bool has_rows : {false, true}) {  // of D: of floats, amid vectors
                const StripsLayout layout =
                    strips_layout(a, b, tile, rows, cols, k, has_rows, cols + 3, sizeof(float));
                most = std::max(most, layout.bytes(tile));
            }
        }
    }
    return most;
}

// Why a kernel does not compute the problem, whatever its dtypes are; empty: it does.
inline std::string rejects_strips_size(const ValidProblem& problem, const DeviceProperties& device,
                                       int tile) {
    if (problem.batch_invariant()) return competes_in_other_bits();
    const std::string reason = rejects_long_k(problem, whole_k::kMaxK);
    if (!reason.empty()) return reason;
    const int most = most_strips_bytes(problem->m, problem->n, problem->k, tile);
    if (most > device.shared_memory_per_block) {
        return "has " + std::to_string(device.shared_memory_per_block) +
               " bytes of shared memory on this GPU for a tile, which may need " +
               std::to_string(most);
    }
    return whole_k::rejects_tiles(problem, tile);
}

// Fitted to 240 times of 120 products, most of them random, on an H100. Cycles that the schedulers
// of an SM give to a warp of a tile: in any case, for a vector of each lane, and for eight columns
// of D. A warp's own take so many times as long.
inline constexpr double kStripLaunchUs = 2.2;
inline constexpr double kStripCycles = 125, kStripVectorCycles = 50, kStripEightCycles = 27;
inline constexpr double kStripLatency = 9.3;

template <int kTile>
Schedule schedule_strips(const ValidProblem& problem, const DeviceProperties& device) {
    const OperandNeeds its_needs = whole_k::needs(kStripItem);
    const std::int64_t rows = std::min<std::int64_t>(problem->m, kTile);
    const std::int64_t cols = std::min<std::int64_t>(problem->n, kTile);
    const auto image = [&](const Operand& operand, bool packed, std::int64_t outer,
                           std::int64_t outer_stride, std::int64_t k_stride) {
        // Packing leaves whole vectors along K.
        return packed
                   ? whole_k::image_layout(outer, whole_k::kMaxK, problem->k, 1, kStripItem,
                                           kVectorBytes, false)
                   : whole_k::image_of(operand, outer, outer_stride, problem->k, k_stride,
                                       kStripItem, problem->batch_rank, operand.alignment, false);
    };
    const ImageLayout a = image(problem->a, packs_a(problem, its_needs), rows,
                                problem->a.row_stride, problem->a.col_stride);
    const ImageLayout b = image(problem->b, packs_b(problem, its_needs), cols,
                                problem->b.col_stride, problem->b.row_stride);
    const bool has_rows = problem->d.col_stride == 1 && problem->d.dtype != DType::f64;
    const StripsLayout layout = strips_layout(a, b, kTile, rows, cols, problem->k, has_rows,
                                              problem->d.row_stride, size_of(problem->d.dtype));

    const std::int64_t tiles_m = divide_up(problem->m, kTile);
    const std::int64_t tiles_n = divide_up(problem->n, kTile);
    const auto tiles = static_cast<double>(tiles_m * tiles_n * problem.batch_count());
    constexpr int kThreads = strip_threads(kTile);
    const auto vectors =
        static_cast<double>(divide_up(a.vectors(), kThreads) + divide_up(b.vectors(), kThreads));
    const auto eights = static_cast<double>(divide_up(divide_up(problem->n, tiles_n), 8));
    const auto strips = static_cast<double>(divide_up(divide_up(problem->m, tiles_m), kStripRows));
    const double bringing = kStripCycles + kStripVectorCycles * vectors;
    const double storing = kStripEightCycles * eights;
    const double on_sm = std::ceil(tiles / std::max(device.sm_count, 1));
    const auto resident = static_cast<double>(
        whole_k::blocks_on_sm(layout.bytes(kTile), strip_blocks_on_sm(kTile), device));
    const double issue_cycles = on_sm * (kThreads / 32 * bringing + strips * storing);
    const double own_cycles = std::ceil(on_sm / resident) * kStripLatency * (bringing + storing);
    const double busy_us = overlapped(issue_cycles, own_cycles) / clock_mhz(device);
    Schedule schedule;
    schedule.cost_us = kStripLaunchUs +
                       overlapped(busy_us, whole_k::memory_us(problem, kStripItem, device)) +
                       packing_us(problem, device, its_needs);
    return schedule;
}

// Of matrices as large as a tile, bytes: aligned, as images are as large as what is made of them.
constexpr int usual_strips_bytes(int tile) { return 4 * tile * (tile * kStripItem + kVectorBytes); }

// Instantiated in strips.cu.
template <class Element, int kTile>
void launch_strips(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::sm80_mma
