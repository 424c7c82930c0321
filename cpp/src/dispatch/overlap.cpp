#include "dispatch/overlap.hpp"

#include <numeric>

namespace tcgemm {

using std::int64_t;

Footprint footprint(const GemmProblem& problem, const Operand& operand, int64_t rows, int64_t cols,
                    const char* operand_name) {
    const OffsetRange range = offset_range(problem, operand, rows, cols, operand_name);
    const int64_t size = size_of(operand.dtype);
    Footprint result{range.low * size, (range.high + 1) * size, size, 0};
    const auto add_axis = [&](int64_t extent, int64_t stride) {
        if (extent <= 1) return;
        if (result.width == size && stride == 1) {
            result.width = extent * size;
        } else {
            result.pitch = std::gcd(result.pitch, stride * size);
        }
    };
    add_axis(cols, operand.col_stride);
    add_axis(rows, operand.row_stride);
    for (int dim = 0; dim < problem.batch_rank; ++dim) {
        add_axis(problem.batch_shape[dim], operand.batch_stride[dim]);
    }
    return result;
}

bool overlaps(const void* x, const Footprint& fx, const void* y, const Footprint& fy) {
    const int64_t distance = static_cast<const char*>(y) - static_cast<const char*>(x);
    if (fx.high <= distance + fy.low || distance + fy.high <= fx.low) return false;
    // Modulo a pitch that both share, x's runs cover [0, fx.width) and y's begin at `phase`.
    const int64_t pitch = std::gcd(fx.pitch, fy.pitch);
    if (pitch == 0) return true;
    const int64_t phase = ((distance % pitch) + pitch) % pitch;
    return phase < fx.width || phase + fy.width > pitch;
}

}  // namespace tcgemm
