#include "pack/pack.hpp"

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
struct Element<DType::i8> {
    using Type = std::int8_t;
};

}  // namespace

void launch(const MatrixView& source, std::int64_t rows, std::int64_t cols,
            const PackLayout& target, StreamView stream) {
    const bool col_major = target.view.row_stride == 1 && target.view.col_stride != 1;
    PackArgs args{};
    args.source = source.data;
    args.target = target.view.data;
    args.outer = col_major ? cols : rows;
    args.inner = col_major ? rows : cols;
    args.source_outer_stride = col_major ? source.col_stride : source.row_stride;
    args.source_inner_stride = col_major ? source.row_stride : source.col_stride;
    args.target_outer_stride = col_major ? target.view.col_stride : target.view.row_stride;
    args.batch = target.batch;
    for (int dim = 0; dim < target.batch.rank; ++dim) {
        args.source_batch_stride[dim] = source.batch_stride[dim];
        args.target_batch_stride[dim] = target.view.batch_stride[dim];
    }

#define TCGEMM_ROW(from, to)                                                                    \
    if (source.dtype == DType::from && target.view.dtype == DType::to) {                        \
        return launch_pack<Element<DType::from>::Type, Element<DType::to>::Type>(args, stream); \
    }
    TCGEMM_CONVERSIONS(TCGEMM_ROW)
#undef TCGEMM_ROW
}

}  // namespace tcgemm::pack
