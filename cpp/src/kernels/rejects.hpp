// What predicates of families have in common (KernelInfo::rejects).
#pragma once

#include <string>

#include "core/math.hpp"
#include "kernels/kernel_info.hpp"

namespace tcgemm {

// The longest K of which sums in FP32 keep what promoted ones promise (docs/numerics.md).
inline std::int64_t longest_as_promoted(Precision precision) {
    if (is_fp8(precision)) return 65536;            // 3 K 2^-24 are 1.2e-2 of 1.7e-2
    if (precision == Precision::fp32) return 1024;  // 2 sqrt K 2^-24 are 64 2^-24
    return 256;                                     // so are (0.2 K + 8) 2^-24
}

// Whether sums made as `has` says keep the promise of what the problem asks for: those in FP32 are
// better than fast and than FP16's, and where K is short as good as promoted. (But for the sign of
// 0: bits that M chooses are not for batch-invariant products.)
inline bool keeps(Accumulate has, const ValidProblem& problem, const DeviceProperties& device) {
    const Accumulate asked = problem->accumulate;
    if (has == asked) return true;
    if (asked == Accumulate::fast) return has == Accumulate::fp32 || has == Accumulate::promoted;
    if (problem.batch_invariant()) return false;
    // What promoted sums have at first, which Hopper's kernels move on after 128 k.
    if (has == Accumulate::fast) {
        return asked == Accumulate::promoted && problem->k <= 128 && device.cc() == 90;
    }
    if (has != Accumulate::fp32) return false;
    // Elsewhere FP16 sums may be twice as fast, which the cost models do not know.
    if (asked == Accumulate::fp16) return device.cc() == 80 || device.cc() == 90;
    return asked == Accumulate::promoted && problem->k <= longest_as_promoted(problem->precision);
}

// Tiles of a matrix are counted in 31 bits (TileScheduler). Empty: there are no more.
inline std::string rejects_tiles(const ValidProblem& problem, const TileConfig& tile) {
    const std::int64_t tiles_m = divide_up(problem->m, tile.block_m);
    const std::int64_t tiles_n = divide_up(problem->n, tile.block_n);
    if (tiles_m * tiles_n <= 0x7fffffff) return {};
    return "counts at most 2^31 - 1 tiles a matrix, the problem has " + std::to_string(tiles_m) +
           " x " + std::to_string(tiles_n);
}

// And k-blocks, with as many behind the last one as a kernel loads ahead.
inline std::string rejects_k_blocks(const ValidProblem& problem, int block_k, int ahead = 0) {
    if (problem->k / block_k < 0x7fffffff - ahead) return {};
    return "counts at most 2^31 - 1 k-blocks of " + std::to_string(block_k) +
           ", the problem has K = " + std::to_string(problem->k);
}

// Why a kernel that gets A and B in `multiplies`, accumulates in `accumulates` and has `epilogue`
// can't compute the problem; empty: it can. FP8 operands may come as float16, which holds them: a
// kernel that takes them as they are says so in its needs (OperandNeeds::fp8), and asks
// problem->precision besides. So does one that multiplies float32 by halves, or rounded to TF32.
inline std::string rejects_mode(const ValidProblem& problem, const DeviceProperties& device,
                                DType multiplies, Accumulate accumulates,
                                Epilogue epilogue = Epilogue::linear) {
    if (problem.compute_dtype() != multiplies) {
        return std::string("multiplies ") + name(multiplies) + ", the problem asks for " +
               name(problem.compute_dtype());
    }
    if (!keeps(accumulates, problem, device)) {
        return std::string("accumulates in ") + name(accumulates) + ", the problem asks for " +
               name(problem->accumulate);
    }
    if (problem.epilogue() != epilogue) {
        return std::string("has the epilogue ") + name(epilogue) + ", the problem asks for " +
               name(problem.epilogue());
    }
    return {};
}

// Kernels for a short K.
inline std::string rejects_long_k(const ValidProblem& problem, std::int64_t most) {
    if (problem->k <= most) return {};
    return "takes K up to " + std::to_string(most) +
           ", the problem has K = " + std::to_string(problem->k);
}

// What a kernel says of a batch-invariant problem that it is chosen for by its cost.
inline std::string competes_in_other_bits() {
    return "is chosen by cost among kernels that give other bits, which determinism "
           "batch_invariant rules out";
}

// What a kernel says that multiplies others than the problem has.
inline std::string multiplies_others(const ValidProblem& problem, const char* a, const char* b) {
    return std::string("multiplies ") + a + " by " + b + ", the problem asks for precision " +
           name(problem->precision) + " of " + name(problem->a.dtype) + " and " +
           name(problem->b.dtype);
}
// And one whose sums have other bits than those that a batch-invariant product gets elsewhere.
inline std::string sums_otherwise(Accumulate accumulates) {
    return std::string("accumulates in ") + name(accumulates) +
           ", where others that do what the problem asks for give other bits";
}
// Whether it asks for FP8 of these two formats.
inline bool is_fp8_of(const ValidProblem& problem, DType a, DType b) {
    return is_fp8(problem->precision) && problem->a.dtype == a && problem->b.dtype == b;
}

// As rejects_mode(), of a kernel that takes float32 operands in halves (halves.hpp), whose sums
// keep what FP32 promises, promoted or not.
inline std::string rejects_halves_mode(const ValidProblem& problem,
                                       const DeviceProperties& device) {
    if (problem->precision != Precision::fp32) {
        return multiplies_others(problem, "float32", "float32 in halves");
    }
    if (problem.batch_invariant()) {
        return "leaves a product to CUDA cores if any row of A does not fit halves, so that a row "
               "depends on others, which determinism batch_invariant rules out";
    }
    const bool is_promoted = problem->accumulate == Accumulate::promoted;
    return rejects_mode(problem, device, DType::f32,
                        is_promoted ? Accumulate::promoted : Accumulate::fp32);
}

}  // namespace tcgemm
