// Of a build without code for Hopper, where no device has the instruction.
#include "probe/launch.hpp"

namespace tcgemm::probe {

void launch_wgmma(Precision, const Cases&, StreamView) {}

}  // namespace tcgemm::probe
