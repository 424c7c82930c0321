// What single instructions of the tensor cores compute: for measuring how they sum and round.
#pragma once

#include <vector>

#include "tcgemm/device.hpp"
#include "tcgemm/dtype.hpp"
#include "tcgemm/export.h"

namespace tcgemm {

// d = c + sum of a[i] * b[i] over `k` elements, by one instruction with an FP32 accumulator.
struct MmaInstruction {
    const char* name;  // "wgmma_fp8_e4m3"
    Precision precision;
    int k;
};

// Those that the device has and this build has code for; none on the CPU. Throws DeviceError for a
// device that does not exist.
TCGEMM_API std::vector<MmaInstruction> mma_instructions(Device device);

// Runs `count` independent cases: d[j] = c[j] + sum over i < k of a[j * k + i] * b[j * k + i]. All
// four are in host memory, a and b of count * k elements, c and d of count; d is written when the
// call returns. Elements are rounded to the precision, except to tf32, which the instruction does
// itself. Throws UnsupportedError for an instruction that the device does not have, OutOfMemory,
// CudaError.
TCGEMM_API void run_mma(const MmaInstruction& instruction, Device device, int count, const float* a,
                        const float* b, const float* c, float* d);

}  // namespace tcgemm
