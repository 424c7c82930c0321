#include <cstdint>
#include <limits>

#include "../check.hpp"
#include "../row_major.hpp"
#include "problem/valid_problem.hpp"

using namespace tcgemm;

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 2;

TEST(computes_a_column_major_output_as_its_transpose) {
    GemmProblem p = row_major(4, 5, 6);
    p.d = p.c = Operand::col_major(DType::f32, 4);
    const ValidProblem v = ValidProblem::check(p);
    CHECK(v.is_transposed());
    CHECK_EQ(v->m, 5);
    CHECK_EQ(v->n, 4);
    CHECK_EQ(v->d.row_stride, 4);
    CHECK_EQ(v->d.col_stride, 1);
    CHECK_EQ(v->a.row_stride, 1);  // B, 6 x 5 row-major, transposed
    CHECK_EQ(v->a.col_stride, 5);
    CHECK_EQ(v.as_given().m, 4);
    CHECK(!ValidProblem::check(row_major(4, 5, 6)).is_transposed());
    GemmProblem neither = row_major(4, 5, 6);
    neither.d = {DType::f32, 100, 2, {}, 16};
    CHECK(!ValidProblem::check(neither).is_transposed());
    GemmProblem strided_row = row_major(1, 5, 6);
    strided_row.d = {DType::f32, 77, 3, {}, 16};
    const ValidProblem column = ValidProblem::check(strided_row);
    CHECK(column.is_transposed());
    CHECK_EQ(column->d.col_stride, 1);
    CHECK_EQ(column->d.row_stride, 3);
}

TEST(computes_rows_that_were_matrices_of_a_column_major_output_as_its_transpose) {
    GemmProblem p = row_major(1, 5, 6);
    p.batch_rank = 1;
    p.batch_shape = {7};
    p.a.batch_stride = {6};
    p.d = p.c = {DType::f32, 0, 7, {1}, 16};
    const ValidProblem v = ValidProblem::check(p);
    CHECK(v.is_transposed());
    CHECK_EQ(v->batch_rank, 0);
    CHECK_EQ(v->m, 5);
    CHECK_EQ(v->n, 7);
    CHECK_EQ(v->d.row_stride, 7);
    CHECK_EQ(v->d.col_stride, 1);
    CHECK_EQ(v->b.row_stride, 1);  // A, 7 x 6 row-major, transposed
    CHECK_EQ(v->b.col_stride, 6);
}

TEST(merges_batch_dimensions_that_one_stride_walks) {
    GemmProblem p = row_major(4, 5, 6);
    p.batch_rank = 4;
    p.batch_shape = {2, 1, 3, 7};
    p.a.batch_stride = {504, 9, 168, 24};
    p.b.batch_stride = {630, 9, 210, 30};
    p.c.batch_stride = p.d.batch_stride = {420, 9, 140, 20};
    const ValidProblem v = ValidProblem::check(p);
    CHECK_EQ(v.batch_count(), 42);
    CHECK_EQ(v->batch_rank, 1);
    CHECK_EQ(v->batch_shape[0], 42);
    CHECK_EQ(v->a.batch_stride[0], 24);
    CHECK_EQ(v->d.batch_stride[0], 20);
    p.b.batch_stride = {0, 0, 30, 30};
    CHECK_EQ(ValidProblem::check(p)->batch_rank, 3);
}

TEST(folds_matrices_that_share_b_into_one) {
    GemmProblem p = row_major(4, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {3, 7};
    p.a.batch_stride = {168, 24};
    p.c.batch_stride = p.d.batch_stride = {140, 20};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 4 * 21);
    CHECK_EQ(all->batch_rank, 0);
    CHECK_EQ(all.batch_count(), 1);
    CHECK_EQ(all->a.row_stride, 6);
    CHECK_EQ(all.as_given().m, 4);

    p.b.batch_stride = {30, 0};
    const ValidProblem inner = ValidProblem::check(p);
    CHECK_EQ(inner->m, 4 * 7);
    CHECK_EQ(inner.batch_count(), 3);

    p.b.batch_stride = {0, 0};
    p.d.batch_stride = p.c.batch_stride = {147, 21};  // a gap behind each matrix
    CHECK_EQ(ValidProblem::check(p)->m, 21);          // all first rows
    p.batch_shape = {1, 7};
    CHECK_EQ(ValidProblem::check(p)->m, 4);

    GemmProblem vectors = row_major(1, 5, 6);
    vectors.batch_rank = 1;
    vectors.batch_shape = {3};
    vectors.a.batch_stride = {100};
    vectors.c.batch_stride = vectors.d.batch_stride = {5};
    const ValidProblem rows = ValidProblem::check(vectors);
    CHECK_EQ(rows->m, 3);
    CHECK_EQ(rows->a.row_stride, 100);
    CHECK_EQ(rows->d.row_stride, 5);
}

