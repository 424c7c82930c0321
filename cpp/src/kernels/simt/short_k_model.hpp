// How long the kernel for few rows and a short K takes, in microseconds.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/math.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/simt/short_k.hpp"
#include "kernels/wave_model.hpp"

namespace tcgemm::simt {

// Measured on an H100.
inline constexpr double kShortKLaunchUs = 1.6;
inline constexpr double kShortKBlockUs = 1.5;    // of a block alone on its SM: A, first B, D
inline constexpr double kShortKSetUs = 0.4;      // each further set of loads
inline constexpr double kShortKWarpCycles = 90;  // of an SM, for each warp
inline constexpr double kElementLoadCycles = 1.2, kElementStoreCycles = 0.6;  // the same

// `problem`: as the kernel computes it.
template <class Policy>
double short_k_us(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr bool kDoubles = sizeof(typename Policy::Acc) == 8;
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const LoadsOfB loads =
        loads_of_b(problem->b, problem->n, problem->k, sizeof(typename Policy::Element),
                   problem->b.alignment, problem->batch_rank);
    const double blocks =
        ceil_div(m, Policy::kRows) * ceil_div(n, double{Policy::kBlockCols}) * batch;
    const bool elements = loads == LoadsOfB::elements;
    const double rows = std::min(m, double{Policy::kRows});
    // Warps that have columns, and columns of a thread of those.
    const double cols = std::min(n, double{Policy::kBlockCols});
    const bool together = loads == LoadsOfB::vectors;
    const double warps = together ? ceil_div(cols, 32 * Policy::kCols)
                                  : std::min(ceil_div(cols, 32), Policy::kThreads / 32.0);
    const double its_cols = together ? Policy::kCols : ceil_div(cols, Policy::kThreads);
    const double fma = (rows > 4 ? 8 : 4) * Policy::kCols * (kDoubles ? 2 : 1);
    const double k_cycles =
        (fma + Policy::kCols) / 4 + (elements ? its_cols * kElementLoadCycles : 1);
    const double store_cycles = rows * its_cols * (together ? 0.3 : kElementStoreCycles);
    const double cycles = warps * (kShortKWarpCycles + k * k_cycles + store_cycles);
    const double mhz = clock_mhz(device);
    const double sets = ceil_div(k, Policy::steps(loads));
    const double alone_us = kShortKBlockUs + kShortKSetUs * (sets - 1);
    const double on_sm = ceil_div(blocks, std::max(device.sm_count, 1));
    const double waves = ceil_div(on_sm, Policy::kBlocksPerSm);
    const double busy_us = std::max(on_sm * cycles / mhz, waves * alone_us);
    const double bytes =
        (m + n) * k * sizeof(typename Policy::Element) + m * n * size_of(problem->d.dtype);
    return kShortKLaunchUs + overlapped(busy_us, bytes * batch / memory_rate(device));
}

}  // namespace tcgemm::simt
