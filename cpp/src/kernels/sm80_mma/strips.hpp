// Kernels for a whole K of 16-bit elements, in tiles of 64 x 64 and 128 x 128 whose warps have a
// strip of 16 rows each: which products they take, how much shared memory, and how long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/device_rates.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/split_k/split_choice.hpp"
#include "kernels/whole_k/whole_k.hpp"

namespace tcgemm::sm80_mma {

using whole_k::ImageLayout;
using whole_k::kVectorBytes;
using whole_k::Spread;

inline constexpr int kMaxStripParts = 32;              // of K
inline constexpr int kStripRows = 16, kStripItem = 2;  // kStripItem: bytes of an element
constexpr int strip_threads(int tile) { return tile / kStripRows * 32; }
// By the registers of a thread: so many, so that four schedulers have six warps each, or four.
constexpr int strip_blocks_on_sm(int tile, bool any_k = false) {
    return tile > 64 ? 2 : any_k ? 5 : 6;
}

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
    ImageLayout d;   // of a strip, where `has_lines`; k stands for columns
    bool has_lines;  // rows or columns of D are contiguous, and C is not read
    int strip_bytes;

    constexpr int image_bytes() const { return a.bytes() + b.bytes(); }
    constexpr int bytes(int tile) const {
        return image_bytes() +
               std::max(aligned_a.bytes() + aligned_b.bytes(), tile / kStripRows * strip_bytes);
    }
};
// `rows`, `cols`: of D that a tile has at most. `d`: strides of D in elements of `bytes`; none: it
// is stored by elements.
struct StripsOfD {
    std::int64_t row_stride = 0, col_stride = 0;
    int bytes = 0;
};
template <class View>
StripsOfD strips_of_d(const View& d, bool reads_c) {
    if (reads_c || d.dtype == DType::f64 || (d.row_stride != 1 && d.col_stride != 1)) return {};
    return {d.row_stride, d.col_stride, size_of(d.dtype)};
}
inline StripsLayout strips_layout(const ImageLayout& a, const ImageLayout& b, int tile,
                                  std::int64_t rows, std::int64_t cols, std::int64_t k,
                                  const StripsOfD& d) {
    StripsLayout layout;
    layout.a = a;
    layout.b = b;
    layout.aligned_a = aligned_layout(a, rows, k);
    layout.aligned_b = aligned_layout(b, cols, k);
    layout.has_lines = d.bytes > 0;
    layout.strip_bytes = kStripRows * staged_ld(tile) * static_cast<int>(sizeof(float));
    if (layout.has_lines) {
        layout.d = whole_k::image_layout(std::min<std::int64_t>(rows, kStripRows), d.row_stride,
                                         cols, d.col_stride, d.bytes, 1, Spread::none);
        const int lines = layout.d.along_k ? kStripRows : layout.d.lines;
        layout.strip_bytes =
            static_cast<int>(round_up(lines * layout.d.pitch, kVectorBytes)) + 2 * kVectorBytes;
    }
    return layout;
}

// Of few rows the columns are dealt out to the warps, where kernels have several steps of K.
constexpr bool transposes_strips(std::int64_t m, std::int64_t n, bool any_k) {
    return any_k && m < n;
}
inline ValidProblem with_more_rows(const ValidProblem& problem, bool any_k) {
    return transposes_strips(problem->m, problem->n, any_k) ? problem.as_transposed() : problem;
}

// Of any layouts and alignments of a tile's operands.
inline int most_strips_bytes(std::int64_t m, std::int64_t n, std::int64_t k, int tile,
                             const StripsOfD& d) {
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
                                          kStripItem, kStripItem, Spread::none);
                layout.pitch += kVectorBytes;
                return layout;
            };
            const ImageLayout a = image(along_a, rows), b = image(along_b, cols);
            for (const StripsOfD& its_d : {StripsOfD{}, d}) {  // C may be read, or not
                most = std::max(most, strips_layout(a, b, tile, rows, cols, k, its_d).bytes(tile));
            }
        }
    }
    return most;
}

// Why a kernel does not compute the problem, whatever its dtypes are; empty: it does.
inline std::string rejects_strips_size(const ValidProblem& problem, const DeviceProperties& device,
                                       int tile, bool any_k) {
    if (problem.batch_invariant()) return competes_in_other_bits();
    const std::string reason = any_k ? "" : rejects_long_k(problem, whole_k::kMaxK);
    if (!reason.empty()) return reason;
    const ValidProblem product = with_more_rows(problem, any_k);
    const int most = most_strips_bytes(product->m, product->n,
                                       std::min<std::int64_t>(problem->k, whole_k::kMaxK), tile,
                                       strips_of_d(product->d, false));
    if (most > device.shared_memory_per_block) {
        return "has " + std::to_string(device.shared_memory_per_block) +
               " bytes of shared memory on this GPU for a tile, which may need " +
               std::to_string(most);
    }
    return whole_k::rejects_many_tiles(problem, tile, tile, any_k ? kMaxStripParts : 1);
}

