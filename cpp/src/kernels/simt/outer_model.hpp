// How long the kernel of a short K and many rows and columns takes, in microseconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/simt/outer_tiles.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/device.hpp"

namespace tcgemm::simt {

// Fitted to 740 products of FP32 and FP64 on an H200, 11 % off (rms).
inline constexpr double kOuterLaunchUs = 0.6;
inline constexpr double kOuterBlocksUs = 1.34;  // the begin of the blocks that an SM has at a time
inline constexpr double kOuterBlocksKUs = 0.031;  // for each k of B
// Cycles of a scheduler for each of its warps: for a tile; for 32 columns of D to be stored; for
// steps_k values of k, and their multiply-adds with 32 columns; for a k of A's columns, whose lanes
// lie in different sectors.
inline constexpr double kOuterTileCycles = 134, kOuterStoreCycles = 164;
inline constexpr double kOuterStepCycles = 37, kOuterGroupCycles = 43, kOuterColumnCycles = 3.7;
// Where lanes store to different sectors of L2, it takes so many in a microsecond, of each SM its
// share.
inline constexpr double kOuterSectorsPerUs = 69e3;

// `problem`: as the kernel computes it.
inline double outer_us(const OuterTile& tile, const ValidProblem& problem,
                       const DeviceProperties& device) {
    const Operand& d = problem->d;
    const std::int64_t batch = problem.batch_count();
    std::int64_t d_places = d.row_stride * tile.item;  // or'ed: what all are multiples of
    for (int dim = 0; dim < problem->batch_rank; ++dim) {
        d_places |= d.batch_stride[dim] * tile.item;
    }
    // No alignment above 16 bytes is known: D then counts as aligned to sectors.
    if (d.alignment < 16) d_places |= d.alignment;
    const bool has_rows = d.col_stride == 1;
    const int step =
        has_rows ? outer_column_step(tile, d_places, problem->m, problem->n, batch) : 1;
    const int sms = std::max(device.sm_count, 1);
    const OuterGrid grid(tile, step, problem->m, problem->n, batch, sms);
    const std::int64_t tiles_n = grid.tiles_n;
    const auto on_sm = static_cast<double>(divide_up(grid.blocks, sms));

    // Groups of 32 columns, stored and multiplied, in the mean.
    const int most = tile.cols / 32;
    const auto last =
        static_cast<int>(divide_up(problem->n + step - 1 - (tiles_n - 1) * tile.cols, 32));
    const int multiplied = last <= 2 ? last : most;
    const auto mean = [&](double of_last, double of_others) {
        return (of_last + of_others * static_cast<double>(tiles_n - 1)) /
               static_cast<double>(tiles_n);
    };
    const double groups = mean(last, most);
    const double products = mean(multiplied, most);
    const double k = static_cast<double>(problem->k);
    const bool across_a = problem->a.col_stride != 1 && problem->k > 1;
    const double cycles = kOuterTileCycles + kOuterStoreCycles * groups +
                          (across_a ? kOuterColumnCycles * k : 0) +
                          static_cast<double>(divide_up(problem->k, tile.steps_k)) *
                              (kOuterStepCycles + kOuterGroupCycles * products);
    const double warps_of_scheduler =
        static_cast<double>(std::clamp<std::int64_t>(problem->m, 4, 8)) / 4;
    const double busy_us =
        std::ceil(on_sm / tile.blocks_per_sm) * (kOuterBlocksUs + kOuterBlocksKUs * k) +
        on_sm * static_cast<double>(grid.tiles_of_block) * warps_of_scheduler * cycles /
            clock_mhz(device);
    const double outputs = static_cast<double>(problem->m) * static_cast<double>(problem->n) *
                           static_cast<double>(batch);
    const double operands =
        static_cast<double>(problem->m + problem->n) * k * static_cast<double>(batch);
    double memory_us = (outputs + operands) * tile.item / memory_rate(device);
    // Where rows of D are not contiguous each element goes to a sector of its own.
    if (!has_rows) {
        const double of_block = static_cast<double>(
            std::min(problem->m, grid.tiles_of_block * std::int64_t{tile.rows}) *
            std::min<std::int64_t>(problem->n, tile.cols));
        memory_us = std::max(memory_us, on_sm * of_block * sms / kOuterSectorsPerUs);
    }
    return kOuterLaunchUs + overlapped(busy_us, memory_us);
}

}  // namespace tcgemm::simt
