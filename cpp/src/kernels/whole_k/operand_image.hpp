// How the part of an operand that a tile needs lies in shared memory: line by line as it lies in
// global memory, so that vectors of 16 bytes bring it whatever its alignment and strides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/math.hpp"
#include "core/runtime.hpp"
#include "kernels/device/fast_divisor.hpp"

namespace tcgemm::whole_k {

inline constexpr int kVectorBytes = 16;

// An operand is seen as (outer, k): outer is m for A and n for B. A line is what is contiguous of
// it. Vectors are aligned; where the operand is not, they begin before a line and end behind it.
struct ImageLayout {
    bool along_k = false;             // lines lie along k
    bool merged = false;              // lines follow each other: they are brought as one
    bool through_l1 = false;          // other tiles, or other lines, read the same lines of L1
    int alignment = 1;                // bytes that all lines begin at multiples of, up to 16
    int lines = 0, line_vectors = 0;  // at most
    int pitch = 0;                    // bytes from a line to the next in shared memory
    std::int64_t line_step = 0;       // and in global memory
    device::FastDivisor by_line;      // a number of vectors into lines

    constexpr int vectors() const { return merged ? line_vectors : lines * line_vectors; }
    constexpr int bytes() const {
        return static_cast<int>(round_up(lines * pitch, kVectorBytes)) + 2 * kVectorBytes;
    }
};

// `outer`, `k`: elements of the tile. Strides in elements; one of them is 1. `alignment`: of all
// tiles' first elements, bytes. `spreads`: lines are read side by side, and lie in different banks.
inline ImageLayout image_layout(std::int64_t outer, std::int64_t outer_stride, std::int64_t k,
                                std::int64_t k_stride, int element_bytes, std::int64_t alignment,
                                bool spreads = true) {
    ImageLayout image;
    image.along_k = k_stride == 1 && (k > 1 || outer_stride != 1);
    image.line_step = (image.along_k ? outer_stride : k_stride) * element_bytes;
    image.lines = static_cast<int>(image.along_k ? outer : k);
    const std::int64_t bytes = (image.along_k ? k : outer) * element_bytes;
    image.alignment =
        static_cast<int>(std::gcd(std::gcd(alignment, image.line_step), kVectorBytes));
    const std::int64_t before = kVectorBytes - image.alignment;  // a line, at most
    image.line_vectors = bytes > 0 ? static_cast<int>(divide_up(before + bytes, kVectorBytes)) : 0;
    image.through_l1 = bytes < runtime::kLineBytes;
    image.merged = image.line_step == bytes && bytes > 0 && image.lines > 1 &&
                   !(spreads && bytes % kVectorBytes == 0);
    if (image.merged) {
        image.line_vectors =
            static_cast<int>(divide_up(before + image.lines * bytes, kVectorBytes));
        image.pitch = static_cast<int>(bytes);
        image.through_l1 = false;
        image.by_line = device::FastDivisor(image.line_vectors);
        return image;
    }
    // Lines lie to the boundaries of vectors as they do in global memory; an odd number of vectors
    // apart, the eight that are read together lie in different banks.
    const std::int64_t rest = (image.line_step % kVectorBytes + kVectorBytes) % kVectorBytes;
    image.pitch = static_cast<int>((image.line_vectors | 1) * kVectorBytes + rest);
    image.by_line = device::FastDivisor(std::max(image.line_vectors, 1));
    return image;
}

// A vector of a part that begins at an address which lies `head` bytes behind a multiple of 16,
// with lines of `line_bytes`. Bytes from that address on, and from the image on.
struct ImageVector {
    std::int64_t from;
    int to;
    bool exists;
};
TCGEMM_HOST_DEVICE ImageVector image_vector(const ImageLayout& image, int head, int line_bytes,
                                            int vector) {
    const int line = static_cast<int>(image.by_line.divide(static_cast<std::uint32_t>(vector)));
    const int line_at = head + line * image.pitch;  // as far into a vector as in global memory
    const int offset = (vector - line * image.line_vectors) * kVectorBytes - line_at % kVectorBytes;
    return {line * image.line_step + offset, line_at + offset, offset < line_bytes};
}

}  // namespace tcgemm::whole_k
