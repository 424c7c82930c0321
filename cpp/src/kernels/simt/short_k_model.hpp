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

// Fitted to 1,165 times of 800 products of four dtypes on an H100, both ways of most of them, then
// to what 1,320 random products lose by the choice on an H200.
inline constexpr double kShortKLaunchUs = 2.1;
inline constexpr double kShortKBlockUs = 0.69;  // of an SM, for each block
inline constexpr double kShortKSetUs = 1.0;     // of blocks at work at once, for each further set
// Cycles of an SM, for each warp that has columns: a value of k, beside its multiply-adds; a line
// of L1; eight rows of D, element by element, where lanes have neighbours and where not.
inline constexpr double kShortKStepCycles = 7.9, kShortKLineCycles = 0.4;
inline constexpr double kElementStoreCycles = 248, kFarStoreCycles = 775;
// Where lanes lie in different sectors of L2, it takes so many in a microsecond; where L1 has no
// room for the lines of B, this share of the elements is read again, of whole lines of a column.
// Columns that lie multiples of 64 bytes apart find half of that room.
inline constexpr double kSectorsPerUs = 69e3, kL1Bytes = 200 << 10, kReadAgain = 0.3;

// What the model knows of a row; see ShortK.
struct ShortKCost {
    int rows, thread_cols, threads;  // of a block; columns of each of its threads
    int resident;                    // blocks that an SM holds
    int steps;                       // values of k in a set
    int element_bytes;
};

// What an element costs of a sector, where lanes lie `step` bytes apart.
inline double sector_share(double step) { return std::min(step / kSectorBytes, 1.0); }

// `problem`: as the kernel computes it.
inline double short_k_us(const ShortKCost& kernel, const ValidProblem& problem,
                         const DeviceProperties& device) {
    const int item = kernel.element_bytes, d_item = static_cast<int>(size_of(problem->d.dtype));
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
    constexpr auto kLineBytes = static_cast<double>(runtime::kLineBytes);
    const double b_step = static_cast<double>(std::abs(b.col_stride)) * item;
    const double lines = kernel.thread_cols * std::clamp(32 * b_step / kLineBytes, 1.0, 32.0);
    const double fma_per_cycle = item == 8 ? fp64_lanes(device.cc()) / 32 : 4;  // instructions
    const double fma_cycles = (rows > 4 ? 8 : 4) * kernel.thread_cols / fma_per_cycle;
    const double k_cycles =
        fma_cycles + kShortKStepCycles + (vectors ? 1 : lines * kShortKLineCycles);

    const auto is_aligned = [&](std::int64_t stride, int elements) {
        const std::int64_t bytes = std::min(elements * d_item, 16);
        return d.alignment >= bytes && stride * d_item % bytes == 0;
    };
    const bool far = d.col_stride != 1;  // columns
    const bool stores_vectors = vectors && !far && is_aligned(d.row_stride, kernel.thread_cols);
    const double store_cycles =
        stores_vectors ? 0 : (far ? kFarStoreCycles : kElementStoreCycles) * rows / kernel.rows;

    const double blocks = ceil_div(m, kernel.rows) * ceil_div(n, block_cols) * batch;
    const double on_sm = ceil_div(blocks, std::max(device.sm_count, 1));
    const double further_sets = ceil_div(k, kernel.steps) - 1;
    const double waves = ceil_div(on_sm, kernel.resident);
    const double waiting_us = kShortKBlockUs * on_sm + kShortKSetUs * further_sets * waves;
    const double issue_us = on_sm * warps * (store_cycles + k * k_cycles) / clock_mhz(device);

    double sectors = 0;
    if (far) {  // half of a block's rows are neighbours of a thread
        const int together = d.row_stride == 1 ? kernel.rows / 2 : 1;
        const bool whole = problem->m % together == 0 && is_aligned(d.col_stride, together);
        const double stores = m * n * batch / (whole ? std::min(together, 16 / d_item) : 1);
        const double d_step = static_cast<double>(std::abs(d.col_stride)) * d_item;
        // Of whole columns that follow each other what fills a sector comes at about the same time.
        const bool follow = d.row_stride == 1 && d.col_stride == problem->m && m <= kernel.rows;
        sectors = follow ? m * n * batch * d_item / kSectorBytes
                         : stores * sector_share(d_step * (vectors ? kernel.thread_cols : 1));
    }
    const double resident_cols = std::min<double>(on_sm, kernel.resident) * cols;
    const double room = std::fmod(b_step, 64) == 0 ? kL1Bytes / 2 : kL1Bytes;
    if (b_step > item && resident_cols * std::min(b_step, kLineBytes) > room) {
        sectors += kReadAgain * ceil_div(m, kernel.rows) * n * k * batch *
                   std::min(b_step / kLineBytes, 1.0);
    }
    const double bytes =
        (m + n) * k * item * batch + stored_bytes(problem, kernel.rows, block_cols, device);
    return kShortKLaunchUs +
           overlapped(std::hypot(issue_us, waiting_us),
                      std::max(bytes / memory_rate(device), sectors / kSectorsPerUs));
}

}  // namespace tcgemm::simt
