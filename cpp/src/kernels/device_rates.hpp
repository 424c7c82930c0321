// How fast a device is, for the cost models.
#pragma once

#include <cmath>

#include "tcgemm/device.hpp"
#include "tcgemm/dtype.hpp"

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

// FLOP per clock of an SM's tensor cores with operands of a dtype, as mma.sync reaches them.
// GPUs with few FP64 units (GeForce cards, all of cc 12) multiply FP64 no faster so.
inline double tensor_rate(int cc, DType operand) {
    if (operand == DType::f64) return cc == 80 ? 128 : cc >= 90 && cc < 120 ? 256 : 4;
    const double of_halves = cc >= 90 ? 2650 : cc == 80 ? 2048 : 1024;
    return of_halves * 2 / size_of(operand);  // INT8 and TF32: as many bytes
}

// The same of halves summed in FP32. GeForce cards have half the rate of others then, which their
// properties do not tell, and at that rate three products take about as long as one on CUDA cores:
// what is not known to be a data center's counts as no faster than its CUDA cores, which then win.
inline double halves_rate(int cc) {
    return cc == 80 || cc == 90 ? tensor_rate(cc, DType::f16) : 256;
}

// Bytes per clock that L2 delivers to each SM while all ask, by published microbenchmarks (V100 2.2
// TB/s, T4 1.3, A100 5, RTX 3090 2, RTX 4090 5). On Hopper the rows' own times hold it.
inline double l2_rate(int cc) {
    if (cc >= 90) return 1e6;
    if (cc == 80) return 32;
    return cc < 80 ? 18 : 15;
}

// Bytes per microsecond of the partial sums of a split product, written and read. Measured on an
// H200.
inline constexpr double kReduceBytesPerUs = 3.4e6;

// Of an SM that has `blocks` to compute, `resident` of them at once: full waves, then the rest.
// `wave(count)`: how long so many take together.
template <class Wave>
double waves(double blocks, double resident, const Wave& wave) {
    const double full = std::floor(blocks / resident), rest = blocks - full * resident;
    return full * wave(resident) + (rest > 0 ? wave(rest) : 0.0);
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
