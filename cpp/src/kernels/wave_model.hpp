// How long a row of a table would take, in microseconds: for choosing among the rows and splits.
// Of families whose blocks compute one tile each and leave split products to split_k/.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/split_k/split_choice.hpp"

namespace tcgemm::wave {

// Measured on an H200 with 25 shapes from 64 to 8192 and all splits. Microseconds.
inline constexpr double kLaunchUs = 3.5;
inline constexpr double kReduceUs = 2.5;       // the second launch of a split product,
inline constexpr double kReducePartUs = 0.12;  // for each part, of which it reads eight at once
inline constexpr int kMaxParts = 128;
inline constexpr int kMinPartBlocks = 4;  // k-blocks

// What the model knows of a row; see rows.hpp of the families that use it.
struct RowCost {
    TileConfig tile;
    int blocks_per_sm;
    // Microseconds on an H200: a k-block where the SM is full, divided by the blocks on it, and all
    // that a block does besides its k-blocks.
    double k_block_us, block_us;
    // A k-block takes no less, however few blocks an SM has: with the operands in L2, or in memory.
    double latency_us, far_latency_us;
    DType operand = DType::f16, sum = DType::f32;
    bool halves = false;  // float32 operands, packed in halves (halves.hpp): three products
    double launch_us = kLaunchUs, reduce_us = kReduceUs;
};

inline double cost_us(const RowCost& row, const ValidProblem& problem,
                      const DeviceProperties& device, int parts) {
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const TileConfig& tile = row.tile;
    const double blocks = std::ceil(m / tile.block_m) * std::ceil(n / tile.block_n) * batch * parts;
    const double k_blocks = std::ceil(std::ceil(k / tile.block_k) / parts);

    // On an H200 a k-block takes as long as its bytes (L2 to SM); older tensor cores are slower,
    // and so is their L2, for which small tiles need more bytes.
    const double mhz = clock_mhz(device);
    const double flop = 2.0 * tile.block_m * tile.block_n * tile.block_k * (row.halves ? 3 : 1);
    const double rate =
        row.halves ? halves_rate(device.cc()) : tensor_rate(device.cc(), row.operand);
    const double bytes =
        static_cast<double>(tile.block_m + tile.block_n) * tile.block_k * size_of(row.operand);
    const double clocks = std::max(flop / rate, bytes / l2_rate(device.cc()));
    const double k_block_us = std::max(row.k_block_us, clocks / mhz);
    const double ab_bytes = operand_bytes(problem, size_of(row.operand));
    const bool in_l2 = ab_bytes < static_cast<double>(device.l2_bytes);
    const double latency_us = in_l2 ? row.latency_us : row.far_latency_us;
    const auto wave_us = [&](double resident) {
        return std::max(resident * k_block_us, latency_us) * k_blocks + row.block_us;
    };
    const double on_sm = std::ceil(blocks / std::max(device.sm_count, 1));
    const double busy_us = waves(on_sm, row.blocks_per_sm, wave_us);
    const double d_bytes = stored_bytes(problem, tile.warp_m, tile.warp_n, device);
    const double memory_us = ((in_l2 ? 0 : ab_bytes) + d_bytes) / memory_rate(device);
    double total = row.launch_us + overlapped(busy_us, memory_us);
    if (parts > 1) {
        total += row.reduce_us + kReducePartUs * parts +
                 2.0 * size_of(row.sum) * m * n * batch * parts / kReduceBytesPerUs;
    }
    if (row.halves) total += halves::packing_us(ab_bytes, operand_lines(problem), device);
    return total;
}

inline Schedule schedule_row(const RowCost& row, const ValidProblem& problem,
                             const DeviceProperties& device) {
    // The parts' sums, which many rows pay for, take up to a sixth of what the products take.
    constexpr InvariantSplit kF64Split = {4096, 2048, 32}, kOtherSplit = {16384, 4096, 64};
    // Scales of blocks are no partial result's: they act in the main loop.
    const bool may_split = !problem.has_block_scales();
    const InvariantSplit& split = row.operand == DType::f64 ? kF64Split : kOtherSplit;
    const SplitLimits limits = {divide_up(problem->k, row.tile.block_k), kMinPartBlocks,
                                may_split ? kMaxParts : 1, size_of(row.sum),
                                may_split ? invariant_parts(problem, split) : 1};
    return cheapest_split(problem, limits,
                          [&](int parts) { return cost_us(row, problem, device, parts); });
}

}  // namespace tcgemm::wave
