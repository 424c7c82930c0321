// How fast a device is, for the cost models.
#pragma once

#include <cmath>

#include "tcgemm/device.hpp"

namespace tcgemm {

// Bytes per microsecond. Of what memory can deliver, copies reach 7/8 (H200 4.2 of 4.8 TB/s, H100
// 2.93 of 3.35). Where that is not known: an H200, an A100, or a GeForce card.
inline double memory_rate(const DeviceProperties& device) {
    if (device.memory_gb_per_s > 0) return 0.875e3 * device.memory_gb_per_s;
    return device.cc() >= 90 ? 4.2e6 : device.cc() == 80 ? 1.4e6 : 0.85e6;
}

inline double clock_mhz(const DeviceProperties& device) {
    return device.clock_khz > 0 ? device.clock_khz / 1e3 : 1500;
}

// FP64 multiply-adds of an SM in a clock, on its CUDA cores.
inline double fp64_lanes(int cc) {
    if (cc == 70 || cc == 80) return 32;
    return cc >= 90 && cc < 120 ? 64 : 2;
}

// Of two times that overlap: where they are alike, neither hides all of the other.
inline double overlapped(double one, double other) {
    return std::sqrt(std::hypot(one * one, other * other));
}

// The same where they are hidden better, in many short steps.
inline double hidden(double one, double other) {
    return std::sqrt(overlapped(one * one, other * other));
}

}  // namespace tcgemm
