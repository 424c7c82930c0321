#include "kernels/sm70_wmma/cost_model.hpp"

#include <algorithm>
#include <cmath>

namespace tcgemm::sm70_wmma {
namespace {

// Measured on an H200 (1.98 GHz). Microseconds.
constexpr double kBlockUs = 3.0;       // first loads and epilogue of a block
constexpr double kReduceUs = 4.0;      // the second launch of a split product
constexpr double kReduceBytesPerUs = 3e6;  // partial sums, written and read
constexpr int kMaxSplits = 128;
constexpr double kMaxWorkspaceBytes = 256.0 * (1 << 20);

double ceil_div(double a, double b) { return std::ceil(a / b); }

// FLOP of an SM in a microsecond with all its blocks at work: shared memory feeds small warp tiles
// more slowly.
double rate(const TileConfig& tile) {
    return tile.warp_m * tile.warp_n >= 64 * 64 ? 2.35e6 : 1.6e6;
}

double cost_us(const TileConfig& tile, int blocks_per_sm, const ValidProblem& problem,
               const DeviceProperties& device, int splits) {
    const double sms = std::max(device.sm_count, 1);
    const double blocks = ceil_div(static_cast<double>(problem->m), tile.block_m) *
                          ceil_div(static_cast<double>(problem->n), tile.block_n) *
                          static_cast<double>(problem.batch_count()) * splits;
    const double k_blocks =
        ceil_div(ceil_div(static_cast<double>(problem->k), tile.block_k), splits);
    const double flop = 2.0 * tile.block_m * tile.block_n * tile.block_k * k_blocks;
    // A block alone on its SM runs at most twice as fast as with neighbours.
    const double on_sm = ceil_div(blocks, sms);
    const double shared_by = std::min<double>(on_sm, blocks_per_sm);
    const double wave = std::max(flop * shared_by, flop * blocks_per_sm / 2) / rate(tile) + kBlockUs;
    double total = ceil_div(on_sm, blocks_per_sm) * wave;
    if (splits > 1) {
        const double bytes = 8.0 * static_cast<double>(problem->m) *
                             static_cast<double>(problem->n) *
                             static_cast<double>(problem.batch_count()) * splits;
        total += kReduceUs + bytes / kReduceBytesPerUs;
    }
    return total;
}

}  // namespace

Schedule schedule_row(const TileConfig& tile, int blocks_per_sm, const ValidProblem& problem,
                      const DeviceProperties& device) {
    const double part_bytes = 4.0 * static_cast<double>(problem->m) *
                              static_cast<double>((problem->n + 3) / 4 * 4) *
                              static_cast<double>(problem.batch_count());
    Schedule best;
    best.cost_us = cost_us(tile, blocks_per_sm, problem, device, 1);
    for (int splits = 2; splits <= kMaxSplits && part_bytes * splits <= kMaxWorkspaceBytes &&
                         problem->k >= std::int64_t{splits} * 4 * tile.block_k;
         splits += std::max(1, splits / 4)) {
        const double cost = cost_us(tile, blocks_per_sm, problem, device, splits);
        if (cost < 0.95 * best.cost_us) {
            best = {splits, static_cast<std::size_t>(part_bytes) * static_cast<std::size_t>(splits),
                    cost};
        }
    }
    return best;
}

}  // namespace tcgemm::sm70_wmma
