// The kernels behind mma_instructions(), for the two ways in which tensor cores are told to work.
#pragma once

#include "tcgemm/probe.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::probe {

// Cases in device memory: see run_mma().
struct Cases {
    const float *a, *b, *c;
    float* d;
    int count;
};

void launch_mma(Precision precision, const Cases& cases, StreamView stream);    // by warps
void launch_wgmma(Precision precision, const Cases& cases, StreamView stream);  // by warpgroups

}  // namespace tcgemm::probe
