// How long the kernel for few rows takes, in microseconds, and how it splits K.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/simt/cost_model.hpp"
#include "kernels/split_k/epoch.hpp"
#include "kernels/split_k/split_choice.hpp"

namespace tcgemm::simt {

// What the model knows of a row; see FewRows.
struct FewRowsCost {
    int rows, cols, block_k;  // of a block
    int resident;             // blocks that an SM holds
    double step_us;           // block_k values of k, on an H200 at 1.98 GHz
    int element_bytes, accumulator_bytes;
};

// Fitted to an H200 with 120 shapes of 1 to 16 rows in four dtypes, two layouts and all splits.
inline constexpr double kFewRowsLaunchUs = 1.03;
inline constexpr double kLeastStep = 0.7;  // of K, however short it is
inline constexpr double kLeastStepUs = 0.75;
inline constexpr double kAlone = 1.2;     // of a step, by itself on its SM, where others are idle
inline constexpr double kCrowded = 0.38;  // more, where no SM is: all wait for memory then
inline constexpr double kAddUs = 1.6;     // of parts of K, in the same launch
// Of a step, where the lanes lie along k, which A's elements of more than two bytes do not.
inline constexpr double kAlongM = 1.2;
inline constexpr double kFewRowsBlockUs[2] = {0.95, 1.5};  // first loads and last sums: 1 row, more

inline double few_rows_us(const FewRowsCost& kernel, const ValidProblem& problem,
                          const DeviceProperties& device, int parts) {
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(problem->k);
    const double batch = static_cast<double>(problem.batch_count());
    const double blocks = std::ceil(m / kernel.rows) * std::ceil(n / kernel.cols) * batch * parts;
    const double steps = std::max(
        k < kernel.block_k ? k / kernel.block_k : std::ceil(std::ceil(k / kernel.block_k) / parts),
        kLeastStep);
    // Volta, Turing and A100 have half as many lanes as Hopper, GeForce cards hardly any for FP64.
    const double mhz = clock_mhz(device);
    const double scaled_us = kernel.step_us * 1980 / mhz * (device.cc() <= 80 ? 2 : 1);
    const double fma = static_cast<double>(kernel.rows) * kernel.cols * kernel.block_k;
    const double fma_us =
        kernel.accumulator_bytes == 8 ? fma / (kMostOfFp64Rate * fp64_lanes(device.cc())) / mhz : 0;
    const double step_us = overlapped(scaled_us, fma_us);
    // A block that is alone waits for its loads.
    const double sms = std::max(device.sm_count, 1);
    const double alone_us =
        std::max(kLeastStepUs, step_us * kAlone) * (1 + kCrowded * std::min(1.0, blocks / sms));
    const auto wave_us = [&](double resident) {
        return std::max(resident * step_us, alone_us) * steps + kFewRowsBlockUs[kernel.rows > 1];
    };
    const double on_sm = std::ceil(blocks / sms);
    const double busy_us = waves(on_sm, kernel.resident, wave_us);
    const double bytes =
        operand_bytes(problem, kernel.element_bytes) + m * n * batch * size_of(problem->d.dtype);
    const double memory_us = bytes / memory_rate(device);
    double total = kFewRowsLaunchUs + overlapped(busy_us, memory_us);
    if (parts > 1) {
        const double sums = 2 * m * n * batch * parts * kernel.accumulator_bytes;
        total += kAddUs + sums / kReduceBytesPerUs;
    }
    return total;
}

// `problem`: as the kernel computes it.
inline Schedule few_rows_schedule(const FewRowsCost& kernel, const ValidProblem& problem,
                                  const DeviceProperties& device) {
    const SplitLimits limits = {divide_up(problem->k, kernel.block_k), 1, kMaxParts,
                                kernel.accumulator_bytes};
    Schedule schedule = cheapest_split(
        problem, limits, [&](int parts) { return few_rows_us(kernel, problem, device, parts); });
    if (schedule.split_k > 1) {
        // For tiles of 32 columns and of 64: an operand that is packed may come to lie otherwise.
        constexpr std::int64_t kLeastCols = 32, kMostCols = 64;
        const std::int64_t slots = divide_up(problem->m, kernel.rows) *
                                   (round_up(problem->n, kMostCols) / kLeastCols) *
                                   problem.batch_count() * schedule.split_k;
        schedule.workspace_bytes = static_cast<std::size_t>(
            flag_bytes(slots) + slots * kernel.rows * kLeastCols * kernel.accumulator_bytes);
    }
    return schedule;
}

}  // namespace tcgemm::simt
