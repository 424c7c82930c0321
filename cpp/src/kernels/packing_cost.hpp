// How long the passes take that a plan packs operands with, in microseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/device_rates.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/operand_form.hpp"
#include "pack/pack.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/device.hpp"

namespace tcgemm {

// What a pass that packs operands moves.
struct PackingWork {
    double bytes = 0;             // read and written, each once
    double transposed_tiles = 0;  // of operands whose neighbours change: through shared memory
};
// Of that pass, its launch included; cpp/benchmarks/pack_bench.cpp measures it.
inline double packing_pass_us(const PackingWork& work, const DeviceProperties& device) {
    constexpr double kPassUs = 1.0, kTransposeUs = 0.8;
    constexpr double kTransposedTileUs = 1.0;  // an SM's
    if (work.bytes == 0) return 0;
    const double tiles_us =
        work.transposed_tiles * kTransposedTileUs / std::max(device.sm_count, 1);
    return kPassUs + (work.transposed_tiles > 0 ? kTransposeUs : 0) +
           std::max(work.bytes / memory_rate(device), tiles_us);
}

// Packed are elements of so many bytes, in this order.
inline void add_packed(PackingWork& work, const GemmProblem& problem, const Operand& operand,
                       std::int64_t rows, std::int64_t cols, double element_bytes,
                       pack::Order order) {
    const double matrices = distinct_matrices(problem, operand);
    work.bytes += static_cast<double>(rows) * static_cast<double>(cols) * matrices *
                  (size_of(operand.dtype) + element_bytes);
    const bool col_major =
        pack::is_packed_col_major(operand.row_stride, operand.col_stride, rows, cols, order);
    const std::int64_t inner = col_major ? rows : cols, outer = col_major ? cols : rows;
    if (inner > 1 && (col_major ? operand.row_stride : operand.col_stride) != 1) {
        work.transposed_tiles += matrices * pack::transposed_tiles(outer, inner, operand.dtype);
    }
}
// Of the passes that a kernel's plan makes.
inline double packing_us(const ValidProblem& problem, const DeviceProperties& device,
                         const OperandNeeds& kernel_needs) {
    const OperandNeeds needs = packed_needs(kernel_needs);
    const bool k_major = needs.k_major_a || needs.k_major_b;  // of what is packed
    const GemmProblem& lies = problem.ungathered();
    PackingWork work;
    const auto add = [&](const Operand& operand, std::int64_t rows, std::int64_t cols,
                         pack::Order order) {
        add_packed(work, lies, operand, rows, cols,
                   size_of(operand_dtype(needs, problem, operand.dtype)), order);
    };
    if (packs_a(problem, needs)) {
        add(lies.a, lies.m, lies.k,
            k_major || problem.is_gathered() ? pack::Order::row : pack::Order::either);
    }
    if (packs_b(problem, needs)) {
        add(lies.b, lies.k, lies.n, k_major ? pack::Order::col : pack::Order::either);
    }
    return packing_pass_us(work, device);
}
// What a gathered problem's A adds where the kernel would take it as it is.
inline double gathering_us(const ValidProblem& problem, const DeviceProperties& device,
                           const OperandNeeds& kernel_needs) {
    const OperandNeeds needs = packed_needs(kernel_needs);
    if (packs_a(problem, needs)) return 0;  // counted
    const GemmProblem& lies = problem.ungathered();
    PackingWork work;
    add_packed(work, lies, lies.a, lies.m, lies.k,
               size_of(operand_dtype(needs, problem, lies.a.dtype)), pack::Order::row);
    return packing_pass_us(work, device);
}

namespace halves {

// How long the packing of so many bytes of operands takes, that have so many rows (columns of B),
// and a fallback that has nothing to do.
inline double packing_us(double bytes, double rows, const DeviceProperties& device) {
    // Measured on Hopper: the launches; the bytes that are read and written, for each byte of the
    // operands; and what an SM needs for eight rows, however short they are.
    constexpr double kUs = 12.0, kPasses = 3.2, kEightRowsUs = 1.2;
    return kUs + overlapped(bytes * kPasses / memory_rate(device),
                            rows / 8 / std::max(device.sm_count, 1) * kEightRowsUs);
}

}  // namespace halves

}  // namespace tcgemm
