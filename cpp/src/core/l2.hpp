// What L2 is read by, and what lies together in it.
#pragma once

#include <cstdint>

namespace tcgemm {

inline constexpr std::int64_t kSectorBytes = 32, kLineBytes = 128;

}  // namespace tcgemm
