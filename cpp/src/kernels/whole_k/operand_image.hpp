// How the part of an operand that a tile needs lies in shared memory: line by line as it lies in
// global memory, so that vectors of 16 bytes bring it whatever its alignment and strides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/host_device.hpp"
#include "core/l2.hpp"
#include "core/math.hpp"
#include "kernels/device/fast_divisor.hpp"

namespace tcgemm::whole_k {

inline constexpr int kVectorBytes = 16;

// How lines that are read side by side come to lie in different banks: not at all, an odd number of
// vectors apart, or with their vectors in places that change from line to line.
enum class Spread { none, padding, swizzle };

// An operand is seen as (outer, k): outer is m for A and n for B. A line is what is contiguous of
// it. Vectors are aligned; where the operand is not, they begin before a line and end behind it.
struct ImageLayout {
    bool along_k = false;                  // lines lie along k
    bool merged = false;                   // lines follow each other: they are brought as one
    bool through_l1 = false;               // other tiles, or other lines, read the same lines of L1
    int swizzle = 0, swizzle_shift = 0;    // merged lines: see swizzled()
    int alignment = 1;                     // bytes that all lines begin at multiples of, up to 16
    int lines = 0, line_vectors = 0;       // at most
    int pitch = 0;                         // bytes from a line to the next in shared memory
    std::int64_t line_step = 0;            // and in global memory
    device::FastDivisor by_line;           // a number of vectors into lines
    int step_lines = 0, step_vectors = 0;  // from a thread's vector to its next one

    // Threads bring the vectors in turns.
    void walked_by(int threads) {
        step_lines = threads / std::max(line_vectors, 1);
        step_vectors = threads % std::max(line_vectors, 1);
    }
    // Where a vector lies that would lie at `vector`: the bits that change are those of its line.
    TCGEMM_HOST_DEVICE int flipped(int vector) const { return vector >> swizzle_shift & swizzle; }
    TCGEMM_HOST_DEVICE int swizzled(int vector) const { return vector ^ flipped(vector); }
    // Of a part of `outer` x k elements, no more than the layout's.
    TCGEMM_HOST_DEVICE int lines_of(int outer, int k) const { return along_k ? outer : k; }
    // Bytes of each of its lines; of all, one or more, where they are merged. Lines of an operand
    // that overlaps may begin farther apart than a part's are long, and nothing need lie behind the
    // last one.
    TCGEMM_HOST_DEVICE int line_bytes(int outer, int k, int element_bytes) const {
        const int own = (along_k ? k : outer) * element_bytes;
        return merged ? (lines_of(outer, k) - 1) * pitch + own : own;
    }
    constexpr int vectors() const { return merged ? line_vectors : lines * line_vectors; }
    constexpr int bytes() const {
        return static_cast<int>(round_up(lines * pitch, kVectorBytes)) + 2 * kVectorBytes;
    }
};

// `outer`, `k`: elements of the tile. Strides in elements; one of them is 1. `alignment`: of all
// tiles' first elements, bytes.
inline ImageLayout image_layout(std::int64_t outer, std::int64_t outer_stride, std::int64_t k,
                                std::int64_t k_stride, int element_bytes, std::int64_t alignment,
                                Spread spread = Spread::padding) {
    ImageLayout image;
    image.along_k = k > 0 && k_stride == 1 && (k > 1 || outer_stride != 1);
    image.line_step = (image.along_k ? outer_stride : k_stride) * element_bytes;
    image.lines = static_cast<int>(image.along_k ? outer : k);
    const std::int64_t bytes = (image.along_k ? k : outer) * element_bytes;
    image.alignment =
        static_cast<int>(std::gcd(std::gcd(alignment, image.line_step), kVectorBytes));
    const std::int64_t before = kVectorBytes - image.alignment;  // a line, at most
    image.line_vectors = bytes > 0 ? static_cast<int>(divide_up(before + bytes, kVectorBytes)) : 0;
    image.through_l1 = bytes < kLineBytes;
    // Eight lanes read vectors of eight lines at once, from eight places of a line of banks. Lines
    // across K they read along, and then it does not matter how these lie.
    constexpr std::int64_t kPlaces = 8;
    const std::int64_t vectors = bytes / kVectorBytes;
    const bool whole = bytes % kVectorBytes == 0;
    const bool swizzles = spread == Spread::swizzle && image.along_k && whole &&
                          image.alignment == kVectorBytes && (vectors & (vectors - 1)) == 0;
    const bool meets = spread == Spread::padding || (spread == Spread::swizzle && image.along_k);
    const bool lies_apart = !whole || swizzles || (spread == Spread::swizzle && vectors % 2 == 1);
    image.merged =
        image.line_step == bytes && bytes > 0 && image.lines > 1 && (!meets || lies_apart);
    if (image.merged) {
        if (swizzles) {
            image.swizzle = static_cast<int>(std::min(vectors, kPlaces) - 1);
            for (std::int64_t v = std::max(vectors, kPlaces); v > 1; v /= 2) ++image.swizzle_shift;
        }
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

// A vector of lines that are not merged, of a part that begins at an address which lies `head`
// bytes behind a multiple of 16; bytes from that address on, and from the image on. For registers
// it is cheaper to go from one to the next, where a thread has many.
class ImageWalk {
   public:
    TCGEMM_HOST_DEVICE ImageWalk(const ImageLayout& image, int head, unsigned vector)
        : image_(image),
          line_(static_cast<int>(image.by_line.divide(vector))),
          vector_(static_cast<int>(vector) - line_ * image.line_vectors),
          line_to_(head + line_ * image.pitch),
          line_from_(line_ * image.line_step) {}

    TCGEMM_HOST_DEVICE int line() const { return line_; }
    // As far into a vector as in global memory.
    TCGEMM_HOST_DEVICE int in_line() const {
        return vector_ * kVectorBytes - line_to_ % kVectorBytes;
    }
    TCGEMM_HOST_DEVICE std::int64_t from() const { return line_from_ + in_line(); }
    TCGEMM_HOST_DEVICE int to() const { return line_to_ + in_line(); }
    TCGEMM_HOST_DEVICE void next() {
        vector_ += image_.step_vectors;
        advance(image_.step_lines);
        if (vector_ >= image_.line_vectors) {
            vector_ -= image_.line_vectors;
            advance(1);
        }
    }

   private:
    TCGEMM_HOST_DEVICE void advance(int lines) {
        line_ += lines;
        line_to_ += lines * image_.pitch;
        line_from_ += lines * image_.line_step;
    }

    const ImageLayout& image_;
    int line_, vector_;
    int line_to_;
    std::int64_t line_from_;
};

}  // namespace tcgemm::whole_k
