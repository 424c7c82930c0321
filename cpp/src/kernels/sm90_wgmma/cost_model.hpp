// How long a row of the table would take, in microseconds: for choosing among the rows and splits.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/math.hpp"
#include "kernels/sm90_wgmma/launch.hpp"

namespace tcgemm::sm90_wgmma {

// Measured on an H200 (schedule_bench).
inline constexpr double kBytesPerUs = 4.2e6;           // of memory
inline constexpr double kSplitUs = 3.0;                // from partial sums to D, besides
inline constexpr double kTripUs = 0.9;                 // 16 loads of a reducer at a time, and
inline constexpr double kSumBytesPerUs = 6e6;          // the bytes of all partial sums
inline constexpr double kStoreUs = 2.3 / (128 * 128);  // an element of a tile, hidden or not
inline constexpr double kElementUs = 9.0 / (128 * 256), kElementsSlow = 1.3;
inline constexpr int kMaxSplits = 132, kMinPartBlocks = 2;
inline constexpr double kMaxWorkspaceBytes = 64.0 * (1 << 20);

// What a split needs and costs.
inline Schedule schedule_with(const RowInfo& row, const ValidProblem& problem,
                              const DeviceProperties& device, int splits) {
    const Arrangement arrangement = arrange(row, problem->m, problem->n, problem->k,
                                            problem.batch_count(), splits, device.sm_count);
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const double sms = std::max(device.sm_count, 1), slots = sms * row.blocks_per_sm;
    const double tiles = static_cast<double>(arrangement.tiles()) * batch * splits;
    const double elements = static_cast<double>(row.tile.block_m) * row.tile.block_n;  // of a tile
    const double k_blocks = std::ceil(static_cast<double>(arrangement.k_blocks) / splits);

    // All slots are at work but in the last wave.
    const double full_waves = std::floor(tiles / slots), rest = tiles - full_waves * slots;
    const double waves = full_waves + (rest > 0 ? 1 : 0);
    const double last_k_block_us = rest > sms ? row.k_block_us : row.k_block_alone_us;
    double busy = full_waves * k_blocks * row.k_block_us +
                  (rest > 0 ? k_blocks * last_k_block_us : 0) + (waves - 1) * row.tile_us;
    const Operand& d = problem->d;
    if (d.alignment < 16 ||
        !is_tensor_matrix(d.dtype, problem->m, problem->n, d.row_stride, d.col_stride)) {
        // Single elements take long, and hold up the other consumer's wgmma where there are two
        // tiles.
        busy = row.ping_pong ? busy * kElementsSlow : busy + waves * elements * kElementUs;
    }
    if (row.ping_pong) {  // two tiles on an SM: none is done before it is stored
        busy = std::max(busy, (waves - 1) * elements * kStoreUs);
    }
    // Several rows (or columns) of tiles read B (or A) at different times: what does not fit into
    // L2 comes from memory again, about every other time.
    const double a_bytes = 2 * m * k * batch, b_bytes = 2 * n * k * batch;
    const bool fits = a_bytes + b_bytes < static_cast<double>(device.l2_bytes);
    const double again_a = fits || arrangement.tiles_n == 1 || full_waves >= 1 ? 1 : 1.5;
    const double again_b = fits || arrangement.clusters_m == 1 || full_waves >= 1 ? 1 : 1.5;
    const double bytes =
        a_bytes * again_a + b_bytes * again_b + size_of(problem->d.dtype) * m * n * batch;
    Schedule schedule;
    schedule.split_k = splits;
    schedule.cost_us = row.start_us + std::max(busy, bytes / kBytesPerUs);
    if (splits > 1) {
        const SplitLayout layout = split_layout(row, arrangement, problem.batch_count(), splits);
        // Of a thread; see SplitK.
        const double loads = static_cast<double>(layout.units) / layout.reducers * splits;
        schedule.workspace_bytes = layout.bytes;
        schedule.cost_us +=
            kSplitUs + std::ceil(loads / 16) * kTripUs + tiles * elements * 4 / kSumBytesPerUs;
    }
    return schedule;
}

// Where a row's bits must not depend on M or the batch: a split for those long K that one block
// would need too long for, whatever M is. It fills the GPU of the measurements with the columns of
// D alone.
inline int invariant_splits(const ValidProblem& problem) {
    constexpr std::int64_t kLongK = 16384, kPart = 2048, kBlocks = 132, kColumns = 64;
    const std::int64_t n = problem.as_given().n;  // as the user sees D
    if (problem->k < kLongK) return 1;
    const std::int64_t blocks = divide_up(n, kColumns);
    return static_cast<int>(
        std::max<std::int64_t>(1, std::min(problem->k / kPart, kBlocks / blocks)));
}

// The split with the least cost.
inline Schedule schedule_row(const RowInfo& row, const ValidProblem& problem,
                             const DeviceProperties& device) {
    if (problem.batch_invariant()) {
        return schedule_with(row, problem, device, invariant_splits(problem));
    }
    Schedule best = schedule_with(row, problem, device, 1);
    for (int splits = 2;
         splits <= kMaxSplits && problem->k >= std::int64_t{splits} * kMinPartBlocks * kBlockK;
         splits += std::max(1, splits / 8)) {
        const Schedule candidate = schedule_with(row, problem, device, splits);
        if (static_cast<double>(candidate.workspace_bytes) > kMaxWorkspaceBytes) break;
        if (candidate.cost_us < best.cost_us) best = candidate;
    }
    return best;
}

}  // namespace tcgemm::sm90_wgmma
