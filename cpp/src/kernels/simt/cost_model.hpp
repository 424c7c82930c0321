// How long a product takes in tiles on CUDA cores, in microseconds, and how it splits K.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/math.hpp"
#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/split_k/split_choice.hpp"

namespace tcgemm::simt {

// What the model knows of a kernel row; see Policy.
struct TileCost {
    int block_m = 0, block_n = 0, block_k = 0;
    int thread_outputs = 0;
    int slices = 1;
    int step_k = 0;              // values of k that a part of K holds whole
    int resident = 0;            // blocks that an SM holds
    int ahead = 1;               // k-tiles on their way while one is multiplied
    bool ends_in_pairs = false;  // the blocks of an SM, see below
    double multiply_cycles = 0;  // of an SM for one k-tile, at its multiply-add rate
    double efficiency = 1;       // of that rate, when the SM is full
    int element_bytes = 0, accumulator_bytes = 0;
    bool splits = false;
};

// Fitted to every float32 kernel and split of 160 products on an H100 (1.98 GHz), the kernel for
// few rows beside them; what D costs, to 1,200 random products; what k-tiles and blocks take, to
// every tile of 1 to 12 blocks an SM and of 79 random FP32 products on an H200.
// Cycles of an SM.
inline constexpr double kKTileCycles = 360;     // of a k-tile, beside the multiplications (a slice)
inline constexpr double kLatencyCycles = 1200;  // from a load of a k-tile to its arrival
inline constexpr double kLaunchCycles = 2000;
inline constexpr double kBlockCycles = 2500;   // of a wave of blocks: first loads,
inline constexpr double kThreadCycles = 100;   // and for each output of a thread, which it stores
inline constexpr double kPlaceCycles = 0.1;    // of an output in a tile, whether D has it or not
inline constexpr double kOutputCycles = 0.1;   // to store an output
inline constexpr double kAcrossD = 6;          // of that, where tiles lie across D's rows
inline constexpr int kStoredColumns = 64;      // together, at most
inline constexpr double kReduceCycles = 8000;  // a second launch
inline constexpr double kBytesPerCycle = 24;   // of an SM, to and from memory
inline constexpr double kRateAlongK = 0.6;     // of memory, for pieces of rows as long as a k-tile
inline constexpr double kMostOfFp64Rate = 0.95;   // where that is what a kernel waits for
inline constexpr int kMaxParts = 256;             // of K
inline constexpr std::int64_t kMinPartTiles = 8;  // k-tiles
// Parts of 1024 add a twentieth to what many rows take, and few rows are several times as fast.
inline constexpr InvariantSplit kInvariantSplit = {2048, 1024, 32};

// Bytes of memory, as if the rate were that of whole rows. `outer`: m of A, n of B.
inline double read_bytes(std::int64_t outer, std::int64_t outer_stride, std::int64_t k,
                         std::int64_t k_stride, int element_bytes) {
    const bool along_k = std::abs(k_stride) < std::abs(outer_stride);
    return static_cast<double>(outer) * static_cast<double>(k) * element_bytes /
           (along_k ? kRateAlongK : 1);
}

inline double tiles_us(const TileCost& kernel, const ValidProblem& problem,
                       const DeviceProperties& device, int parts) {
    const double batch = static_cast<double>(problem.batch_count());
    const double sms = std::max(device.sm_count, 1);
    // Volta, Turing and A100 have half as many lanes as Hopper, GeForce cards hardly any for FP64.
    const double slower = kernel.accumulator_bytes == 8 ? fp64_lanes(90) / fp64_lanes(device.cc())
                          : device.cc() <= 80           ? 2
                                                        : 1;
    // What else there is to do hides behind multiplications that take so long.
    const double efficiency = slower > 2 ? kMostOfFp64Rate : kernel.efficiency;
    const double multiply_cycles = kernel.multiply_cycles * slower / efficiency;
    const double blocks = static_cast<double>(divide_up(problem->m, kernel.block_m)) *
                          static_cast<double>(divide_up(problem->n, kernel.block_n)) * batch *
                          parts;
    const double k_tiles =
        static_cast<double>(divide_up(divide_up(problem->k, kernel.block_k), parts));
    const double outputs =
        static_cast<double>(problem->m) * static_cast<double>(problem->n) * batch;
    const double store_cycles =
        kPlaceCycles * kernel.block_m * kernel.block_n +
        kOutputCycles * (problem->d.col_stride == 1 ? 1 : kAcrossD) * outputs * parts / blocks;
    // The busiest SM: full waves of resident blocks, then the rest. Few blocks wait for their
    // loads, many for the multiply-add units.
    const auto wave = [&](double resident) {
        return k_tiles * std::max(kKTileCycles / kernel.slices + resident * multiply_cycles,
                                  kLatencyCycles / kernel.ahead) +
               kBlockCycles + kThreadCycles * kernel.thread_outputs + resident * store_cycles;
    };
    double on_sm = std::ceil(blocks / sms);
    // Where both blocks of an SM end together, the rest goes to SMs two by two.
    if (kernel.ends_in_pairs && on_sm > kernel.resident) {
        on_sm = std::ceil(on_sm / kernel.resident) * kernel.resident;
    }
    const double busy = kLaunchCycles + waves(on_sm, kernel.resident, wave);
    const double bytes =
        stored_bytes(problem, kernel.block_m, std::min(kernel.block_n, kStoredColumns), device) +
        distinct_matrices(*problem, problem->a) * read_bytes(problem->m, problem->a.row_stride,
                                                             problem->k, problem->a.col_stride,
                                                             kernel.element_bytes) +
        distinct_matrices(*problem, problem->b) * read_bytes(problem->n, problem->b.col_stride,
                                                             problem->k, problem->b.row_stride,
                                                             kernel.element_bytes);
    const double memory = bytes / memory_rate(device) * clock_mhz(device);
    double total = overlapped(busy, memory);
    if (parts > 1) {
        total +=
            kReduceCycles + 2 * outputs * kernel.accumulator_bytes * parts / (kBytesPerCycle * sms);
    }
    return total / clock_mhz(device);
}

inline Schedule tiles_schedule(const TileCost& kernel, const ValidProblem& problem,
                               const DeviceProperties& device) {
    const SplitLimits limits = {
        divide_up(problem->k, kernel.step_k),
        std::max<std::int64_t>(kMinPartTiles * kernel.block_k / kernel.step_k, 1),
        kernel.splits ? kMaxParts : 1, kernel.accumulator_bytes,
        kernel.splits ? invariant_parts(problem, kInvariantSplit) : 1};
    return cheapest_split(problem, limits,
                          [&](int parts) { return tiles_us(kernel, problem, device, parts); });
}

}  // namespace tcgemm::simt
