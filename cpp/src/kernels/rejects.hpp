// What predicates of tensor-core families have in common (KernelInfo::rejects).
#pragma once

#include <string>

#include "problem/valid_problem.hpp"

namespace tcgemm {

// Why a kernel that multiplies `multiplies`, accumulates in `accumulates` and has the linear
// epilogue can't compute the problem; empty: it can.
inline std::string rejects_mode(const ValidProblem& problem, DType multiplies,
                                Accumulate accumulates) {
    if (problem.compute_dtype() != multiplies) {
        return std::string("multiplies ") + name(multiplies) + ", the problem asks for " +
               name(problem.compute_dtype());
    }
    if (problem->accumulate != accumulates) {
        return std::string("accumulates in ") + name(accumulates) + ", the problem asks for " +
               name(problem->accumulate);
    }
    if (problem->epilogue != Epilogue::linear) {
        return std::string("has no epilogue ") + name(problem->epilogue);
    }
    return {};
}

}  // namespace tcgemm
