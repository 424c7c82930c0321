// The entry points of the kernels' translation units: all of them that the host knows.
#pragma once

#include "kernels/major.hpp"
#include "kernels/sm90_wgmma/params.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::sm90_wgmma {

// Launches Row's kernel for one pair of layouts. Instantiated in layout_*.cu, k_major_*.cu and
// halves.cu.
template <class Row, Major A, Major B>
void launch_layout(const Params& params, unsigned blocks, StreamView stream);

}  // namespace tcgemm::sm90_wgmma
