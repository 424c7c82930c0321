// From a product to what a launch hands to its kernel.
#pragma once

#include "kernels/gemm_args.hpp"
#include "kernels/sm90_wgmma/arrangement.hpp"
#include "kernels/sm90_wgmma/params.hpp"

namespace tcgemm::sm90_wgmma {

struct Prepared {
    Params params;
    unsigned blocks;
};
// All that a kernel needs but its code. `sm_count`: of the current device.
Prepared prepare(const RowInfo& row, const GemmArgs& args, const Schedule& schedule,
                 const Majors& majors, int sm_count);

}  // namespace tcgemm::sm90_wgmma
