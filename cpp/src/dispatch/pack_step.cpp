#include "dispatch/pack_step.hpp"

#include <utility>

#include "kernels/operand_form.hpp"
#include "problem/canonical.hpp"

namespace tcgemm {
namespace {

// A pass over an operand of `form`, one of the problem's.
PackStep pass_over(const ValidProblem& problem, const GemmProblem& form, const Operand& operand,
                   std::int64_t rows, std::int64_t cols, const OperandNeeds& needs,
                   pack::Order order) {
    PackStep step;
    step.needed = true;
    step.task.source = matrix_view(operand);
    step.task.rows = rows;
    step.task.cols = cols;
    step.task.rounds_to_tf32 = is_rounded_to_tf32(problem, operand, needs);
    step.task.target = pack::packed_layout(step.task.source, rows, cols, batch_shape(form),
                                           operand_dtype(needs, problem, operand.dtype),
                                           needs.packed_row_bytes, order);
    step.result = step.task.target.view;
    return step;
}

PackStep as_it_lies(const Operand& operand) {
    PackStep step;
    step.result = matrix_view(operand);
    return step;
}

// `order`: what the kernel needs; `packed_order`: where the operand is packed anyway.
PackStep pack_step(const ValidProblem& problem, const Operand& operand, std::int64_t rows,
                   std::int64_t cols, const OperandNeeds& needs, pack::Order order,
                   pack::Order packed_order) {
    if (!is_packed(problem, operand, rows, cols, needs, order)) return as_it_lies(operand);
    return pass_over(problem, *problem, operand, rows, cols, needs, packed_order);
}

// Of a gathered problem's A: the matrices as they lie, to where they are one below the other.
PackStep gather_step(const ValidProblem& problem, const OperandNeeds& needs) {
    const GemmProblem& lies = problem.ungathered();
    if (lies.k == 0) return as_it_lies(problem->a);
    PackStep step = pass_over(problem, lies, lies.a, lies.m, lies.k, needs, pack::Order::row);
    // Strides as described, in rows of the length that they have.
    const std::int64_t described = canonical::packed_row(lies), row = step.result.row_stride;
    step.result.row_stride = problem->a.row_stride / described * row;
    for (int dim = 0; dim < kMaxBatchDims; ++dim) {
        step.result.batch_stride[dim] = problem->a.batch_stride[dim] / described * row;
    }
    return step;
}

}  // namespace

BatchShape batch_shape(const GemmProblem& problem) {
    BatchShape shape;
    shape.rank = problem.batch_rank;
    shape.count = canonical::count_batches(problem);
    for (int dim = 0; dim < problem.batch_rank; ++dim) shape.extent[dim] = problem.batch_shape[dim];
    return shape;
}

MatrixView matrix_view(const Operand& operand) {
    MatrixView view;
    view.row_stride = operand.row_stride;
    view.col_stride = operand.col_stride;
    for (int dim = 0; dim < kMaxBatchDims; ++dim)
        view.batch_stride[dim] = operand.batch_stride[dim];
    view.dtype = operand.dtype;
    return view;
}

PackSteps plan_packing(const ValidProblem& problem, const OperandNeeds& kernel_needs,
                       const Schedule& schedule) {
    const GemmProblem& p = *problem;
    const OperandNeeds needs = packed_needs(kernel_needs);
    const bool k_major = needs.k_major_a || needs.k_major_b;  // of what is packed
    bool k_major_a = schedule.packs_a_k_major, k_major_b = schedule.packs_b_k_major;
    if (schedule.transposed) std::swap(k_major_a, k_major_b);
    const pack::Order order_a =
        k_major_a ? pack::Order::row : order_of_a(needs, schedule.transposed);
    const pack::Order order_b =
        k_major_b ? pack::Order::col : order_of_b(needs, schedule.transposed);
    PackSteps steps;
    steps.a = problem.is_gathered() ? gather_step(problem, needs)
                                    : pack_step(problem, p.a, p.m, p.k, needs, order_a,
                                                k_major ? pack::Order::row : order_a);
    steps.b =
        pack_step(problem, p.b, p.k, p.n, needs, order_b, k_major ? pack::Order::col : order_b);
    return steps;
}

}  // namespace tcgemm
