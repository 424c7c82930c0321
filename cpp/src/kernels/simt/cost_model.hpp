// Which tile and which split of K a product gets: an estimate of its time, in clock cycles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/memory_rate.hpp"

namespace tcgemm::simt {

// What the model knows of a kernel row.
struct KernelCost {
    int block_m = 0, block_n = 0, block_k = 0;  // of a tile
    int resident = 0;                           // blocks that an SM holds
    double multiply_cycles = 0;                 // of an SM for one k-tile, at its multiply-add rate
    double efficiency = 1;                      // of that rate, when the SM is full
    int element_bytes = 0, accumulator_bytes = 0;
    bool splits = false;
};

// Fitted to every float32 kernel and split of 160 products on an H100 (1.98 GHz): 13 % off in the
// mean, the choice 1.7 % slower than the best. Cycles of an SM.
inline constexpr double kCacheLatency = 850;    // a k-tile waits for L2 where a block is alone
inline constexpr double kMemoryLatency = 1330;  // for memory, where A and B do not fit L2
inline constexpr double kBlockCycles = 7500;    // launch, first loads and epilogue of a block
inline constexpr double kReduceCycles = 6500;   // a second launch
inline constexpr double kBytesPerCycle = 26;    // of an SM, to and from memory
inline constexpr int kMaxSplits = 256;
inline constexpr std::int64_t kMinSplitTiles = 8;  // k-tiles
inline constexpr double kMaxWorkspaceBytes = 256.0 * (1 << 20);

inline double clock_mhz(const DeviceProperties& device) {
    return device.clock_khz > 0 ? device.clock_khz / 1000.0 : 1000.0;
}

inline double cycles(const ValidProblem& problem, const DeviceProperties& device,
                     const KernelCost& kernel, std::int64_t splits) {
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double batch = static_cast<double>(problem.batch_count());
    const double sms = std::max(device.sm_count, 1);
    // Volta, Turing and A100 have half as many lanes.
    const double multiply_cycles = kernel.multiply_cycles * (device.cc() <= 80 ? 2 : 1);
    const double blocks = static_cast<double>(divide_up(problem->m, kernel.block_m)) *
                          static_cast<double>(divide_up(problem->n, kernel.block_n)) * batch *
                          static_cast<double>(splits);
    const double k_tiles =
        static_cast<double>(divide_up(divide_up(problem->k, kernel.block_k), splits));
    const double operand_bytes =
        (m + n) * static_cast<double>(problem->k) * batch * kernel.element_bytes;
    const double latency =
        operand_bytes > 0.5 * static_cast<double>(device.l2_bytes) ? kMemoryLatency : kCacheLatency;
    // The busiest SM: full waves of resident blocks, then the rest. Few blocks wait for their
    // loads, many for the multiply-add units.
    const auto wave = [&](double resident) {
        return k_tiles * std::max(resident * multiply_cycles / kernel.efficiency,
                                  latency + multiply_cycles) +
               kBlockCycles;
    };
    const double on_sm = std::ceil(blocks / sms);
    const double waves = std::floor(on_sm / kernel.resident);
    const double rest = on_sm - waves * kernel.resident;
    const double memory_cycles = operand_bytes / memory_rate(device) * clock_mhz(device);
    double total =
        std::max(waves * wave(kernel.resident) + (rest > 0 ? wave(rest) : 0), memory_cycles);
    if (splits > 1) {
        const double bytes =
            2 * m * n * batch * kernel.accumulator_bytes * static_cast<double>(splits);
        total += kReduceCycles + bytes / (kBytesPerCycle * sms);
    }
    return total;
}

inline Schedule best_schedule(const ValidProblem& problem, const DeviceProperties& device,
                              const KernelCost& kernel) {
    const double partial_bytes = static_cast<double>(problem->m) *
                                 static_cast<double>(round_up(problem->n, 4)) *  // see Partials
                                 static_cast<double>(problem.batch_count()) *
                                 kernel.accumulator_bytes;
    const std::int64_t k_tiles = divide_up(problem->k, kernel.block_k);
    double best = cycles(problem, device, kernel, 1);
    std::int64_t best_splits = 1;
    for (std::int64_t splits = 2;
         kernel.splits && splits <= kMaxSplits && k_tiles >= splits * kMinSplitTiles &&
         partial_bytes * static_cast<double>(splits) <= kMaxWorkspaceBytes;
         splits += std::max<std::int64_t>(1, splits / 4)) {
        const double cost = cycles(problem, device, kernel, splits);
        if (cost < 0.99 * best) {
            best = cost;
            best_splits = splits;
        }
    }
    Schedule schedule;
    schedule.split_k = static_cast<int>(best_splits);
    if (best_splits > 1) {
        schedule.workspace_bytes =
            static_cast<std::size_t>(partial_bytes) * static_cast<std::size_t>(best_splits);
    }
    schedule.cost_us = best / clock_mhz(device);
    return schedule;
}

}  // namespace tcgemm::simt
