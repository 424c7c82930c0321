// What the part of the family that is compiled once for each instruction set offers to the rest.
//
// Only plain data and function pointers cross this border, and the sources behind it use nothing
// but static functions and templates over their own types: a shared inline function could be linked
// in the version that was compiled for AVX-512, and stop the program on another CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tcgemm/dtype.hpp"

namespace tcgemm::host {

enum class Mode { f32, f16, f16_acc16, bf16, f64, i8, tf32 };
inline constexpr int kModeCount = 7;

// Scales of the rows of A or the columns of B ("lines") of a block; null data: 1. `first` is the
// number of the block's first line, which with `lines_per_scale` says whose scale a line has.
struct LineScales {
    const float* data = nullptr;
    std::int64_t line_stride = 0, k_stride = 0;  // from scale to scale
    std::int64_t first = 0, lines_per_scale = 1;
};

// A matrix by the address of its first element; strides count elements. `scales`: those that differ
// along K, from its first k on, one for each kScaleBlock k.
struct ConstMatrix {
    const void* data;
    std::int64_t row_stride, col_stride;
    DType dtype;
    LineScales scales = {};
};

// The end of a product: D = alpha * acc + beta * C, rounded once to D's dtype. C has that dtype
// too. Where it is `scaled`: in FP32, with acc times scales that do not differ along K, and all of
// it times scale_d.
struct Output {
    void* d;
    const void* c;
    std::int64_t d_row_stride, d_col_stride, c_row_stride, c_col_stride;
    DType dtype;
    double alpha, beta;  // rounded to the accumulator's type before use
    bool scaled = false;
    LineScales scale_a = {}, scale_b = {};
    float scale_d = 1;
    bool saturate = true;  // a D of FP8
};

// The kernels of one mode. They work on accumulators ("lanes": float, double or int32), kept apart
// from D and stored as register tiles: tile_rows x tile_cols values in a row, tiles in row-major
// order, both edges filled up to whole tiles.
//
// The value of an accumulator depends on its row of A, its column of B and K only, never on the
// block it was computed in: blocks of k_block products are summed one after another, and the block
// sums are added in order. That is why neither the number of threads nor the batch changes a bit.
struct ModeKernels {
    int tile_rows, tile_cols;
    int lane_bytes;
    int k_block;        // a multiple of every lane's products
    int column_bytes;   // of k_block elements of a column of B, packed
    bool k_splittable;  // false: products are added to the rounded sum of all before them

    // lanes = A B for a block; `scratch`: scratch_bytes(...) bytes, aligned to 64 like all buffers.
    void (*accumulate)(const ConstMatrix& a, const ConstMatrix& b, std::int64_t rows,
                       std::int64_t cols, std::int64_t k, void* lanes, void* scratch);
    std::size_t (*scratch_bytes)(std::int64_t cols, std::int64_t k);
    // to[i] += from[i]
    void (*add)(void* to, const void* from, std::int64_t count);
    // Stores a block; `lanes` is null for an empty sum (K = 0): D = beta * C.
    void (*finish)(const Output& output, std::int64_t rows, std::int64_t cols, const void* lanes);
};

struct InstructionSet {
    const char* name;
    bool (*supported)();  // by this CPU and its operating system
    ModeKernels modes[kModeCount];
    const ModeKernels& operator[](Mode mode) const { return modes[static_cast<int>(mode)]; }
};

// Null where the compiler does not target it. `generic` is always there.
const InstructionSet* generic_instructions();
const InstructionSet* avx2_instructions();
const InstructionSet* avx512_instructions();

}  // namespace tcgemm::host
