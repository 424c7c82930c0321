// How long a row of the table would take, in microseconds: for choosing among the rows and splits.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/sm90_wgmma/launch.hpp"

namespace tcgemm::sm90_wgmma {

inline constexpr double kLaunchUs = 2.5;  // until the first stage is full, and the last store
inline constexpr double kBlockUsPerFlop = 1.0 / 5.6e6;  // of a k-block, on one SM
inline constexpr double kTileUs = 0.6;                  // epilogue, not hidden
inline constexpr double kLatencyUs = 0.25;              // of a k-block at least, with few at work
inline constexpr double kBytesPerUs = 4.2e6;            // memory
inline constexpr double kSplitUs = 1.5;                 // waiting for the other parts,
inline constexpr double kSumBytesPerUs = 0.1e6;         // and reading them, one SM
inline constexpr int kMaxSplits = 132;
inline constexpr double kMaxWorkspaceBytes = 64.0 * (1 << 20);

inline double cost_us(const TileConfig& tile, bool ping_pong, const ValidProblem& problem,
                      const DeviceProperties& device, int splits) {
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const Arrangement arrangement = arrange(tile, problem->m, problem->n, problem->k, splits);
    const double sms = std::max(device.sm_count, 1);
    const double tiles =
        static_cast<double>((arrangement.tiles_m + arrangement.cluster - 1) / arrangement.cluster *
                            arrangement.cluster * arrangement.tiles_n) *
        batch * splits;
    const double waves = std::ceil(tiles / sms);
    const double k_blocks = std::ceil(static_cast<double>(arrangement.k_blocks) / splits);
    const double flop = 2.0 * tile.block_m * tile.block_n * kBlockK;
    const double block_us = std::max(flop * kBlockUsPerFlop, kLatencyUs / 4);
    const double epilogue_us = kTileUs * tile.block_m * tile.block_n / (128 * 256);
    double busy = waves * k_blocks * block_us;
    busy += ping_pong ? epilogue_us * 2 : waves * epilogue_us * 2;
    const double item = 2;
    const double bytes = batch * (item * k * (m + n) + size_of(problem->d.dtype) * m * n);
    const double memory = bytes / (kBytesPerUs * std::min(1.0, tiles / (0.75 * sms)));
    double total = kLaunchUs + std::max(busy, memory);
    if (splits > 1) {
        double adds = splits - 1;
        if (splits > 8) adds = 2 * std::sqrt(static_cast<double>(splits));
        total += kSplitUs + adds * tile.block_m * tile.block_n * 4.0 / kSumBytesPerUs;
    }
    return total;
}

// The split with the least cost.
inline Schedule schedule_row(const TileConfig& tile, bool ping_pong, const ValidProblem& problem,
                             const DeviceProperties& device) {
    Schedule best;
    best.cost_us = cost_us(tile, ping_pong, problem, device, 1);
    const bool invariant = problem->determinism == Determinism::batch_invariant;
    for (int splits = 2;
         !invariant && splits <= kMaxSplits && problem->k >= std::int64_t{splits} * 2 * kBlockK;
         splits += std::max(1, splits / 8)) {
        const Arrangement arrangement = arrange(tile, problem->m, problem->n, problem->k, splits);
        const std::size_t bytes =
            split_workspace_bytes(tile, arrangement, problem.batch_count(), splits);
        if (static_cast<double>(bytes) > kMaxWorkspaceBytes) break;
        const double cost = cost_us(tile, ping_pong, problem, device, splits);
        if (cost < best.cost_us) best = {splits, bytes, cost};
    }
    return best;
}

}  // namespace tcgemm::sm90_wgmma
