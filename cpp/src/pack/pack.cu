#include "pack/pack.hpp"

#include <limits>

#include "pack/conversions.hpp"
#include "pack/pack_kernel.cuh"

namespace tcgemm::pack {
namespace {

template <DType>
struct Element;
template <>
struct Element<DType::f16> {
    using Type = __half;
};
template <>
struct Element<DType::bf16> {
    using Type = __nv_bfloat16;
};
template <>
struct Element<DType::f32> {
    using Type = float;
};
template <>
struct Element<DType::f64> {
    using Type = double;
};
template <>
struct Element<DType::e4m3> {
    using Type = device::E4M3;
};
template <>
struct Element<DType::e5m2> {
    using Type = device::E5M2;
};
template <>
struct Element<DType::i8> {
    using Type = std::int8_t;
};

// Matrices that follow each other line by line, in the source and in the target, are one.
void merge_batches(OperandArgs& args) {
    for (; args.batch.rank > 0; --args.batch.rank) {
        const int last = args.batch.rank - 1;
        const std::int64_t lines = args.outer * args.batch.extent[last];
        if (args.outer == 1 && args.batch.extent[last] > 1) {
            args.source_outer_stride = args.source_batch_stride[last];
            args.target_outer_stride = args.target_batch_stride[last];
        }
        const bool follows =
            args.batch.extent[last] == 1 ||
            (args.source_batch_stride[last] == args.outer * args.source_outer_stride &&
             args.target_batch_stride[last] == args.outer * args.target_outer_stride);
        if (!follows || lines > std::numeric_limits<int>::max()) return;
        args.outer = lines;
        args.batch.count /= args.batch.extent[last];
    }
}

OperandArgs operand_args(const Task& task) {
    const MatrixView &source = task.source, &target = task.target.view;
    const bool col_major = target.row_stride == 1 && target.col_stride != 1;
    OperandArgs args;
    args.source = source.data;
    args.target = target.data;
    args.outer = col_major ? task.cols : task.rows;
    args.inner = col_major ? task.rows : task.cols;
    args.source_outer_stride = col_major ? source.col_stride : source.row_stride;
    args.source_inner_stride = col_major ? source.row_stride : source.col_stride;
    args.target_outer_stride = col_major ? target.col_stride : target.row_stride;
    args.batch = task.target.batch;
    for (int dim = 0; dim < args.batch.rank; ++dim) {
        args.source_batch_stride[dim] = source.batch_stride[dim];
        args.target_batch_stride[dim] = target.batch_stride[dim];
    }
    merge_batches(args);
    return args;
}

}  // namespace

void launch(const Task* tasks, int count, StreamView stream) {
    for (int i = 0; i < count;) {
        DType from = tasks[i].source.dtype, to = tasks[i].target.view.dtype;
        const bool rounds_to_tf32 = tasks[i].rounds_to_tf32;
        KernelArgs args;
        int held = 0;
        do {
            args.operand[held++] = operand_args(tasks[i++]);
        } while (held < kMaxOperands && i < count && tasks[i].source.dtype == from &&
                 tasks[i].target.view.dtype == to && tasks[i].rounds_to_tf32 == rounds_to_tf32);
        if (rounds_to_tf32) {
            from == DType::f64 ? launch_pack<double, Tf32>(args, stream)
                               : launch_pack<float, Tf32>(args, stream);
            continue;
        }
        if (from == to && is_fp8(from)) from = to = DType::i8;  // bytes
#define TCGEMM_ROW(from_id, to_id)                    \
    if (from == DType::from_id && to == DType::to_id) \
        launch_pack<Element<DType::from_id>::Type, Element<DType::to_id>::Type>(args, stream);
        TCGEMM_CONVERSIONS(TCGEMM_ROW)
#undef TCGEMM_ROW
    }
}

}  // namespace tcgemm::pack
