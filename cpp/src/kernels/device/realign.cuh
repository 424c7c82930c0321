// Rows that begin at any address, moved in aligned pieces: elements are shifted into place in
// registers.
#pragma once

#include <cstdint>

namespace tcgemm::device {

template <int kWords>
struct alignas(4 * kWords) Words {
    std::uint32_t word[kWords];
};

// The bytes from `shift` on of low and high, as long as one of them. Elements never lie across
// units of their own size, so that shifts are multiples of it.
template <int kElementBytes, int kWords>
__device__ __forceinline__ Words<kWords> realign(const Words<kWords>& low,
                                                 const Words<kWords>& high, unsigned shift) {
    std::uint32_t word[2 * kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
        word[i] = low.word[i];
        word[kWords + i] = high.word[i];
    }
    // Moved by a power of two of words after the other: registers have no index at run time.
#pragma unroll
    for (int by = kWords / 2; by > 0 && 4 * by >= kElementBytes; by /= 2) {
#pragma unroll
        for (int i = 0; i < kWords + by; ++i) {
            word[i] = (shift & 4u * by) != 0 ? word[i + by] : word[i];
        }
    }
    Words<kWords> result;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
        result.word[i] =
            kElementBytes >= 4 ? word[i] : __funnelshift_r(word[i], word[i + 1], 8 * (shift & 3));
    }
    return result;
}

}  // namespace tcgemm::device
