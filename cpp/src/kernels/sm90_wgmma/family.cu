// sm90_wgmma: products on Hopper, through TMA and warpgroup matrix instructions.
#include <algorithm>
#include <string>

#include "core/l2.hpp"
#include "core/runtime.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/rejects.hpp"
#include "kernels/row_modes.cuh"
#include "kernels/sm90_wgmma/cost_model.hpp"
#include "kernels/sm90_wgmma/launch.hpp"
#include "kernels/sm90_wgmma/pipeline.cuh"
#include "kernels/sm90_wgmma/prepare.hpp"
#include "kernels/sm90_wgmma/rows.hpp"
#include "kernels/sm90_wgmma/store.hpp"

namespace tcgemm::sm90_wgmma {
namespace {

// Why a row does not multiply what the problem asks for; empty: it does.
template <class Row>
std::string rejects_elements(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr DType a = dtype_of<typename Row::ElementA>();
    constexpr DType b = dtype_of<typename Row::ElementB>();
    constexpr bool is_tf32 = a == DType::f32;
    const bool right_kind = is_fp8(a) ? is_fp8_of(problem, a, b) : !is_fp8(problem->precision);
    if (!right_kind || (problem->precision == Precision::tf32) != is_tf32) {
        return multiplies_others(problem, is_tf32 ? "tf32" : name(a), is_tf32 ? "tf32" : name(b));
    }
    if (!Row::block_scales && problem.has_block_scales()) {
        return "scales whole sums only, the problem has scales of blocks";
    }
    // Scales of blocks have one kind of rows.
    if (problem.batch_invariant() && !problem.has_block_scales() &&
        problem->accumulate != accumulate_of<Row>()) {
        return sums_otherwise(accumulate_of<Row>());
    }
    return rejects_mode(problem, device, is_fp8(a) ? problem.compute_dtype() : a,
                        accumulate_of<Row>(), Row::scales ? problem.epilogue() : Epilogue::linear);
}

template <class Row>
std::string rejects(const ValidProblem& problem, const DeviceProperties& device) {
    std::string reason =
        Row::halves ? rejects_halves_mode(problem, device) : rejects_elements<Row>(problem, device);
    if (!reason.empty()) return reason;
    if (Row::stage_blocks > 1 && invariant_splits(row_info<Row>(), problem) > 1) {
        return "splits K at other places than the kernels for other M, which determinism "
               "batch_invariant rules out";
    }
    constexpr std::int64_t kMaxExtent = 0x7fffffff - 1024;  // coordinates have 32 bits
    const std::int64_t k = problem->k < kMaxExtent ? row_info<Row>().k(problem->k) : problem->k;
    const std::pair<const char*, std::int64_t> extents[] = {
        {"m", problem->m}, {"n", problem->n}, {"k", k}, {"batch", problem.batch_count()}};
    for (const auto& [extent_name, extent] : extents) {
        if (extent > kMaxExtent) {
            return std::string("takes ") + extent_name + " up to 2^31 - 1025, the problem has " +
                   std::to_string(extent) + (Row::halves ? " in halves" : "");
        }
    }
    const RowProduct product = {row_info<Row>(), problem, device, {}};
    const Arrangement arrangement = product.arranged({});
    const std::int64_t tiles = arrangement.tiles() * invariant_splits(row_info<Row>(), problem);
    if (tiles > kMaxTiles / problem.batch_count()) {
        return "counts at most 2^31 - 1 tiles, the problem has " + std::to_string(tiles) +
               " in each of " + std::to_string(problem.batch_count()) + " matrices";
    }
    return {};
}

template <class Row>
constexpr OperandNeeds needs() {
    OperandNeeds needs;
    needs.vector_bytes = 16;
    needs.tensor_map = true;
    needs.packed_row_bytes = kLineBytes;
    needs.fp8 = is_fp8(dtype_of<typename Row::ElementA>());
    needs.rounds_to_tf32 = dtype_of<typename Row::ElementA>() == DType::f32 && !Row::halves;
    needs.k_major_a = !Row::any_major_a;
    needs.k_major_b = !Row::any_major;
    needs.halves_block = Row::halves ? kHalvesBlock : 0;
    return needs;
}

// Where rows of an operand begin that is loaded where it lies. An address amid lines is known only
// when it comes.
RowsBegin rows_begin(const Operand& operand, std::int64_t rows, std::int64_t cols) {
    const auto begin_at = [&](std::int64_t bytes) {
        const auto begins_at = [&](std::int64_t stride) {
            return stride * size_of(operand.dtype) % bytes == 0;
        };
        const bool row_major = operand.col_stride == 1;
        return ((row_major ? rows : cols) <= 1 ||
                begins_at(row_major ? operand.row_stride : operand.col_stride)) &&
               std::all_of(operand.batch_stride.begin(), operand.batch_stride.end(), begins_at);
    };
    if (begin_at(kLineBytes)) return RowsBegin::at_lines;
    return begin_at(kSectorBytes) ? RowsBegin::at_sectors : RowsBegin::amid_sectors;
}

// Whether the copy engine can store D, and load C, for tiles that lie across D.
bool has_boxes_across(const ValidProblem& problem) {
    const GemmProblem& p = *problem;
    const auto takes = [&](const Operand& operand) {
        return copy_engine_takes(stored_matrix(operand, p.batch_rank), p.m, p.n, false);
    };
    return takes(p.d) && takes(p.c);
}

// Columns of a tall D that are rows of tiles at no loss, and mostly a gain.
constexpr std::int64_t kFewColumns = 16;

// Whether tiles may lie across D. Those of any layout, where the copy engine stores D and its
// elements have 16 bits: their columns, of which there may be fewer, are rows of D then, or D's few
// columns their rows. Others where B, which becomes an A in registers, need not be packed for that.
template <class Row>
bool may_transpose(const ValidProblem& problem, const Forms& along, const Forms& across) {
    if (across.packs_a) return false;
    if (!Row::any_major) return along.packs_b && problem->b.row_stride != 1;
    return !across.packs_b && (problem->n >= problem->m || problem->n <= kFewColumns) &&
           size_of(problem->d.dtype) == 2 && has_boxes_across(problem);
}

// How the operands come to a kernel, as its A and B.
template <class Row>
Forms forms_of(const ValidProblem& problem, bool transposed) {
    const GemmProblem& p = *problem;
    constexpr OperandNeeds kNeeds = needs<Row>();
    const auto form = [&](const Operand& operand, std::int64_t rows, std::int64_t cols,
                          pack::Order order) {
        const bool packs = Row::halves || is_packed(problem, operand, rows, cols, kNeeds, order);
        return std::pair(packs, packs ? RowsBegin::at_lines : rows_begin(operand, rows, cols));
    };
    auto [packs_a, a] = form(p.a, p.m, p.k, order_of_a(kNeeds, transposed));
    auto [packs_b, b] = form(p.b, p.k, p.n, order_of_b(kNeeds, transposed));
    return transposed ? Forms{packs_b, packs_a, b, a} : Forms{packs_a, packs_b, a, b};
}

template <class Row>
Schedule schedule(const ValidProblem& problem, const DeviceProperties& device) {
    const GemmProblem& p = *problem;
    const Forms along_forms = forms_of<Row>(problem, false);
    Schedule along_d = cheapest_schedule({row_info<Row>(), problem, device, along_forms}, false);
    if (Row::halves) along_d.cost_us += packing_us(problem, device, needs<Row>());
    if (!Row::any_major_a) return along_d;
    static_assert(!Row::any_major_a || !Row::scales, "transposed() leaves scales as they are");
    const Forms across_forms = forms_of<Row>(problem, true);
    if (!may_transpose<Row>(problem, along_forms, across_forms)) return along_d;
    const ValidProblem transposed = problem.as_transposed();
    const RowProduct across_d = {row_info<Row>(), transposed, device, across_forms};
    const Schedule across = cheapest_schedule(across_d, true);
    if (across.cost_us != along_d.cost_us) {
        return across.cost_us < along_d.cost_us ? across : along_d;
    }
    // Tiles of 64 rows then read the larger operand, B, half as often: in one wave, where they read
    // it at the same time, 2 to 11 % faster at 136 to 256 rows of D.
    const Arrangement arrangement = across_d.arranged(across);
    const bool is_wave = arrangement.tiles() * problem.batch_count() <= device.sm_count;
    return is_wave && Row::tile.block_m == kMmaM && across.split_k == 1 && p.n > p.m ? across
                                                                                     : along_d;
}

// A product of each matrix of batch dimension `dim`, with its scales in `scales`.
GemmArgs at_batch(const GemmArgs& args, int dim, std::int64_t index, ScaleArgs& scales) {
    const auto removed = [&](std::int64_t* of_dims) {
        std::copy(of_dims + dim + 1, of_dims + args.batch.rank, of_dims + dim);
    };
    GemmArgs inner = args;
    inner.batch.rank = args.batch.rank - 1;
    inner.batch.count = args.batch.count / args.batch.extent[dim];
    removed(inner.batch.extent);
    if (args.exponents_a != nullptr) {
        inner.exponents_a += index * args.a.batch_stride[dim] / args.a.row_stride;
        inner.exponents_b += index * args.b.batch_stride[dim] / args.b.col_stride;
    }
    for (MatrixView* const view : {&inner.a, &inner.b, &inner.c, &inner.d}) {
        if (view->data != nullptr) {
            view->data = static_cast<char*>(view->data) +
                         index * view->batch_stride[dim] * size_of(view->dtype);
        }
        removed(view->batch_stride);
    }
    if (args.scales != nullptr) {
        scales = *args.scales;
        inner.scales = &scales;
        for (ScaleView* const view : {&scales.a, &scales.b}) {
            if (view->data != nullptr) view->data += index * view->batch_stride[dim];
            removed(view->batch_stride);
        }
    }
    return inner;
}

template <class Row>
void launch_once(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    const int sm_count = properties(Device::cuda(runtime::current_device())).sm_count;
    by_majors<Row::any_major_a, Row::any_major>(args, [&](auto a, auto b) {
        const Prepared prepared = prepare(row_info<Row>(), args, schedule, {a, b}, sm_count);
        launch_layout<Row, a(), b()>(prepared.params, prepared.blocks, stream);
    });
}

template <class Row>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    if (args.batch.rank > kBatchDims) {
        // A launch for each matrix of the shortest dimension; they use the workspace one after
        // another.
        const std::int64_t* const extent = args.batch.extent;
        const auto dim =
            static_cast<int>(std::min_element(extent, extent + args.batch.rank) - extent);
        for (std::int64_t i = 0; i < extent[dim]; ++i) {
            ScaleArgs scales;
            launch<Row>(at_batch(args, dim, i, scales), schedule, stream);
        }
    } else {
        launch_once<Row>(args, schedule, stream);
    }
}

template <class Row>  // in every layout
constexpr int kSharedBytes = SharedMemory<Policy<Row, Major::k, Major::k>>::kBytes;

// And no card but that: code for sm_90a runs nowhere else (code_for(), dispatch/registry.hpp).
constexpr int kLeastCc = 90;

constexpr KernelInfo kKernels[] = {
#define TCGEMM_ROW(id, ...)                                   \
    {id::name,     id::tile,   needs<id>(),      rejects<id>, \
     schedule<id>, launch<id>, kSharedBytes<id>, kLeastCc},
    TCGEMM_SM90_WGMMA_ROWS(TCGEMM_ROW) TCGEMM_SM90_WGMMA_K_MAJOR_ROWS(TCGEMM_ROW)
        TCGEMM_SM90_WGMMA_HALVES_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW
};
constexpr Family kFamily = {kKernels, static_cast<int>(std::size(kKernels)), false};

}  // namespace

const Family& family() { return kFamily; }

}  // namespace tcgemm::sm90_wgmma
