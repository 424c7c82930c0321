#include "problem/footprint.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tcgemm {

using std::int64_t;

std::optional<Footprint> footprint(const Axes& axes, int element_bytes) {
    Footprint result{0, element_bytes, element_bytes, 0};
    for (int i = 0; i < axes.rank; ++i) {
        const auto [extent, stride] = axes.axis[i];
        int64_t step = 0, reach = 0;
        int64_t& side = stride < 0 ? result.low : result.high;
        if (__builtin_mul_overflow(stride, int64_t{element_bytes}, &step) ||
            __builtin_mul_overflow(step, extent - 1, &reach) || reach <= -kMaxSpan ||
            reach >= kMaxSpan) {
            return std::nullopt;
        }
        side += reach;
        if (result.high - result.low > kMaxSpan) return std::nullopt;
        if (step == result.width) {
            result.width *= extent;
        } else {
            result.pitch = std::gcd(result.pitch, step);
        }
    }
    return result;
}

bool overlaps(const void* x, const Footprint& fx, const void* y, const Footprint& fy) {
    if (fx.low == fx.high || fy.low == fy.high) return false;  // no elements
    const int64_t distance = static_cast<const char*>(y) - static_cast<const char*>(x);
    if (fx.high <= distance + fy.low || distance + fy.high <= fx.low) return false;
    // Modulo a pitch that both share, x's runs cover [0, fx.width) and y's begin at `phase`.
    const int64_t pitch = std::gcd(fx.pitch, fy.pitch);
    if (pitch == 0) return true;
    const int64_t phase = ((distance % pitch) + pitch) % pitch;
    return phase < fx.width || phase + fy.width > pitch;
}

std::optional<SelfOverlap> find_self_overlap(Axes axes) {
    for (int i = 0; i < axes.rank; ++i) axes.axis[i].stride = std::abs(axes.axis[i].stride);
    std::sort(axes.axis, axes.axis + axes.rank,
              [](const Axes::Axis& x, const Axes::Axis& y) { return x.stride < y.stride; });
    int64_t reach = 0;  // the largest offset that the axes so far can make
    for (int i = 0; i < axes.rank; ++i) {
        const auto [extent, stride] = axes.axis[i];
        if (stride <= reach) return SelfOverlap{stride, reach};
        reach += (extent - 1) * stride;
    }
    return std::nullopt;
}

}  // namespace tcgemm