// x[:, :, :2] @ w for an x of 3 x 300 x 10 rows.
TEST(few_rows_of_many_matrices_that_share_b_change_places_with_them) {
    GemmProblem p = row_major(2, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {3, 300};
    p.a.batch_stride = {300 * 60, 60};
    p.c.batch_stride = p.d.batch_stride = {300 * 10, 10};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 900);
    CHECK_EQ(all.batch_count(), 2);
    CHECK_EQ(all->a.row_stride, 60);
    CHECK_EQ(all->a.batch_stride[0], 6);
    CHECK_EQ(all->d.row_stride, 10);
    CHECK_EQ(all->d.batch_stride[0], 5);

    GemmProblem scaled = p;
    scaled.a.dtype = scaled.b.dtype = DType::i8;
    scaled.scale_a = {ScaleKind::vector, 1, 1, {300 * 20, 20}};
    const ValidProblem its = ValidProblem::check(scaled);
    CHECK_EQ(its->m, 900);
    CHECK_EQ(its->scale_a.outer_stride, 20);
    CHECK_EQ(its->scale_a.batch_stride[0], 1);
    scaled.scale_a = {ScaleKind::tensor, 1, 1, {1, 0}};  // another one for each of three
    const ValidProblem three = ValidProblem::check(scaled);
    CHECK_EQ(three->m, 300);
    CHECK_EQ(three->batch_shape[0], 2);
    CHECK_EQ(three->scale_a.batch_stride[0], 0);
    CHECK_EQ(three->scale_a.batch_stride[1], 1);

    p.b.batch_stride = {0, 30};
    CHECK_EQ(ValidProblem::check(p)->m, 2);
    p.b.batch_stride = {0, 0};
    p.batch_shape = {3, 3};  // no tiles would be saved
    CHECK_EQ(ValidProblem::check(p)->m, 2);
}

// A by `count` columns, each a matrix of the batch.
GemmProblem columns(std::int64_t m, std::int64_t k, std::int64_t count) {
    GemmProblem p = row_major(m, 1, k);
    p.batch_rank = 1;
    p.batch_shape = {count};
    p.b.row_stride = p.b.col_stride = 1;
    p.b.batch_stride = {k};
    p.c.row_stride = p.d.row_stride = 1;
    p.c.batch_stride = p.d.batch_stride = {m};
    return p;
}

TEST(a_single_column_is_a_row) {
    GemmProblem p = columns(8, 6, 1);
    const ValidProblem row = ValidProblem::check(p);
    CHECK(row.is_transposed());
    CHECK_EQ(row->m, 1);
    CHECK_EQ(row->n, 8);
    CHECK_EQ(row->b.row_stride, 1);
    CHECK_EQ(row->b.col_stride, 6);
    CHECK_EQ(row->d.col_stride, 1);
    p.d.row_stride = p.c.row_stride = 3;  // not next to each other either way
    CHECK(!ValidProblem::check(p).is_transposed());
}

// w @ x for many vectors x is x @ w^T.
TEST(columns_that_share_a_are_rows_that_share_b) {
    GemmProblem p = columns(8, 6, 10);
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 10);
    CHECK_EQ(all->n, 8);
    CHECK_EQ(all.batch_count(), 1);
    CHECK_EQ(all->a.row_stride, 6);
    CHECK_EQ(all->b.col_stride, 6);
    CHECK_EQ(all->d.row_stride, 8);
    CHECK_EQ(all.as_given().n, 1);
    p.a.batch_stride = {48};  // a row each
    CHECK_EQ(ValidProblem::check(p)->m, 1);
    CHECK_EQ(ValidProblem::check(p)->n, 8);
}

