// Products and a device for the cost models of simt.
#pragma once

#include <cstdint>

#include "problem/valid_problem.hpp"
#include "tcgemm/device.hpp"

namespace simt_test {

// Of row-major float32 matrices.
inline tcgemm::ValidProblem product(std::int64_t m, std::int64_t n, std::int64_t k) {
    using tcgemm::DType, tcgemm::Operand;
    tcgemm::GemmProblem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.a = Operand::row_major(DType::f32, k);
    problem.b = problem.c = problem.d = Operand::row_major(DType::f32, n);
    return tcgemm::ValidProblem::check(problem);
}

inline tcgemm::DeviceProperties h200() {
    tcgemm::DeviceProperties device;
    device.cc_major = 9;
    device.sm_count = 132;
    device.clock_khz = 1980000;
    device.l2_bytes = 50 << 20;
    return device;
}

}  // namespace simt_test
