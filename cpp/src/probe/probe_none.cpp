// Of a build without CUDA: no device has tensor cores.
#include "tcgemm/error.hpp"
#include "tcgemm/probe.hpp"

namespace tcgemm {

std::vector<MmaInstruction> mma_instructions(Device device) {
    properties(device);  // throws where there is no such device
    return {};
}

void run_mma(const MmaInstruction&, Device, int, const float*, const float*, const float*, float*) {
    throw UnsupportedError("this build has no code for tensor cores; build it with CUDA");
}

}  // namespace tcgemm
