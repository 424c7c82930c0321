// What families share that have kernels for a whole K: which products they take, how much shared
// memory, and how long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/rejects.hpp"
#include "kernels/wave_model.hpp"
#include "kernels/whole_k/operand_image.hpp"

namespace tcgemm::whole_k {

inline constexpr int kMaxK = 128;
inline constexpr std::int64_t kMaxTiles = 1 << 30;
inline constexpr int kSharedBytes = 48 << 10;  // of a block, without an opt-in

// What is known of a kernel before it is launched. A block is a warp.
struct Shape {
    int tile;  // rows and columns of D
    int element_bytes, sum_bytes;
    int blocks_per_sm;
    // For the model: 16 x 16 sums of a warp take so many cycles of an SM for so many k.
    double step_cycles;
    int step_k;
    double sm80_flop_rate;  // FLOP of an SM in a clock, on sm_80; 0: tensor_rate()
};

// Shared memory of a tile: A and B, then the sums on their way to D.
constexpr int stage_bytes(const ImageLayout& a, const ImageLayout& b, const Shape& kernel) {
    const int sums = kernel.tile * (kernel.tile + 4) * kernel.sum_bytes;
    return std::max(a.bytes() + b.bytes(), sums);
}

// Of two aligned tiles whose K is as long as their sides: what kernels are made for.
constexpr int usual_shared_bytes(const Shape& kernel) {
    const int vectors = kernel.tile * kernel.element_bytes / kVectorBytes;
    ImageLayout image;
    image.lines = kernel.tile;
    image.pitch = (vectors | 1) * kVectorBytes;
    return 2 * stage_bytes(image, image, kernel);
}

// Blocks that an SM holds at most, by the CUDA programming guide's table of compute capabilities.
constexpr int most_blocks_on_sm(int cc) {
    const bool half = cc == 75 || cc == 86 || cc == 87;
    return half ? 16 : cc == 89 || cc >= 120 ? 24 : 32;
}

// Blocks of `shared_bytes` that an SM holds at once, no more than `most`. It has 1 KB of shared
// memory more than a block may have, and keeps as much for itself of each.
inline std::int64_t blocks_on_sm(int shared_bytes, int most, const DeviceProperties& device) {
    constexpr std::int64_t kReserved = 1 << 10;
    const std::int64_t fit =
        (device.shared_memory_per_block + kReserved) / (shared_bytes + kReserved);
    return std::clamp<std::int64_t>(fit, 1, std::min(most, most_blocks_on_sm(device.cc())));
}

// Of a tile's part of A (outer: m) or B (n). `View`: Operand or MatrixView; `alignment`: of its
// address, bytes.
template <class View>
ImageLayout image_of(const View& view, std::int64_t outer, std::int64_t outer_stride,
                     std::int64_t k, std::int64_t k_stride, int element_bytes, int batch_rank,
                     std::int64_t alignment, bool spreads = true) {
    for (int dim = 0; dim < batch_rank; ++dim) {
        alignment = std::gcd(alignment, view.batch_stride[dim] * element_bytes);
    }
    return image_layout(outer, outer_stride, k, k_stride, element_bytes, alignment, spreads);
}

inline std::string rejects_many_tiles(const ValidProblem& problem, int tile, int parts = 1) {
    const std::int64_t tiles = parts * divide_up(problem->m, tile) * divide_up(problem->n, tile);
    if (tiles <= kMaxTiles / problem.batch_count()) return {};
    return "counts at most 2^30 tiles, the problem has " + std::to_string(tiles) + " in each of " +
           std::to_string(problem.batch_count()) + " matrices";
}

// Why a kernel does not compute the problem, whatever its dtypes are; empty: it does.
inline std::string rejects_size(const ValidProblem& problem, const Shape& kernel) {
    if (problem.batch_invariant()) {
        return competes_in_other_bits();
    }
    const std::string reason = rejects_long_k(problem, kMaxK);
    if (!reason.empty()) return reason;
    const auto largest = [&](std::int64_t size) {  // however the operand lies
        const auto image = [&](std::int64_t outer_stride, std::int64_t k_stride) {
            ImageLayout layout =
                image_layout(std::min<std::int64_t>(size, kernel.tile), outer_stride, problem->k,
                             k_stride, kernel.element_bytes, 1);
            layout.pitch += kVectorBytes - 1;
            return layout;
        };
        const ImageLayout along_k = image(kMaxK, 1), across_k = image(1, kernel.tile);
        return along_k.bytes() > across_k.bytes() ? along_k : across_k;
    };
    const int most = stage_bytes(largest(problem->m), largest(problem->n), kernel);
    if (2 * most > kSharedBytes) {
        return "has " + std::to_string(kSharedBytes) +
               " bytes of shared memory for two tiles, which may need " + std::to_string(2 * most);
    }
    return rejects_many_tiles(problem, kernel.tile);
}

constexpr OperandNeeds needs(int element_bytes) {
    OperandNeeds needs = {false, element_bytes};
    needs.rounds_to_tf32 = true;
    return needs;
}

// Columns of D that are stored at about the same time, at least: by a block and the next one.
inline constexpr int kLeastStoredColumns = 64;

// Of what must come from memory, and go there: an operand that batches share comes once.
inline double memory_us(const ValidProblem& problem, int tile, int element_bytes,
                        const DeviceProperties& device) {
    const auto bytes = [&](const Operand& operand, std::int64_t rows, std::int64_t cols) {
        return static_cast<double>(rows) * static_cast<double>(cols) * element_bytes *
               distinct_matrices(*problem, operand);
    };
    return (bytes(problem->a, problem->m, problem->k) + bytes(problem->b, problem->k, problem->n) +
            stored_bytes(problem, tile, std::max(tile, kLeastStoredColumns), device)) /
           memory_rate(device);
}

// Fitted to 1,500 times of 12 kernels and 600 products, most of them random, on an H100. Cycles of
// an SM, for each tile: in any case, a vector of each lane, and a store of D.
inline constexpr double kLaunchUs = 1.9;
inline constexpr double kTileCycles = 113, kVectorCycles = 31, kStoreCycles = 12.5;
// So many warps keep an SM busy, of as many as it holds; and of those that there are.
inline constexpr double kBusyWarps = 9.7, kLoneWarps = 6.4;

inline Schedule schedule(const Shape& kernel, const ValidProblem& problem,
                         const DeviceProperties& device) {
    // Packing leaves whole vectors along K.
    const auto image = [&](const Operand& operand, bool packed, std::int64_t outer,
                           std::int64_t outer_stride, std::int64_t k_stride) {
        outer = std::min<std::int64_t>(outer, kernel.tile);
        if (!packed) {
            return image_of(operand, outer, outer_stride, problem->k, k_stride,
                            kernel.element_bytes, problem->batch_rank, operand.alignment);
        }
        return image_layout(outer, kMaxK, problem->k, 1, kernel.element_bytes, kVectorBytes);
    };
    const OperandNeeds its_needs = needs(kernel.element_bytes);
    const ImageLayout a = image(problem->a, packs_a(problem, its_needs), problem->m,
                                problem->a.row_stride, problem->a.col_stride);
    const ImageLayout b = image(problem->b, packs_b(problem, its_needs), problem->n,
                                problem->b.col_stride, problem->b.row_stride);
    const std::int64_t vectors = divide_up(a.vectors(), 32) + divide_up(b.vectors(), 32);
    // Lanes side by side store rows of D, in vectors of 16 bytes of sums where it takes them.
    const int vector = 16 / kernel.sum_bytes;
    const std::int64_t d_bytes = size_of(problem->d.dtype);
    const bool in_vectors =
        problem->d.col_stride == 1 &&
        problem->d.row_stride * d_bytes % std::min<std::int64_t>(vector * d_bytes, 16) == 0;
    const int row_lanes = std::min(kernel.tile / (in_vectors ? vector : 1), 32);
    const std::int64_t stores =
        divide_up(std::min<std::int64_t>(problem->m, kernel.tile), 32 / row_lanes);

    const double tiles = static_cast<double>(divide_up(problem->m, kernel.tile)) *
                         static_cast<double>(divide_up(problem->n, kernel.tile)) *
                         static_cast<double>(problem.batch_count());
    const double squares = kernel.tile / 16 * (kernel.tile / 16);
    const double k_cycles =
        static_cast<double>(divide_up(problem->k, kernel.step_k)) * kernel.step_cycles * squares;
    const double resident = static_cast<double>(
        blocks_on_sm(2 * stage_bytes(a, b, kernel), kernel.blocks_per_sm, device));
    const double on_sm = std::ceil(tiles / std::max(device.sm_count, 1));
    const double issue_cycles = (kTileCycles + kVectorCycles * static_cast<double>(vectors) +
                                 k_cycles + kStoreCycles * static_cast<double>(stores)) *
                                std::max({1.0, kBusyWarps / resident, kLoneWarps / on_sm});
    // Older tensor cores are slower, and so are FP64 units of GeForce cards.
    const double rate = kernel.sm80_flop_rate > 0
                            ? kernel.sm80_flop_rate * (device.cc() <= 80 ? 1 : 2)
                            : tensor_rate(device.cc(), problem.compute_dtype());
    const double flop = 2.0 * kernel.tile * kernel.tile * static_cast<double>(problem->k);
    const double busy_us = on_sm * std::max(issue_cycles, flop / rate) / clock_mhz(device);

    Schedule schedule;
    schedule.cost_us =
        kLaunchUs +
        overlapped(busy_us, memory_us(problem, kernel.tile, kernel.element_bytes, device)) +
        packing_us(problem, device, its_needs);
    return schedule;
}

// Defined in launch.cuh, instantiated in the files of the families.
template <class Math>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream);

template <class Math>
Schedule schedule_of(const ValidProblem& problem, const DeviceProperties& device) {
    return schedule(Math::kShape, problem, device);
}
template <class Math>
constexpr KernelInfo row(const char* name,
                         std::string (*rejects)(const ValidProblem&, const DeviceProperties&)) {
    constexpr Shape kShape = Math::kShape;
    KernelInfo info = {name,
                       {kShape.tile, kShape.tile, kMaxK, kShape.tile, kShape.tile, 32},
                       needs(kShape.element_bytes),
                       rejects,
                       schedule_of<Math>,
                       launch<Math>};
    info.dynamic_shared_bytes = usual_shared_bytes(kShape);
    info.competes = true;
    return info;
}

}  // namespace tcgemm::whole_k
