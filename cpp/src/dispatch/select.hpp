// The choice of a kernel: a pure function of problem, device and the TCGEMM_FORCE_* variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dispatch/registry.hpp"

namespace tcgemm {

// Why a kernel can't compute the problem there, whatever it was built for; empty: it can. Of a
// device below its least_cc KernelInfo::rejects is not asked.
std::string rejection(const KernelInfo& kernel, const ValidProblem& problem,
                      const DeviceProperties& device);

// What TCGEMM_FORCE_FAMILY and TCGEMM_FORCE_KERNEL ask for; empty: anything.
struct Forced {
    std::string family, kernel;
    std::uint32_t serial = 0;  // of this pair of values among all that there were
};
// The same object for the same values, so that its address may stand for them. Throws
// InvalidArgument for a name that this build does not have, and for wrong values of the variables
// that only a product on the CPU asks for, so that a call which needs none tells of them as well.
const Forced& forced_by_environment();

struct Choice {
    const RegisteredFamily* family;
    const KernelInfo* kernel;
    Schedule schedule;
    // Of a kernel that not all operands fit (OperandNeeds::halves): the one for those.
    const KernelInfo* fallback = nullptr;
    Schedule fallback_schedule;
    // The form of the problem that this is the choice for, where it is not the problem's own.
    std::optional<ValidProblem> gathered;
};
// The row of least cost in the first family that has one that accepts; of a batch-invariant problem
// the first that accepts a single row of it. Where that row has a fallback that would cost no more,
// the fallback; where a row of a later family competes and costs less, that one. On a GPU the same
// of problem.gathered() where that costs clearly less, with the pass that gathers. Throws
// NoKernelError with every candidate's reason.
Choice select(const ValidProblem& problem, const DeviceProperties& device, const Forced& forced);

}  // namespace tcgemm
