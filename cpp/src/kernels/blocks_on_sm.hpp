// How many blocks of a kernel an SM holds at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcgemm/device.hpp"

namespace tcgemm {

// An SM has so much more shared memory than a block may have, and keeps it of each for itself.
inline constexpr int kReservedBytes = 1 << 10;

// At most, by the CUDA programming guide's table of compute capabilities.
constexpr int most_blocks_on_sm(int cc) {
    const bool half = cc == 75 || cc == 86 || cc == 87;
    return half ? 16 : cc == 89 || cc >= 120 ? 24 : 32;
}

// Of `shared_bytes`, no more than `most`: A100 has 164 KB of shared memory, GeForce cards 100,
// Turing 64, which hold fewer blocks than the registers.
inline int blocks_on_sm(int shared_bytes, int most, const DeviceProperties& device) {
    const std::int64_t fit =
        (device.shared_memory_per_block + kReservedBytes) / (shared_bytes + kReservedBytes);
    most = std::min(most, most_blocks_on_sm(device.cc()));
    return static_cast<int>(std::clamp<std::int64_t>(fit, 1, most));
}

}  // namespace tcgemm
