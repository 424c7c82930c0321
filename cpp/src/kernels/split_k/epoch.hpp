// What flags in a workspace are set to.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/math.hpp"

namespace tcgemm {

// Differs from launch to launch, and from what a workspace may hold otherwise.
inline std::uint64_t next_epoch() {
    static std::atomic<std::uint64_t> counter{
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
    std::uint64_t x = counter.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 27)) | 1;
}

// Bytes of so many flags: what lies behind them is aligned.
constexpr std::int64_t flag_bytes(std::int64_t count) { return round_up(count * 8, 256); }

}  // namespace tcgemm
