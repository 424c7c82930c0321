// How long the kernel for few rows and a short K takes, in microseconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/math.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/simt/short_k.hpp"
#include "kernels/wave_model.hpp"

namespace tcgemm::simt {

inline constexpr double kShortKLaunchUs = 1.5;
// Of a block: from A and the first set of B to D, and each further set.
inline constexpr double kShortKBlockUs = 2.0, kShortKSetUs = 0.8;
// Cycles of an SM, for each warp that has columns: in any case, a value of k, and the store of D
// where it is in vectors and where not. Multiply-adds are counted besides.
inline constexpr double kShortKWarpCycles = 65, kShortKStepCycles = 3;
inline constexpr double kVectorStoreCycles = 30, kElementStoreCycles = 70;

// `problem`: as the kernel computes it.
template <class Policy>
double short_k_us(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr int kItem = sizeof(typename Policy::Element);
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const Operand &b = problem->b, &d = problem->d;
    const bool vectors = loads_of_b(b, problem->n, problem->k, kItem, Policy::kCols, b.alignment,
                                    problem->batch_rank) == LoadsOfB::vectors;
    const double cols = std::min(n, double{Policy::kBlockCols});
    const double warps =
        std::min(ceil_div(cols, vectors ? 32 * Policy::kCols : 32), double{Policy::kThreads / 32});
    // Lines of L1 that the lanes of a warp read or write together.
    const auto lines = [](std::int64_t stride, int item) {
        constexpr double kLineBytes = 128;
        const double bytes = 32.0 * static_cast<double>(std::abs(stride)) * item;
        return std::clamp(bytes / kLineBytes, 1.0, 32.0);
    };
    const double fma_per_cycle = kItem == 8 ? 2 : 4;  // instructions
    const double fma_cycles = (m > 4 ? 8 : 4) * Policy::kCols / fma_per_cycle;
    const double load_cycles = vectors ? 1 : Policy::kCols * lines(b.col_stride, kItem);
    const double store_cycles =
        vectors && d.col_stride == 1 ? kVectorStoreCycles : kElementStoreCycles;
    const double cycles =
        kShortKWarpCycles + store_cycles + k * (fma_cycles + kShortKStepCycles + load_cycles);
    const double blocks = ceil_div(m, Policy::kRows) * ceil_div(n, Policy::kBlockCols) * batch;
    const double on_sm = ceil_div(blocks, std::max(device.sm_count, 1));
    const double waves = ceil_div(on_sm, Policy::kBlocksPerSm);
    const double sets = ceil_div(k, Policy::kSteps);
    const double busy_us = std::max(on_sm * warps * cycles / clock_mhz(device),
                                    waves * (kShortKBlockUs + kShortKSetUs * (sets - 1)));
    const double bytes = ((m + n) * k * kItem + m * n * size_of(d.dtype)) * batch;
    return kShortKLaunchUs + overlapped(busy_us, bytes / memory_rate(device));
}

}  // namespace tcgemm::simt
