#include "dispatch/pack_step.hpp"

#include <utility>

#include "kernels/operand_form.hpp"
#include "problem/canonical.hpp"

namespace tcgemm {
namespace {

// `order`: what the kernel needs; `packed_order`: where the operand is packed anyway.
PackStep pack_step(const ValidProblem& problem, const Operand& operand, std::int64_t rows,
                   std::int64_t cols, const OperandNeeds& needs, pack::Order order,
                   pack::Order packed_order) {
    PackStep step;
    step.result = matrix_view(operand);
    step.needed = is_packed(problem, operand, rows, cols, needs, order);
    if (!step.needed) return step;
    step.task.source = step.result;
    step.task.rows = rows;
    step.task.cols = cols;
    step.task.rounds_to_tf32 = is_rounded_to_tf32(problem, operand, needs);
    step.task.target = pack::packed_layout(step.task.source, rows, cols, batch_shape(*problem),
                                           operand_dtype(needs, problem, operand.dtype),
                                           needs.packed_row_bytes, packed_order);
    step.result = step.task.target.view;
    return step;
}

// Of a gathered problem's A: the matrices as they lie, to where they are one below the other.
PackStep gather_step(const ValidProblem& problem, const OperandNeeds& needs) {
    const GemmProblem& lies = problem.ungathered();
    PackStep step;
    step.result = matrix_view(problem->a);
    step.needed = lies.k > 0;
    if (!step.needed) return step;
    step.task.source = matrix_view(lies.a);
    step.task.rows = lies.m;
    step.task.cols = lies.k;
    step.task.rounds_to_tf32 = is_rounded_to_tf32(problem, lies.a, needs);
    step.task.target = pack::packed_layout(step.task.source, lies.m, lies.k, batch_shape(lies),
                                           operand_dtype(needs, problem, lies.a.dtype),
                                           needs.packed_row_bytes, pack::Order::row);
    // As described, in rows of the length that they have.
    const MatrixView& target = step.task.target.view;
    const std::int64_t described = canonical::packed_row(lies);
    step.result.dtype = target.dtype;
    step.result.row_stride = step.result.row_stride / described * target.row_stride;
    for (std::int64_t& stride : step.result.batch_stride) {
        stride = stride / described * target.row_stride;
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
