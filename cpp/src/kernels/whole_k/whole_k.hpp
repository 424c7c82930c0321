// What families share that have kernels for a whole K: which products they take, how much shared
// memory, and how long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "core/l2.hpp"
#include "kernels/blocks_on_sm.hpp"
#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/rejects.hpp"
#include "kernels/whole_k/operand_image.hpp"

namespace tcgemm::whole_k {

inline constexpr int kMaxK = 128;
inline constexpr std::int64_t kMaxTiles = 1 << 30;
inline constexpr int kSharedBytes = 48 << 10;  // of a block, without an opt-in
// Of tiles of long rows: within what every device has.
inline constexpr int kRowsSharedBytes = 62 << 10;

// What is known of a kernel before it is launched. A block is a warp.
struct Shape {
    int rows, cols;  // of D
    int element_bytes, sum_bytes;
    int blocks_per_sm;
    // For the model: 16 x 16 sums of a warp take so many cycles of an SM for so many k.
    double step_cycles;
    int step_k;
    double sm80_flop_rate;  // FLOP of an SM in a clock, on sm_80; 0: tensor_rate()
    // A lane has whole rows of few columns, which it reads in vectors and stores from registers.
    // Otherwise sums go to D through shared memory.
    bool lanes_have_rows = false;
};

// Rows of a tile. Of short rows a lane has several, long ones leave room for more warps on an SM.
constexpr int tile_rows(const Shape& kernel, std::int64_t k) {
    if (!kernel.lanes_have_rows) return kernel.rows;
    const std::int64_t row_bytes = k * kernel.element_bytes;
    return std::min(kernel.rows, 32 * (row_bytes <= 32 ? 4 : row_bytes <= 128 ? 2 : 1));
}
// Shared memory behind the two stages: B as lanes with rows multiply it, more than a column.
constexpr int staged_b_bytes(const Shape& kernel, std::int64_t n, std::int64_t k) {
    if (!kernel.lanes_have_rows || n == 1) return 0;
    return static_cast<int>(k) * kernel.cols * kernel.sum_bytes;
}

constexpr Spread spread_of_a(const Shape& kernel) {
    return kernel.lanes_have_rows ? Spread::swizzle : Spread::padding;
}

// Shared memory of a tile: A and B, then the sums on their way to D.
constexpr int stage_bytes(const ImageLayout& a, const ImageLayout& b, const Shape& kernel) {
    const int sums =
        kernel.lanes_have_rows ? 0 : kernel.rows * (kernel.cols + 4) * kernel.sum_bytes;
    return std::max(a.bytes() + b.bytes(), sums);
}

// Of two aligned tiles whose K is as long as their sides, up to 32: what kernels are made for.
constexpr int usual_shared_bytes(const Shape& kernel) {
    const int side = std::min(kernel.rows, 32);
    ImageLayout a, b;
    a.lines = tile_rows(kernel, side), b.lines = kernel.cols;
    a.pitch = b.pitch = (side * kernel.element_bytes / kVectorBytes | 1) * kVectorBytes;
    return 2 * stage_bytes(a, b, kernel) + staged_b_bytes(kernel, kernel.cols, side);
}

// Of a tile's part of A (outer: m) or B (n). `View`: Operand or MatrixView; `alignment`: of its
// address, bytes.
template <class View>
ImageLayout image_of(const View& view, std::int64_t outer, std::int64_t outer_stride,
                     std::int64_t k, std::int64_t k_stride, int element_bytes, int batch_rank,
                     std::int64_t alignment, Spread spread = Spread::padding) {
    for (int dim = 0; dim < batch_rank; ++dim) {
        alignment = std::gcd(alignment, view.batch_stride[dim] * element_bytes);
    }
    return image_layout(outer, outer_stride, k, k_stride, element_bytes, alignment, spread);
}

inline std::string rejects_many_tiles(const ValidProblem& problem, int rows, int cols,
                                      int parts = 1) {
    const std::int64_t tiles = parts * divide_up(problem->m, rows) * divide_up(problem->n, cols);
    if (tiles <= kMaxTiles / problem.batch_count()) return {};
    return "counts at most 2^30 tiles, the problem has " + std::to_string(tiles) + " in each of " +
           std::to_string(problem.batch_count()) + " matrices";
}

// Of a block, however its operands lie.
inline int most_shared_bytes(const Shape& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto largest = [&](std::int64_t size, int tile) {
        const auto image = [&](std::int64_t outer_stride, std::int64_t k_stride) {
            ImageLayout layout = image_layout(std::min<std::int64_t>(size, tile), outer_stride, k,
                                              k_stride, kernel.element_bytes, 1);
            layout.pitch += kVectorBytes - 1;
            return layout;
        };
        const ImageLayout along_k = image(kMaxK, 1), across_k = image(1, 2 * tile);
        return along_k.bytes() > across_k.bytes() ? along_k : across_k;
    };
    return 2 * stage_bytes(largest(m, tile_rows(kernel, k)), largest(n, kernel.cols), kernel) +
           staged_b_bytes(kernel, n, k);
}

// Why a kernel does not compute the problem, whatever its dtypes are; empty: it does.
inline std::string rejects_size(const ValidProblem& problem, const Shape& kernel) {
    if (problem.batch_invariant()) {
        return competes_in_other_bits();
    }
    const std::string reason = rejects_long_k(problem, kMaxK);
    if (!reason.empty()) return reason;
    const int bytes = most_shared_bytes(kernel, problem->m, problem->n, problem->k);
    const int most_bytes = kernel.lanes_have_rows ? kRowsSharedBytes : kSharedBytes;
    if (bytes > most_bytes) {
        return "has " + std::to_string(most_bytes) +
               " bytes of shared memory for two tiles, which may need " + std::to_string(bytes);
    }
    return rejects_many_tiles(problem, tile_rows(kernel, problem->k), kernel.cols);
}

constexpr OperandNeeds needs(int element_bytes) {
    OperandNeeds needs = {false, element_bytes};
    needs.rounds_to_tf32 = true;
    return needs;
}

// Columns of D that are stored at about the same time, at least: by a block and the next one.
inline constexpr int kLeastStoredColumns = 64;

// Of what must come from memory, and go there: an operand that batches share comes once.
inline double memory_us(const ValidProblem& problem, int tile, int element_bytes,
                        const DeviceProperties& device) {
    return (operand_bytes(problem, element_bytes) +
            stored_bytes(problem, tile, std::max(tile, kLeastStoredColumns), device)) /
           memory_rate(device);
}

// What the model knows of a kernel's tiles, those at the edges aside.
struct Tiles {
    std::int64_t rows, cols;
    ImageLayout a, b;
    double on_sm, resident;  // of an SM: all its tiles, and warps at work at once
};
inline Tiles tiles_of(const Shape& kernel, const ValidProblem& problem,
                      const DeviceProperties& device) {
    const int most_rows = tile_rows(kernel, problem->k);
    Tiles tiles;
    tiles.rows = std::min<std::int64_t>(problem->m, most_rows);
    tiles.cols = std::min<std::int64_t>(problem->n, kernel.cols);
    // Packing leaves whole vectors along K.
    const auto image = [&](const Operand& operand, bool packed, std::int64_t outer,
                           std::int64_t outer_stride, std::int64_t k_stride, Spread spread) {
        if (!packed) {
            return image_of(operand, outer, outer_stride, problem->k, k_stride,
                            kernel.element_bytes, problem->batch_rank, operand.alignment, spread);
        }
        return image_layout(outer, kMaxK, problem->k, 1, kernel.element_bytes, kVectorBytes);
    };
    const OperandNeeds its_needs = needs(kernel.element_bytes);
    tiles.a = image(problem->a, packs_a(problem, its_needs), tiles.rows, problem->a.row_stride,
                    problem->a.col_stride, spread_of_a(kernel));
    tiles.b = image(problem->b, packs_b(problem, its_needs), tiles.cols, problem->b.col_stride,
                    problem->b.row_stride, Spread::padding);
    const double count = static_cast<double>(divide_up(problem->m, most_rows)) *
                         static_cast<double>(divide_up(problem->n, kernel.cols)) *
                         static_cast<double>(problem.batch_count());
    tiles.on_sm = std::ceil(count / std::max(device.sm_count, 1));
    tiles.resident = blocks_on_sm(
        2 * stage_bytes(tiles.a, tiles.b, kernel) + staged_b_bytes(kernel, problem->n, problem->k),
        kernel.blocks_per_sm, device);
    return tiles;
}

// Of `flop` operations on an SM, in cycles. Older tensor cores are slower, and so are FP64 units of
// GeForce cards.
inline double flop_cycles(const Shape& kernel, double flop, const ValidProblem& problem,
                          const DeviceProperties& device) {
    if (kernel.sm80_flop_rate == 0) return flop / tensor_rate(device.cc(), problem.compute_dtype());
    if (kernel.sum_bytes == 8) return flop / (2 * fp64_lanes(device.cc()));
    return flop / (kernel.sm80_flop_rate * (device.cc() <= 80 ? 1 : 2));
}

// Fitted to 1,500 times of 12 kernels and 600 products, most of them random, on an H100. Cycles of
// an SM, for each tile: in any case, a vector of each lane, and a store of D.
inline constexpr double kLaunchUs = 1.7;
inline constexpr double kTileCycles = 113, kVectorCycles = 31, kStoreCycles = 12.5;
// So many warps keep an SM busy, of as many as it holds; and of those that there are.
inline constexpr double kBusyWarps = 9.7, kLoneWarps = 6.4;

inline double squares_us(const Shape& kernel, const ValidProblem& problem,
                         const DeviceProperties& device) {
    const Tiles tiles = tiles_of(kernel, problem, device);
    const std::int64_t vectors =
        divide_up(tiles.a.vectors(), 32) + divide_up(tiles.b.vectors(), 32);
    // Lanes side by side store rows of D, in vectors of 16 bytes of sums where it takes them.
    const int vector = 16 / kernel.sum_bytes;
    const std::int64_t d_bytes = size_of(problem->d.dtype);
    const bool in_vectors =
        problem->d.col_stride == 1 &&
        problem->d.row_stride * d_bytes % std::min<std::int64_t>(vector * d_bytes, 16) == 0;
    const int row_lanes = std::min(kernel.cols / (in_vectors ? vector : 1), 32);
    const std::int64_t stores = divide_up(tiles.rows, 32 / row_lanes);

    const double squares = kernel.rows / 16 * (kernel.cols / 16);
    const double k_cycles =
        static_cast<double>(divide_up(problem->k, kernel.step_k)) * kernel.step_cycles * squares;
    const double issue_cycles =
        (kTileCycles + kVectorCycles * static_cast<double>(vectors) + k_cycles +
         kStoreCycles * static_cast<double>(stores)) *
        std::max({1.0, kBusyWarps / tiles.resident, kLoneWarps / tiles.on_sm});
    const double flop = 2.0 * kernel.rows * kernel.cols * static_cast<double>(problem->k);
    const double busy_us = tiles.on_sm *
                           std::max(issue_cycles, flop_cycles(kernel, flop, problem, device)) /
                           clock_mhz(device);
    return kLaunchUs +
           overlapped(busy_us, memory_us(problem, kernel.rows, kernel.element_bytes, device));
}

// Where lanes have rows. Fitted to 822 times of products of five dtypes, 700 of them random, and to
// batches of 8 x 8 x 8, on an H200, 16 % off (rms). Cycles of an SM, for each tile: in any case; a
// vector of each lane, of lines that are not merged; a row of each lane by up to four columns.
inline constexpr double kRowsLaunchUs = 2.05;
inline constexpr double kRowsTileCycles = 76, kRowsVectorCycles = 9.3, kRowsStoreCycles = 28.6;
// For each k: one column of B, or four; a value of A that a lane reads for these.
inline constexpr double kColumnCycles = 3.8, kColumnsCycles = 8.6, kValueCycles = 0.2;
inline constexpr double kRowsBusyWarps = 7.9, kRowsLoneWarps = 4.5;
// Where lanes store to different sectors of L2, it takes so many in a microsecond.
inline constexpr double kRowsSectorsPerUs = 108e3;

// As a kernel whose lanes have rows computes it.
inline ValidProblem with_more_rows(const ValidProblem& problem) {
    return problem->m < problem->n ? problem.as_transposed() : problem;
}

inline double rows_us(const Shape& kernel, const ValidProblem& problem,
                      const DeviceProperties& device) {
    const Tiles tiles = tiles_of(kernel, problem, device);
    const auto lane_rows = static_cast<double>(divide_up(tiles.rows, 32));
    // A lane multiplies four columns at a time, or a last one.
    constexpr int kTogether = 4;
    const double single = tiles.cols % kTogether == 1 ? 1 : 0;
    const double groups = static_cast<double>(divide_up(tiles.cols, kTogether)) - single;
    const double columns = groups * kTogether + single;
    const bool in_vectors = tiles.a.along_k && tiles.a.alignment == kVectorBytes;
    const double values =
        lane_rows * (in_vectors ? std::max(kernel.element_bytes / 16.0, 0.125) : 1);
    const double k_cycles = single * kColumnCycles + groups * kColumnsCycles +
                            (groups + single) * values * kValueCycles;
    const auto vector_cycles = [](const ImageLayout& image) {
        if (image.merged) return 0.0;
        return kRowsVectorCycles * static_cast<double>(divide_up(image.vectors(), 32));
    };
    const double issue_cycles =
        (kRowsTileCycles + vector_cycles(tiles.a) + vector_cycles(tiles.b) +
         static_cast<double>(problem->k) * k_cycles +
         kRowsStoreCycles * (groups + single) * lane_rows) *
        std::max({1.0, kRowsBusyWarps / tiles.resident, kRowsLoneWarps / tiles.on_sm});
    const double flop = 2 * 32 * lane_rows * columns * static_cast<double>(problem->k);
    const double busy_us = tiles.on_sm *
                           std::max(issue_cycles, flop_cycles(kernel, flop, problem, device)) /
                           clock_mhz(device);

    // Of whole rows that follow each other what fills a sector comes at about the same time.
    const Operand& d = problem->d;
    const auto item = static_cast<double>(size_of(d.dtype));
    const double elements = static_cast<double>(problem->m) * static_cast<double>(problem->n) *
                            static_cast<double>(problem.batch_count());
    const bool follow = d.row_stride == 1 || (d.row_stride == problem->n && d.col_stride == 1 &&
                                              problem->n <= kernel.cols);
    const bool whole = problem->n % kTogether == 0 && d.col_stride == 1 &&
                       d.row_stride % kTogether == 0 && d.alignment >= kTogether * item;
    const double step = static_cast<double>(std::abs(d.row_stride)) * item;
    const double sectors = follow ? elements * item / kSectorBytes
                                  : elements / (whole ? std::min(kTogether * 1.0, 16 / item) : 1) *
                                        std::min(step / kSectorBytes, 1.0);
    const double bytes = operand_bytes(problem, kernel.element_bytes) + elements * item;
    return kRowsLaunchUs +
           std::hypot(busy_us, std::max(bytes / memory_rate(device), sectors / kRowsSectorsPerUs));
}

template <class Math>
Schedule schedule_of(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr Shape kShape = Math::kShape;
    Schedule schedule;
    if (kShape.lanes_have_rows) {
        schedule.transposed = problem->m < problem->n;
        schedule.cost_us = rows_us(kShape, with_more_rows(problem), device);
    } else {
        schedule.cost_us = squares_us(kShape, problem, device);
    }
    schedule.cost_us += packing_us(problem, device, needs(kShape.element_bytes));
    return schedule;
}

// Defined in launch.cuh, instantiated in the files of the families.
template <class Math>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream);

template <class Math>
constexpr KernelInfo row(const char* name,
                         std::string (*rejects)(const ValidProblem&, const DeviceProperties&)) {
    constexpr Shape kShape = Math::kShape;
    KernelInfo info = {name,
                       {kShape.rows, kShape.cols, kMaxK, kShape.rows, kShape.cols, 32},
                       needs(kShape.element_bytes),
                       rejects,
                       schedule_of<Math>,
                       launch<Math>};
    info.dynamic_shared_bytes = usual_shared_bytes(kShape);
    info.competes = true;
    return info;
}

}  // namespace tcgemm::whole_k
