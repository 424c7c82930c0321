// What a plan packs before its kernel runs.
#pragma once

#include <cstddef>

#include "kernels/kernel_info.hpp"
#include "pack/pack.hpp"
#include "problem/valid_problem.hpp"

namespace tcgemm {

// Without addresses: those come with each run.
BatchShape batch_shape(const GemmProblem& problem);
MatrixView matrix_view(const Operand& operand);

// Where a pass of packing comes from and goes to, but for the addresses.
struct PackStep {
    bool needed = false;
    pack::Task task;
    MatrixView result;  // what the kernel gets
    std::size_t workspace_offset = 0;
};

// Of the problem's A and B for a kernel of this schedule.
struct PackSteps {
    PackStep a, b;
};
PackSteps plan_packing(const ValidProblem& problem, const OperandNeeds& needs,
                       const Schedule& schedule);

}  // namespace tcgemm
