// How long the kernel for few rows and a short K takes, in microseconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/math.hpp"
#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/simt/short_k_loads.hpp"
#include "kernels/wave_model.hpp"

namespace tcgemm::simt {

// Fitted to 100 products of four dtypes on an H200. Of blocks that are at work at once, and in
// addition for each on an SM: from A and the first set of B to D, and each further set.
inline constexpr double kShortKLaunchUs = 2.0;
inline constexpr double kShortKBlockUs = 0.72, kShortKBlockOnSmUs = 0.72;
inline constexpr double kShortKSetUs = 0.82, kShortKSetOnSmUs = 0.22;
// Cycles of an SM, for each warp that has columns: in any case; a value of k, beside its
// multiply-adds; a line of L1; and the store of D, in vectors, and of eight rows where not.
inline constexpr double kShortKWarpCycles = 68, kShortKStepCycles = 7.5, kShortKLineCycles = 0.78;
inline constexpr double kVectorStoreCycles = 30, kElementStoreCycles = 560;

// What the model knows of a row; see ShortK.
struct ShortKCost {
    int rows, thread_cols, threads;  // of a block; columns of each of its threads
    int resident;                    // blocks that an SM holds
    int steps;                       // values of k in a set
    int element_bytes;
};

// `problem`: as the kernel computes it.
inline double short_k_us(const ShortKCost& kernel, const ValidProblem& problem,
                         const DeviceProperties& device) {
    const int item = kernel.element_bytes;
    const int block_cols = kernel.threads * kernel.thread_cols;
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const Operand &b = problem->b, &d = problem->d;
    const bool vectors = loads_of_b(b, problem->n, problem->k, item, kernel.thread_cols,
                                    b.alignment, problem->batch_rank) == LoadsOfB::vectors;
    const double rows = std::min(m, static_cast<double>(kernel.rows));
    const double cols = std::min(n, static_cast<double>(block_cols));
    const double warps =
        std::min(ceil_div(cols, vectors ? 32 * kernel.thread_cols : 32), kernel.threads / 32.0);
    // The lanes of a warp read one by one what is so far apart.
    constexpr double kLineBytes = 128;
    const double warp_bytes = 32.0 * static_cast<double>(std::abs(b.col_stride)) * item;
    const double lines = kernel.thread_cols * std::clamp(warp_bytes / kLineBytes, 1.0, 32.0);
    const double fma_per_cycle = item == 8 ? 2 : 4;  // instructions
    const double fma_cycles = (rows > 4 ? 8 : 4) * kernel.thread_cols / fma_per_cycle;
    const double k_cycles =
        fma_cycles + kShortKStepCycles + (vectors ? 1 : lines * kShortKLineCycles);
    const std::int64_t d_vector = std::min<std::int64_t>(kernel.thread_cols * size_of(d.dtype), 16);
    const bool stores_vectors = vectors && d.col_stride == 1 && d.alignment >= d_vector &&
                                d.row_stride * size_of(d.dtype) % d_vector == 0;
    const double store_cycles =
        stores_vectors ? kVectorStoreCycles : kElementStoreCycles * rows / kernel.rows;
    const double cycles = kShortKWarpCycles + store_cycles + k * k_cycles;

    const double blocks = ceil_div(m, kernel.rows) * ceil_div(n, block_cols) * batch;
    const double on_sm = ceil_div(blocks, std::max(device.sm_count, 1));
    const double waves = std::floor(on_sm / kernel.resident);
    const double sets = ceil_div(k, kernel.steps);
    const auto wave_us = [&](double resident) {
        if (resident == 0) return 0.0;
        return kShortKBlockUs + kShortKBlockOnSmUs * resident +
               (kShortKSetUs + kShortKSetOnSmUs * resident) * (sets - 1);
    };
    const double waiting_us =
        waves * wave_us(kernel.resident) + wave_us(on_sm - waves * kernel.resident);
    const double issue_us = on_sm * warps * cycles / clock_mhz(device);
    const double bytes =
        (m + n) * k * item * batch + stored_bytes(problem, kernel.rows, block_cols, device);
    return kShortKLaunchUs +
           overlapped(std::max(issue_us, waiting_us), bytes / memory_rate(device));
}

}  // namespace tcgemm::simt
