// Where the elements of random products lie in each form of the problem: a kernel that is given the
// form adds up the products of the same elements for each element of D.
#include "dispatch/pack_step.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "../check.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/packing_cost.hpp"
#include "problem/canonical.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/error.hpp"

using namespace tcgemm;

namespace {

using std::int64_t;

// What an element of D is made of: offsets into C, A, B and their scales of rows and columns.
struct Sources {
    int64_t c = 0;
    std::vector<int64_t> a, b;
    int64_t scale_a = 0, scale_b = 0;
    bool operator==(const Sources& other) const {
        return c == other.c && a == other.a && b == other.b && scale_a == other.scale_a &&
               scale_b == other.scale_b;
    }
};
using Elements = std::map<int64_t, Sources>;  // by the offset into D

int64_t batch_offset(const GemmProblem& p, const BatchDims& strides, int64_t index) {
    int64_t offset = 0;
    for (int dim = p.batch_rank - 1; dim >= 0; --dim) {
        offset += index % p.batch_shape[dim] * strides[dim];
        index /= p.batch_shape[dim];
    }
    return offset;
}

int64_t at(const GemmProblem& p, const Operand& o, int64_t batch, int64_t row, int64_t col) {
    return batch_offset(p, o.batch_stride, batch) + row * o.row_stride + col * o.col_stride;
}

int64_t scale_at(const GemmProblem& p, const Scale& scale, int64_t batch, int64_t outer) {
    if (scale.kind == ScaleKind::none) return 0;
    return batch_offset(p, scale.batch_stride, batch) + outer * scale.outer_stride;
}

// `of_a(batch, row, k)`: the offset into the user's A, or B where the problem was transposed.
template <class OfA>
Elements elements(const GemmProblem& p, const OfA& of_a) {
    Elements all;
    for (int64_t batch = 0; batch < canonical::count_batches(p); ++batch) {
        for (int64_t i = 0; i < p.m; ++i) {
            for (int64_t j = 0; j < p.n; ++j) {
                Sources of;
                of.c = at(p, p.c, batch, i, j);
                for (int64_t k = 0; k < p.k; ++k) {
                    of.a.push_back(of_a(batch, i, k));
                    of.b.push_back(at(p, p.b, batch, k, j));
                }
                of.scale_a = scale_at(p, p.scale_a, batch, i);
                of.scale_b = scale_at(p, p.scale_b, batch, j);
                all.emplace(at(p, p.d, batch, i, j), of);
            }
        }
    }
    return all;
}

Elements elements(const GemmProblem& p) {
    return elements(p,
                    [&](int64_t batch, int64_t i, int64_t k) { return at(p, p.a, batch, i, k); });
}

Elements as_given(Elements all, bool is_transposed) {
    if (!is_transposed) return all;
    for (auto& [d, of] : all) {
        std::swap(of.a, of.b);
        std::swap(of.scale_a, of.scale_b);
    }
    return all;
}

// The packing pass by hand: for each element of the packed A where it comes from, -1 where nothing
// is written.
std::vector<int64_t> packed_from(const pack::Task& task) {
    const MatrixView& target = task.target.view;
    std::vector<int64_t> from(task.target.bytes / size_of(target.dtype), -1);
    for (int64_t batch = 0; batch < task.target.batch.count; ++batch) {
        int64_t source = 0, to = 0, rest = batch;
        for (int dim = task.target.batch.rank - 1; dim >= 0; --dim) {
            const int64_t index = rest % task.target.batch.extent[dim];
            rest /= task.target.batch.extent[dim];
            source += index * task.source.batch_stride[dim];
            to += index * target.batch_stride[dim];
        }
        for (int64_t i = 0; i < task.rows; ++i) {
            for (int64_t k = 0; k < task.cols; ++k) {
                from.at(to + i * target.row_stride + k * target.col_stride) =
                    source + i * task.source.row_stride + k * task.source.col_stride;
            }
        }
    }
    return from;
}

class Random {
   public:
    int64_t upto(int64_t most) { return static_cast<int64_t>(bits_() % (most + 1)); }
    bool in(int64_t percent) { return upto(99) < percent; }

    // Dimensions in any order, some with gaps behind them, some broadcast or walked backwards.
    void strides(std::vector<std::pair<int64_t, int64_t*>> dims, bool may_share) {
        if (in(50)) std::shuffle(dims.begin(), dims.end(), bits_);
        int64_t run = 1;
        for (std::size_t i = dims.size(); i-- > 0;) {
            const auto& [extent, stride] = dims[i];
            *stride = may_share && in(25) ? 0 : in(5) ? -run : run;
            if (*stride != 0) run *= extent;
            if (in(15)) run += upto(4) + 1;
        }
    }

