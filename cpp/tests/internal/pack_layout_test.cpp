#include <cstdint>
#include <limits>

#include "../check.hpp"
#include "pack/pack.hpp"
#include "tcgemm/error.hpp"

using namespace tcgemm;

namespace {

MatrixView view(DType dtype, std::int64_t row_stride, std::int64_t col_stride) {
    MatrixView result;
    result.dtype = dtype;
    result.row_stride = row_stride;
    result.col_stride = col_stride;
    return result;
}

TEST(converts_floats_and_int8_to_floats_and_keeps_integers_whole) {
    const DType floats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};
    for (const DType to : floats) {
        for (const DType from : floats) CHECK(pack::converts(from, to));
        CHECK(pack::converts(DType::i8, to));
        CHECK(!pack::converts(to, DType::i8));
        CHECK(!pack::converts(DType::i32, to));
    }
    CHECK(pack::converts(DType::i8, DType::i8));
    CHECK(!pack::converts(DType::i8, DType::i32));
    for (const DType fp8 : {DType::e4m3, DType::e5m2}) {
        CHECK(pack::converts(fp8, fp8) && pack::converts(fp8, DType::f16));
        CHECK(!pack::converts(fp8, DType::f32) && !pack::converts(DType::f32, fp8));
    }
}

TEST(pads_rows_to_vectors) {
    const auto layout =
        pack::packed_layout(view(DType::f32, 4097, 1), 5, 4097, BatchShape{}, DType::f16, 16);
    CHECK_EQ(layout.view.row_stride, 4104);  // the next multiple of 8 halves
    CHECK_EQ(layout.view.col_stride, 1);
    CHECK_EQ(layout.bytes, std::size_t{5 * 4104 * 2});
    CHECK(layout.view.dtype == DType::f16);
    CHECK(layout.view.data == nullptr);
    CHECK_EQ(layout.batch.count, 1);
}

TEST(pads_to_lines_of_l2_or_where_rows_are_short_to_its_sectors) {
    const auto row_bytes = [](DType dtype, std::int64_t cols) {
        const auto layout =
            pack::packed_layout(view(dtype, cols, 1), 5, cols, BatchShape{}, dtype, 128);
        return layout.view.row_stride * size_of(dtype);
    };
    CHECK_EQ(row_bytes(DType::f16, 4097), 8320);
    CHECK_EQ(row_bytes(DType::f16, 127), 256);  // an eighth longer at most
    CHECK_EQ(row_bytes(DType::f16, 513), 1152);
    CHECK_EQ(row_bytes(DType::f16, 100), 224);
    CHECK_EQ(row_bytes(DType::i8, 9), 32);
    CHECK_EQ(row_bytes(DType::f64, 17), 160);
    CHECK_EQ(row_bytes(DType::f64, 16), 128);
}

TEST(keeps_the_major_order) {
    const auto col_major =
        pack::packed_layout(view(DType::f32, 1, 1000), 30, 7, BatchShape{}, DType::bf16, 16);
    CHECK_EQ(col_major.view.row_stride, 1);
    CHECK_EQ(col_major.view.col_stride, 32);
    CHECK_EQ(col_major.bytes, std::size_t{7 * 32 * 2});
    // No stride of 1, a negative one, a broadcast row: row-major.
    for (const auto& source : {view(DType::f32, 2, 100), view(DType::f32, -7, 1),
                               view(DType::f32, 0, 1), view(DType::f32, 1, 1)}) {
        const auto layout = pack::packed_layout(source, 30, 7, BatchShape{}, DType::f64, 16);
        CHECK_EQ(layout.view.row_stride, 8);
        CHECK_EQ(layout.view.col_stride, 1);
    }
}

TEST(takes_the_order_that_is_asked_for) {
    using pack::Order;
    for (const auto& source : {view(DType::e4m3, 40, 1), view(DType::e4m3, 1, 40)}) {
        const auto row =
            pack::packed_layout(source, 30, 7, BatchShape{}, DType::e4m3, 16, Order::row);
        CHECK(row.view.row_stride == 16 && row.view.col_stride == 1);
        const auto col =
            pack::packed_layout(source, 30, 7, BatchShape{}, DType::e4m3, 16, Order::col);
        CHECK(col.view.row_stride == 1 && col.view.col_stride == 32);
        CHECK_EQ(col.bytes, std::size_t{7 * 32});
    }
    // A single row whose K runs down its columns: a line for each.
    const auto line =
        pack::packed_layout(view(DType::i8, 1, 1), 1, 7, BatchShape{}, DType::i8, 16, Order::col);
    CHECK(line.view.row_stride == 1 && line.view.col_stride == 16);
}

// One row or one column becomes one line, whatever its strides: not a padded line per element.
TEST(a_vector_is_one_line) {
    for (const auto& source : {view(DType::f16, 1, 1), view(DType::f16, 3, 1),
                               view(DType::f16, 1, 3), view(DType::f16, -5, 7)}) {
        const auto column = pack::packed_layout(source, 1000, 1, BatchShape{}, DType::f16, 16);
        CHECK_EQ(column.view.row_stride, 1);
        CHECK_EQ(column.view.col_stride, 1000);
        CHECK_EQ(column.bytes, std::size_t{2000});
        const auto row = pack::packed_layout(source, 1, 1001, BatchShape{}, DType::f16, 16);
        CHECK_EQ(row.view.row_stride, 1008);
        CHECK_EQ(row.view.col_stride, 1);
        CHECK_EQ(row.bytes, std::size_t{2016});
    }
}

TEST(packs_broadcast_batches_once) {
    BatchShape batch;
    batch.rank = 3;
    batch.extent[0] = 4;
    batch.extent[1] = 1000;
    batch.extent[2] = 3;
    batch.count = 12000;
    MatrixView source = view(DType::f16, 8, 1);
    source.batch_stride[0] = -999;
    source.batch_stride[1] = 0;
    source.batch_stride[2] = 64;
    const auto layout = pack::packed_layout(source, 8, 8, batch, DType::f16, 16);
    CHECK_EQ(layout.batch.rank, 3);
    CHECK_EQ(layout.batch.count, 12);
    CHECK_EQ(layout.batch.extent[0], 4);
    CHECK_EQ(layout.batch.extent[1], 1);
    CHECK_EQ(layout.batch.extent[2], 3);
    CHECK_EQ(layout.view.batch_stride[2], 64);
    CHECK_EQ(layout.view.batch_stride[1], 0);
    CHECK_EQ(layout.view.batch_stride[0], 3 * 64);
    CHECK_EQ(layout.bytes, std::size_t{12 * 64 * 2});
}

TEST(refuses_what_bytes_cannot_count) {
    constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 2;
    CHECK_THROWS(
        ShapeError,
        pack::packed_layout(view(DType::f16, 0, 0), kHuge, kHuge, BatchShape{}, DType::f32, 16),
        "int64");
    CHECK_THROWS(
        ShapeError,
        pack::packed_layout(view(DType::f16, 0, 0), 1, kHuge, BatchShape{}, DType::f32, 16),
        "int64");
}

}  // namespace

int main() { return check::run(); }
