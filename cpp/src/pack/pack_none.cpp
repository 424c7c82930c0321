// Stands in for the packing kernels where the library is built without CUDA: no family asks then.
#include "pack/halves.hpp"
#include "pack/pack.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::pack {

void launch(const Task*, int, StreamView) {
    throw DeviceError("this build of tcgemm has no GPU kernels (TCGEMM_CUDA=OFF)");
}
void launch_halves(const HalvesTask&, const HalvesTask&, halves::Report*, StreamView) {
    launch(nullptr, 0, {});
}

}  // namespace tcgemm::pack