// Fitted to 340 times of 200 products, most of them random, on an H100. Cycles that the schedulers
// of an SM give to a warp of a tile: in any case, for a vector of each lane, and for eight columns
// of D. A warp's own take so many times as long.
inline constexpr double kStripLaunchUs[2] = {1.95, 2.2};  // of one step of K, and of several
inline constexpr double kStripCycles = 125, kStripVectorCycles = 50, kStripEightCycles = 27;
inline constexpr double kStripLatency = 9.3;
// Of several steps of K: what each further one takes of that, for it has no tile to find, and
// multiplies instead of storing; and its own cycles, most of which it waits for memory.
inline constexpr double kStripBringingPart = 0.63, kStripStoringPart = 0.94;
inline constexpr double kStripStepLatency = 5, kStripStepCycles = 2650;
inline constexpr double kStripReduceUs = 3;  // the second launch of a split product

template <int kTile, bool kAnyK>
Schedule schedule_strips(const ValidProblem& as_given, const DeviceProperties& device) {
    const ValidProblem problem = with_more_rows(as_given, kAnyK);
    const OperandNeeds its_needs = whole_k::needs(kStripItem);
    const std::int64_t k = std::min<std::int64_t>(problem->k, whole_k::kMaxK);
    const auto image = [&](const Operand& operand, bool packed, std::int64_t outer,
                           std::int64_t outer_stride, std::int64_t k_stride) {
        outer = std::min<std::int64_t>(outer, kTile);
        // Packing leaves whole vectors along K.
        return packed ? whole_k::image_layout(outer, round_up(problem->k, kVectorBytes), k, 1,
                                              kStripItem, kVectorBytes, Spread::none)
                      : whole_k::image_of(operand, outer, outer_stride, k, k_stride, kStripItem,
                                          problem->batch_rank, operand.alignment, Spread::none);
    };
    const std::int64_t m = problem->m, n = problem->n;
    const ImageLayout a = image(problem->a, packs_a(problem, its_needs), m, problem->a.row_stride,
                                problem->a.col_stride);
    const ImageLayout b = image(problem->b, packs_b(problem, its_needs), n, problem->b.col_stride,
                                problem->b.row_stride);
    const StripsLayout layout =
        strips_layout(a, b, kTile, std::min<std::int64_t>(m, kTile),
                      std::min<std::int64_t>(n, kTile), k, strips_of_d(problem->d, false));

    const std::int64_t tiles_m = divide_up(m, kTile), tiles_n = divide_up(n, kTile);
    const auto tiles = static_cast<double>(tiles_m * tiles_n * problem.batch_count());
    constexpr int kThreads = strip_threads(kTile);
    const auto vectors =
        static_cast<double>(divide_up(a.vectors(), kThreads) + divide_up(b.vectors(), kThreads));
    const auto eights = static_cast<double>(divide_up(divide_up(n, tiles_n), 8));
    const auto strips = static_cast<double>(divide_up(divide_up(m, tiles_m), kStripRows));
    const double resident =
        blocks_on_sm(layout.bytes(kTile), strip_blocks_on_sm(kTile, kAnyK), device);
    SplitLimits limits;
    limits.steps = std::max<std::int64_t>(divide_up(problem->k, whole_k::kMaxK), 1);
    limits.max_parts = kAnyK ? kMaxStripParts : 1;
    const double memory_us = whole_k::memory_us(problem, kTile, kStripItem, device);
    const auto cost_us = [&](int parts) {
        const auto its_steps = static_cast<double>(divide_up(limits.steps, parts));
        const double bringing = (1 + kStripBringingPart * (its_steps - 1)) *
                                (kStripCycles + kStripVectorCycles * vectors);
        const double storing =
            (1 + kStripStoringPart * (its_steps - 1)) * kStripEightCycles * eights;
        const double on_sm = std::ceil(tiles * parts / std::max(device.sm_count, 1));
        const double issue_cycles = on_sm * (kThreads / 32 * bringing + strips * storing);
        const double own_cycles = std::ceil(on_sm / resident) *
                                  (limits.steps > 1 ? kStripStepLatency * (bringing + storing) +
                                                          kStripStepCycles * its_steps
                                                    : kStripLatency * (bringing + storing));
        const double busy_us = overlapped(issue_cycles, own_cycles) / clock_mhz(device);
        const double sums = 2.0 * sizeof(float) * static_cast<double>(m * n) *
                            static_cast<double>(problem.batch_count()) * parts;
        return kStripLaunchUs[kAnyK] + overlapped(busy_us, memory_us) +
               (parts > 1 ? kStripReduceUs + sums / kReduceBytesPerUs : 0);
    };
    Schedule schedule = cheapest_split(problem, limits, cost_us);
    schedule.transposed = transposes_strips(as_given->m, as_given->n, kAnyK);
    schedule.cost_us += packing_us(problem, device, its_needs);
    return schedule;
}

// Of matrices as large as a tile, bytes: aligned, as images are as large as what is made of them.
constexpr int usual_strips_bytes(int tile) { return 4 * tile * (tile * kStripItem + kVectorBytes); }

// Instantiated in strips.cu.
template <class Element, int kTile, bool kAnyK>
void launch_strips(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::sm80_mma
