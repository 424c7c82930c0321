// The modes of sm90_wgmma for 16-bit elements, and products to schedule. A build without code for
// Hopper has no such rows and nothing to test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "dispatch/registry.hpp"

namespace sm90_test {

using namespace tcgemm;

inline DeviceProperties h200(int sm_count = 132) {
    DeviceProperties device;
    device.device = Device::cuda(0);
    device.name = "H200";
    device.cc_major = 9;
    device.sm_count = sm_count;
    device.clock_khz = 1980000;
    device.l2_bytes = 60 << 20;
    return device;
}

struct Shape {
    std::int64_t m, n, k, batch = 1;
};

// A mode of 16-bit elements and the rows that take it.
struct Mode {
    DType dtype;
    Accumulate accumulate;
    std::vector<const KernelInfo*> rows;
};

// Row-major operands and a B for all batches; transposed: column-major ones and an A for all. Both
// are what could be computed as one product with more rows (or columns).
inline ValidProblem problem(const Mode& mode, const Shape& shape,
                            Determinism determinism = Determinism::run_to_run,
                            bool transposed = false) {
    GemmProblem p;
    p.m = shape.m;
    p.n = shape.n;
    p.k = shape.k;
    p.accumulate = mode.accumulate;
    p.determinism = determinism;
    const auto operand = [&](std::int64_t rows, std::int64_t cols) {
        return transposed ? Operand::col_major(mode.dtype, std::max<std::int64_t>(rows, 1))
                          : Operand::row_major(mode.dtype, std::max<std::int64_t>(cols, 1));
    };
    p.a = operand(shape.m, shape.k);
    p.b = operand(shape.k, shape.n);
    p.c = p.d = operand(shape.m, shape.n);
    if (shape.batch > 1) {
        p.batch_rank = 1;
        p.batch_shape[0] = shape.batch;
        (transposed ? p.b : p.a).batch_stride[0] = shape.k * (transposed ? shape.n : shape.m);
        p.c.batch_stride[0] = p.d.batch_stride[0] = shape.m * shape.n;
    }
    return ValidProblem::check(p);
}

inline std::vector<Mode> modes() {
    std::vector<Mode> all;
    for (const RegisteredFamily& family : registered_families()) {
        if (std::string(family.name) != "sm90_wgmma") continue;
        for (const DType dtype : {DType::f16, DType::bf16}) {
            for (const auto accumulate :
                 {Accumulate::fp32, Accumulate::fp16, Accumulate::promoted}) {
                if (dtype == DType::bf16 && accumulate == Accumulate::fp16) continue;
                Mode mode{dtype, accumulate, {}};
                // Its own rows alone take a batch-invariant product; others may serve, too.
                const ValidProblem any = problem(mode, {64, 64, 64}, Determinism::batch_invariant);
                for (int i = 0; i < family.family->kernel_count; ++i) {
                    const KernelInfo& row = family.family->kernels[i];
                    if (row.rejects(any, h200()).empty()) mode.rows.push_back(&row);
                }
                all.push_back(mode);
            }
        }
    }
    return all;
}

inline Schedule best(const Mode& mode, const ValidProblem& valid) {
    Schedule least;
    for (const KernelInfo* row : mode.rows) {
        const Schedule schedule = row->schedule(valid, h200());
        if (row == mode.rows.front() || schedule.cost_us < least.cost_us) least = schedule;
    }
    return least;
}

// Elements that have no other layout than contiguous k.
inline GemmProblem k_major_product(DType operand, DType result, Accumulate accumulate,
                                   Shape shape) {
    GemmProblem p;
    p.m = shape.m;
    p.n = shape.n;
    p.k = shape.k;
    p.a = Operand::row_major(operand, p.k);
    p.b = Operand::col_major(operand, p.k);
    p.c = p.d = Operand::row_major(result, p.n);
    p.accumulate = accumulate;
    if (operand == DType::f32) p.precision = Precision::tf32;
    return p;
}

// Of all rows that take the product.
inline Schedule best_row(const GemmProblem& product) {
    const ValidProblem valid = ValidProblem::check(product);
    Mode mode{};
    for (const RegisteredFamily& family : registered_families()) {
        if (std::string(family.name) != "sm90_wgmma") continue;
        for (int i = 0; i < family.family->kernel_count; ++i) {
            const KernelInfo& row = family.family->kernels[i];
            if (row.rejects(valid, h200()).empty()) mode.rows.push_back(&row);
        }
    }
    return best(mode, valid);
}

}  // namespace sm90_test
