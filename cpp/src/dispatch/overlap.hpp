// Whether two strided operands share memory.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"
#include "problem/valid_problem.hpp"

namespace tcgemm {

// An operand's footprint, relative to its element (0, 0), in bytes.
struct Footprint {
    std::int64_t low = 0, high = 0;  // every byte lies in [low, high)
    std::int64_t width = 0;          // of a run of contiguous bytes
    std::int64_t pitch = 0;  // runs begin at multiples of it (greatest common divisor), or 0
    bool operator==(const Footprint& other) const {
        return low == other.low && high == other.high && width == other.width &&
               pitch == other.pitch;
    }
};
Footprint footprint(const GemmProblem& problem, const Operand& operand, std::int64_t rows,
                    std::int64_t cols, const char* operand_name);

// False only if no byte is shared. Interleaved views of one buffer (the left and the right columns
// of a matrix) are told apart; true may be said of stranger interleavings that share nothing.
bool overlaps(const void* x, const Footprint& fx, const void* y, const Footprint& fy);

}  // namespace tcgemm
