// Of a build without code for Hopper, where no device has the instruction.
#include "probe/launch.hpp"

namespace tcgemm::probe_wgmma {

void launch(Precision, const probe::Cases&, StreamView) {}

}  // namespace tcgemm::probe_wgmma
