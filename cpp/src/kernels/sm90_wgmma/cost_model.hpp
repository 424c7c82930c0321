// How long a row of the table takes, in microseconds, and the schedule in which it takes least.
#pragma once

#include "kernels/sm90_wgmma/arrangement.hpp"
#include "kernels/sm90_wgmma/load_model.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/device.hpp"

namespace tcgemm::sm90_wgmma {

// A product by a row of the table on a device. `problem`: as the kernel sees it, D^T where
// schedules are `transposed`.
struct RowProduct {
    RowInfo row;
    const ValidProblem& problem;
    const DeviceProperties& device;
    Forms forms;

    ProductSize size() const {
        return {problem->m,
                problem->n,
                row.k(problem->k),
                problem.batch_count(),
                static_cast<int>(size_of(problem->d.dtype)),
                problem.has_block_scales()};
    }
    Arrangement arranged(const Schedule& schedule) const {
        return arrange(row, size(), schedule, device.sm_count);
    }
};

// `schedule` with its cost and its workspace (cost_model.cpp).
Schedule priced(const RowProduct& product, const Schedule& schedule);

// Parts of the K of a product that is batch-invariant; 1 of others.
int invariant_splits(const RowInfo& row, const ValidProblem& problem);

// The schedule of least cost, of those that are `transposed` or of those that are not
// (schedule.cpp).
Schedule cheapest_schedule(const RowProduct& product, bool transposed);

}  // namespace tcgemm::sm90_wgmma