// a @ x.expand(8, n, 1): matrices that share A and B are rows of one, whose A is a row again and
// again.
TEST(columns_that_share_both_operands_are_rows_of_one_matrix) {
    GemmProblem p = columns(128, 128, 8);
    p.b.batch_stride = {0};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 8);
    CHECK_EQ(all->n, 128);
    CHECK_EQ(all.batch_count(), 1);
    CHECK_EQ(all->a.row_stride, 0);
    CHECK(!all.gathered());
}

// x of 64 x 32 x 8 rows by 32 matrices w; and A and D in another order than the batch is given in.
TEST(the_order_of_batch_dimensions_does_not_matter) {
    GemmProblem p = row_major(8, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {64, 32};
    p.a.batch_stride = {32 * 48, 48};
    p.b.batch_stride = {0, 30};
    p.c.batch_stride = p.d.batch_stride = {32 * 40, 40};
    const ValidProblem all = ValidProblem::check(p);
    CHECK_EQ(all->m, 64);
    CHECK_EQ(all.batch_count(), 8 * 32);

    p.b.batch_stride = {0, 0};
    p.a.batch_stride = {48, 64 * 48};
    p.c.batch_stride = p.d.batch_stride = {40, 64 * 40};
    const ValidProblem one = ValidProblem::check(p);
    CHECK_EQ(one->m, 8 * 64 * 32);
    CHECK_EQ(one.batch_count(), 1);

    // Rows go on in the dimension that D's matrices are further apart in.
    p.batch_shape = {8, 8};  // z, x of arrays [x, row, z, column]
    p.a.row_stride = 8 * 6;
    p.c.row_stride = p.d.row_stride = 8 * 5;
    p.a.batch_stride = {6, 8 * 48};
    p.c.batch_stride = p.d.batch_stride = {5, 8 * 40};
    const ValidProblem rows = ValidProblem::check(p);
    CHECK_EQ(rows->m, 64);
    CHECK_EQ(rows.batch_count(), 8);
}

TEST(sets_the_strides_of_single_rows_and_columns) {
    GemmProblem p = row_major(1, 5, 6);
    p.a.row_stride = kHuge;  // never walked
    p.d.row_stride = p.c.row_stride = -3;
    const ValidProblem v = ValidProblem::check(p);
    CHECK_EQ(v->a.row_stride, 6);
    CHECK_EQ(v->d.row_stride, 5);
}

// Queries of 3 x 2 heads by 4 tokens that groups of 2 heads multiply by the keys of one, as
// attention has them: [token, head, group, element].
GemmProblem grouped_queries() {
    GemmProblem p = row_major(4, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {3, 2};
    p.a.row_stride = 3 * 2 * 6;
    p.a.batch_stride = {2 * 6, 6};
    p.b.batch_stride = {30, 0};
    p.c.batch_stride = p.d.batch_stride = {2 * 20, 20};
    return p;
}

TEST(matrices_of_a_that_share_b_are_gathered_where_d_follows) {
    const ValidProblem apart = ValidProblem::check(grouped_queries());
    CHECK_EQ(apart->m, 4);
    CHECK(!apart.is_gathered());
    CHECK_EQ(apart.ungathered().m, 4);
    const auto together = apart.gathered();
    CHECK(together.has_value());
    CHECK(together->is_gathered());
    const ValidProblem& all = *together;
    CHECK_EQ(all->m, 2 * 4);
    CHECK_EQ(all.batch_count(), 3);
    CHECK_EQ(all->a.row_stride, 8);  // k = 6 of float32 in vectors of 16 bytes
    CHECK_EQ(all->a.col_stride, 1);
    CHECK_EQ(all->a.batch_stride[0], 8 * 8);
    CHECK_EQ(all->b.batch_stride[0], 30);
    CHECK_EQ(all->d.batch_stride[0], 2 * 20);
    CHECK_EQ(all.ungathered().m, 4);
    CHECK_EQ(all.ungathered().a.row_stride, 36);
    CHECK_EQ(all.ungathered().batch_rank, 2);
    CHECK(!all.gathered());  // once

    GemmProblem few_tokens = grouped_queries();  // change places with the heads of a group
    few_tokens.m = 2;
    few_tokens.batch_shape = {3, 8};
    few_tokens.a.row_stride = 3 * 8 * 6;
    few_tokens.a.batch_stride = {8 * 6, 6};
    few_tokens.c.batch_stride = few_tokens.d.batch_stride = {8 * 10, 10};
    const ValidProblem interchanged = ValidProblem::check(few_tokens);
    CHECK_EQ(interchanged->m, 8);
    const auto as_given = interchanged.gathered();
    CHECK(as_given.has_value());
    CHECK_EQ((*as_given)->m, 16);
    CHECK_EQ((*as_given)->d.row_stride, 5);
    CHECK_EQ(as_given->ungathered().m, 2);
    CHECK_EQ(as_given->ungathered().a.row_stride, 3 * 8 * 6);
    CHECK_EQ(as_given->ungathered().a.batch_stride[1], 6);

    const ValidProblem transposed = all.as_transposed();
    CHECK_EQ(transposed->n, 8);
    CHECK_EQ(transposed.ungathered().b.col_stride, 36);
}

// x.mT of 300 x 3 matrices by one of three w: all first rows are a matrix, as x's would be.
TEST(rows_of_a_packed_a_change_places_with_matrices) {
    GemmProblem p = row_major(2, 5, 6);
    p.batch_rank = 2;
    p.batch_shape = {300, 3};
    p.a.row_stride = 1;
    p.a.col_stride = 2;
    p.a.batch_stride = {36, 12};
    p.b.batch_stride = {0, 30};
    p.c.batch_stride = p.d.batch_stride = {30, 10};
    const ValidProblem apart = ValidProblem::check(p);
    CHECK_EQ(apart->m, 2);
    const auto all = apart.gathered();
    CHECK(all.has_value());
    CHECK_EQ((*all)->m, 300);
    CHECK_EQ(all->batch_count(), 6);
    CHECK_EQ((*all)->d.row_stride, 30);
    CHECK_EQ((*all)->a.col_stride, 1);
}

// Kernels ask for steps between the rows of what they are given.
TEST(matrices_that_share_a_and_b_are_not_gathered_as_one_row) {
    GemmProblem p = row_major(2, 5, 6);
    p.batch_rank = 1;
    p.batch_shape = {64};
    p.a.row_stride = 1;
    p.a.col_stride = 2;
    p.c.batch_stride = p.d.batch_stride = {10};
    CHECK(!ValidProblem::check(p).gathered());
    p.a.batch_stride = {12};
    CHECK(ValidProblem::check(p).gathered().has_value());
}

TEST(matrices_are_not_gathered_where_that_gives_no_more_rows) {
    const auto gathers = [](const auto& change) {
        GemmProblem p = grouped_queries();
        change(p);
        return ValidProblem::check(p).gathered().has_value();
    };
    CHECK(gathers([](GemmProblem&) {}));
    CHECK(gathers([](GemmProblem& p) { p.a.batch_stride[0] = 0; }));  // heads share their queries
    CHECK(!gathers([](GemmProblem& p) { p.b.batch_stride[1] = 99; }));
    CHECK(!gathers([](GemmProblem& p) { p.a.batch_stride[1] = 0; }));  // nothing to put below
    CHECK(!gathers([](GemmProblem& p) { p.c.batch_stride[1] = 25; }));
    CHECK(!gathers([](GemmProblem& p) { p.c.batch_stride = p.d.batch_stride = {50, 25}; }));
    CHECK(!gathers([](GemmProblem& p) { p.batch_rank = 0; }));
    CHECK(!gathers([](GemmProblem& p) { p.batch_shape = {0, 2}; }));
    CHECK(!gathers([](GemmProblem& p) {
        p.a.dtype = p.b.dtype = DType::i8;
        p.scale_a = {ScaleKind::vector, 1, 1, {100, 50}};
    }));
}

}  // namespace

int main() { return check::run(); }
