// Where the elements of a strided array lie: how far they span, and what shares memory. The Python
// bindings compile it too.
#pragma once

#include <cstdint>
#include <optional>

#include "tcgemm/problem.hpp"

namespace tcgemm {

// The dimensions that are walked: those of extent 1 are left out.
struct Axes {
    struct Axis {
        std::int64_t extent, stride;  // elements
    };
    Axis axis[kMaxBatchDims + 2];
    int rank = 0;
    void add(std::int64_t extent, std::int64_t stride) {
        if (extent > 1) axis[rank++] = {extent, stride};
    }
};

// Bytes, relative to the element of index 0.
struct Footprint {
    std::int64_t low = 0, high = 0;  // every byte lies in [low, high)
    std::int64_t width = 0;          // of a run of contiguous bytes
    std::int64_t pitch = 0;  // runs begin at multiples of it (greatest common divisor), or 0
    bool operator==(const Footprint& other) const {
        return low == other.low && high == other.high && width == other.width &&
               pitch == other.pitch;
    }
};

// Addresses have fewer bits, and sums and differences of two spans do not overflow.
inline constexpr std::int64_t kMaxSpan = std::int64_t{1} << 62;  // bytes

// Contiguous axes come first. Nothing: it spans more than kMaxSpan.
std::optional<Footprint> footprint(const Axes& axes, int element_bytes);

// False only if no byte is shared. Interleaved views of one buffer (the left and the right columns
// of a matrix) are told apart; true may be said of stranger interleavings that share nothing.
bool overlaps(const void* x, const Footprint& fx, const void* y, const Footprint& fy);

// Two elements may share an address: `stride` is no more than what smaller ones reach.
struct SelfOverlap {
    std::int64_t stride, reach;
};
// Of an array that has a footprint. Nothing: all elements lie apart. Exact but for interlocking
// strides, of which it says that they overlap.
std::optional<SelfOverlap> find_self_overlap(Axes axes);

}  // namespace tcgemm