    GemmProblem problem() {
        GemmProblem p;
        p.m = upto(4) + 1, p.n = upto(4) + 1, p.k = upto(3);
        p.batch_rank = static_cast<int>(upto(4));
        for (int dim = 0; dim < p.batch_rank; ++dim) {
            p.batch_shape[dim] = in(10) ? 9 : upto(3) + 1;
        }
        const DType dtypes[] = {DType::f16, DType::f32, DType::i8};
        p.a.dtype = p.b.dtype = dtypes[upto(2)];
        p.c.dtype = p.d.dtype = DType::f32;
        const auto walk = [&](BatchDims& batch, std::vector<std::pair<int64_t, int64_t*>> rest) {
            std::vector<std::pair<int64_t, int64_t*>> dims;
            for (int dim = 0; dim < p.batch_rank; ++dim) {
                dims.emplace_back(p.batch_shape[dim], &batch[dim]);
            }
            dims.insert(dims.end(), rest.begin(), rest.end());
            return dims;
        };
        const auto lay = [&](Operand& o, int64_t rows, int64_t cols) {
            strides(walk(o.batch_stride, {{rows, &o.row_stride}, {cols, &o.col_stride}}),
                    &o != &p.d);
        };
        lay(p.a, p.m, p.k), lay(p.b, p.k, p.n), lay(p.d, p.m, p.n);
        p.c = p.d;
        if (in(15)) lay(p.c, p.m, p.n);
        if (p.a.dtype == DType::i8) {
            for (const auto& [scale, extent] : {std::pair{&p.scale_a, p.m}, {&p.scale_b, p.n}}) {
                scale->kind = in(50) ? ScaleKind::vector : ScaleKind::none;
                if (scale->kind == ScaleKind::none) continue;
                strides(walk(scale->batch_stride, {{extent, &scale->outer_stride}}), true);
            }
        }
        return p;
    }

   private:
    std::mt19937_64 bits_{48};
};

// Passes along rows have no tiles, those that transpose an operand as narrow ones as hold its rows.
TEST(passes_that_transpose_an_operand_have_tiles) {
    const auto work_of = [](const Operand& a, std::int64_t m, std::int64_t k, std::int64_t batch,
                            pack::Order order) {
        GemmProblem p;
        p.batch_rank = 1;
        p.batch_shape[0] = batch;
        PackingWork work;
        add_packed(work, p, a, m, k, 1, order);
        return work;
    };
    Operand rows = Operand::row_major(DType::i8, 440), columns = Operand::col_major(DType::i8, 8);
    rows.batch_stride[0] = columns.batch_stride[0] = 8 * 440;
    const PackingWork along = work_of(rows, 8, 440, 500, pack::Order::row);
    const PackingWork across = work_of(columns, 8, 440, 500, pack::Order::row);
    CHECK_EQ(along.bytes, 2.0 * 500 * 8 * 440);
    CHECK_EQ(across.bytes, along.bytes);
    CHECK_EQ(along.transposed_tiles, 0.0);
    CHECK_EQ(across.transposed_tiles, 500.0);
    CHECK_EQ(work_of(columns, 8, 440, 500, pack::Order::either).transposed_tiles, 0.0);
    // A single row lies along its elements, whatever their distance.
    Operand row = Operand::row_major(DType::f32, 12288);
    row.row_stride = 1;
    row.col_stride = 3;
    CHECK_EQ(work_of(row, 1, 4096, 1, pack::Order::either).transposed_tiles, 4.0);
    const DeviceProperties device;
    CHECK(packing_pass_us(across, device) > packing_pass_us(along, device));
    CHECK_EQ(packing_pass_us(PackingWork(), device), 0.0);
}

TEST(every_form_of_a_problem_multiplies_the_same_elements) {
    Random random;
    int gathered_ones = 0;
    for (int i = 0; i < 12000; ++i) {
        const GemmProblem given = random.problem();
        std::optional<ValidProblem> valid;
        try {
            valid = ValidProblem::check(given);
        } catch (const LayoutError&) {
            continue;  // a D that overlaps itself
        }
        const Elements wanted = elements(given);
        const auto is_same = [&](const Elements& got) {
            return as_given(got, valid->is_transposed()) == wanted;
        };
        CHECK(is_same(elements(**valid)));
        CHECK_EQ(canonical::count_batches(**valid), valid->batch_count());
        const std::optional<ValidProblem> gathered = valid->gathered();
        if (!gathered) continue;
        ++gathered_ones;
        CHECK(is_same(elements(gathered->ungathered())));
        const GemmProblem& p = **gathered;
        CHECK_EQ(canonical::count_batches(p), gathered->batch_count());
        OperandNeeds any, wide, k_major;
        any.any_dtype = true;
        wide.vector_bytes = 16, wide.tensor_map = true, wide.packed_row_bytes = 128;
        k_major.vector_bytes = 8, k_major.k_major_a = true;
        for (const OperandNeeds& needs : {any, wide, k_major}) {
            const PackStep step = plan_packing(*gathered, needs, Schedule{}).a;
            CHECK_EQ(step.needed, p.k > 0);
            if (!step.needed) continue;
            CHECK(p.m == 1 || step.result.row_stride > 0);
            const std::vector<int64_t> from = packed_from(step.task);
            Operand packed = p.a;
            packed.row_stride = step.result.row_stride;
            packed.col_stride = step.result.col_stride;
            std::copy_n(step.result.batch_stride, kMaxBatchDims, packed.batch_stride.begin());
            CHECK(is_same(elements(p, [&](int64_t batch, int64_t row, int64_t k) {
                return from.at(at(p, packed, batch, row, k));
            })));
        }
    }
    CHECK(gathered_ones > 200);
}

}  // namespace

int main() { return check::run(); }
