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

void launch(Precision precision, const Cases& cases, StreamView stream);  // instructions of a warp

}  // namespace tcgemm::probe

// Those of a warpgroup, which have architectures of their own.
namespace tcgemm::probe_wgmma {

void launch(Precision precision, const probe::Cases& cases, StreamView stream);

}  // namespace tcgemm::probe_wgmma
