// What the packing kernel is given: plain data, passed by value to the GPU.
#pragma once

#include <cstdint>

#include "kernels/device/fast_divisor.hpp"
#include "kernels/gemm_args.hpp"

namespace tcgemm::pack {

inline constexpr int kThreads = 256;
inline constexpr int kMaxOperands = 2;  // of one launch: A and B of a product

enum class Path : std::uint8_t {
    aligned_rows,  // inner neighbours are neighbours in the source: see rows.cuh
    rows,          // the same, at any address
    across,        // outer neighbours are neighbours in the source: see across.cuh
    gather,        // any other strides, and those that 32 bits do not hold: see gather.cuh
};

// One operand as (outer, inner): inner elements are neighbours in the target. Strides count
// elements. `tiles` blocks of the grid work on each batch.
struct OperandArgs {
    const void* source = nullptr;
    void* target = nullptr;
    std::int64_t outer = 0, inner = 0;
    std::int64_t source_outer_stride = 0, source_inner_stride = 0;
    std::int64_t target_outer_stride = 0;  // a multiple of 16 bytes
    BatchShape batch;
    std::int64_t source_batch_stride[kMaxBatchDims] = {}, target_batch_stride[kMaxBatchDims] = {};

    Path path = Path::gather;
    std::int64_t tiles = 0;

    // Path::rows: a row is `units` of what a thread moves at once, a tile `tile_units` of them,
    // counted on from row to row. `skip`: bytes from behind a row's last unit to the next row.
    // The last ones may be padding: they repeat the last one that has elements.
    int units = 0, padding_units = 0, source_skip = 0, target_skip = 0;
    int tile_units = 0, last_units = 0;  // last_units: of the last tile
    int last_bytes = 0;                  // of the source, in a row's last unit with elements
    device::FastDivisor by_units;
    std::uint32_t units_inverse = 0;  // 2^31 / units, rounded up

    // Path::across and gather
    std::int64_t tiles_inner = 0;
    bool is_aligned = false;   // across: vectors of the source lie at multiples of their size
    int log_beside = 0;        // across: 2^log_beside threads read a line
    bool along_outer = false;  // neighbouring threads read neighbouring outer: the pass transposes
    std::int64_t step = 0;     // in the source, between the elements of a thread
};

struct KernelArgs {
    OperandArgs operand[kMaxOperands];
    std::int64_t first_tiles = 0, all_tiles = 0;  // of operand[0]; of both; batches counted
};

}  // namespace tcgemm::pack
