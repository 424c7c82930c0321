// The search for the schedule of least cost.
#include <algorithm>
#include <cstdint>

#include "core/math.hpp"
#include "kernels/sm90_wgmma/cost_model.hpp"
#include "kernels/split_k/split_choice.hpp"

namespace tcgemm::sm90_wgmma {
namespace {

constexpr int kMinPartBlocks = 2;  // k-blocks of a part of K, at least

// The cheapest of the schedules that are offered; of equals the first.
class Cheapest {
   public:
    Cheapest(const RowProduct& product, const Schedule& first)
        : product_(product), best_(priced(product, first)) {}

    void offer(const Schedule& candidate) {
        constexpr double kMaxWorkspaceBytes = 64.0 * (1 << 20);
        const Schedule schedule = priced(product_, candidate);
        const auto bytes = static_cast<double>(schedule.workspace_bytes);
        if (bytes <= kMaxWorkspaceBytes && schedule.cost_us < best_.cost_us) best_ = schedule;
    }
    const Schedule& best() const { return best_; }

   private:
    const RowProduct& product_;
    Schedule best_;
};

// What generators of candidates know. All candidates are otherwise as `form`.
class Search {
   public:
    Search(const RowProduct& product, const Schedule& form);

    Schedule best() const;

   private:
    int narrower_n(std::int64_t columns) const;
    void offer_split_rest(Schedule candidate, Cheapest& cheapest) const;
    void offer_narrower(Cheapest& cheapest) const;
    void offer_pairs_of_columns(std::int64_t columns, Cheapest& cheapest) const;
    void offer_box(Cheapest& cheapest) const;
    void offer_split(std::int64_t parts, bool in_cluster, Cheapest& cheapest) const;
    void offer_splits(Cheapest& cheapest) const;

    const RowProduct& product_;
    const RowInfo& row_;
    const ValidProblem& problem_;
    const int sm_count_;
    const Schedule form_;
    const Arrangement whole_;   // tiles of all columns
    const std::int64_t slots_;  // blocks at once
    const bool along_n_;        // boxes of B are
    const bool splits_always_;
    std::int64_t step_, least_n_;  // of narrower tiles, columns
};

Search::Search(const RowProduct& product, const Schedule& form)
    : product_(product),
      row_(product.row),
      problem_(product.problem),
      sm_count_(product.device.sm_count),
      form_(form),
      whole_(product.arranged(form)),
      slots_(slots(sm_count_, row_.blocks_per_sm)),
      along_n_(n_is_contiguous(row_, problem_, form)),
      splits_always_(invariant_splits(row_, problem_) > 1) {
    // Boxes along n begin at lines of L2, or amid them where pairs of blocks load them together.
    Schedule pairs = form;
    pairs.shares_b = true;
    const bool can_share = product.arranged(pairs).cluster_m == 2;
    step_ = problem_.has_block_scales() ? scaled_width_step(row_.tile.block_n)
            : !along_n_                 ? kWidthStep
            : can_share                 ? kBoxMn / 2
                                        : kBoxMn;
    least_n_ = round_up(std::int64_t{row_.least_n}, step_);
}

// Of tiles of which there are so many columns; 0: they would not be narrower, or too narrow. Tiles
// of contiguous k may have fewer columns than are multiplied, down to a box.
int Search::narrower_n(std::int64_t columns) const {
    const bool any_major = row_.any_major();
    std::int64_t n = round_up(divide_up(problem_->n, columns), step_);
    if (n < least_n_ && !any_major && (n < kBoxMn || problem_.has_block_scales())) return 0;
    if (any_major) n = std::max(n, least_n_);
    return n < whole_.n_step ? static_cast<int>(n) : 0;
}

// Tiles behind the last whole wave, where most SMs would have none: as many parts of their K as
// give each SM one. Batches that take several launches have other rests in each.
void Search::offer_split_rest(Schedule candidate, Cheapest& cheapest) const {
    const bool is_one_launch = problem_->batch_rank <= kBatchDims;
    if (problem_.batch_invariant() || !is_one_launch) return;
    candidate.splits_rest = true;
    const Arrangement arrangement = product_.arranged(candidate);
    const std::int64_t all = arrangement.tiles() * problem_.batch_count();
    const std::int64_t rest = arrangement.split_tiles;
    if (rest == all || rest == 0) return;
    candidate.split_k = static_cast<int>(
        std::min<std::int64_t>({slots_ / rest, arrangement.k_blocks / kMinPartBlocks, kMaxParts}));
    if (candidate.split_k > 1) cheapest.offer(candidate);
}

// Narrower tiles: those that share the columns evenly, and those that fill the SMs, as many columns
// of them as fit into the waves that whole tiles take, or into one more.
void Search::offer_narrower(Cheapest& cheapest) const {
    if (splits_always_) return;
    const std::int64_t rows = whole_.tiles_m() * problem_.batch_count();
    const std::int64_t waves = divide_up(rows * whole_.tiles_n(), slots_);
    for (const std::int64_t columns :
         {whole_.tiles_n(), waves * slots_ / rows, (waves + 1) * slots_ / rows}) {
        Schedule candidate = form_;
        candidate.tile_n = narrower_n(columns);
        candidate.shares_b |= along_n_ && candidate.tile_n % kBoxMn != 0;
        if (candidate.tile_n > 0) {
            cheapest.offer(candidate);
            offer_split_rest(candidate, cheapest);
        }
        offer_pairs_of_columns(columns, cheapest);
    }
}

// Most of what tiles of half a width or less load is A: pairs of columns load it together. Small
// tiles, two of which share an SM, lost by it (1024 cubed in FP8 5.2 to 5.7 us).
void Search::offer_pairs_of_columns(std::int64_t columns, Cheapest& cheapest) const {
    if (!row_.any_major() || along_n_) return;
    Schedule candidate = form_;
    candidate.tile_n = narrower_n(std::max<std::int64_t>(columns / 2 * 2, 2));
    candidate.shares_a = true;
    candidate.shares_b = false;
    if (candidate.tile_n > 0 && product_.arranged(candidate).band() == 1) {
        cheapest.offer(candidate);
    }
}

// Tiles of a box of D, whose store is not cut.
void Search::offer_box(Cheapest& cheapest) const {
    if (!row_.few_rows || splits_always_ || problem_.has_block_scales()) return;
    Schedule candidate = form_;
    candidate.tile_n = kRowBytes / static_cast<int>(size_of(problem_->d.dtype));
    if (candidate.tile_n >= row_.least_n) cheapest.offer(candidate);
}

void Search::offer_split(std::int64_t parts, bool in_cluster, Cheapest& cheapest) const {
    const std::int64_t most = problem_->k / (kMinPartBlocks * row_.tile.block_k);
    if (parts < 2 || parts > most) return;
    Schedule candidate = form_;
    candidate.tile_n = narrower_n(whole_.tiles_n());
    candidate.split_k = static_cast<int>(parts);
    candidate.in_cluster = in_cluster;
    cheapest.offer(candidate);
}

// The K of all tiles in parts.
void Search::offer_splits(Cheapest& cheapest) const {
    const bool may_split = row_.any_major() || row_.few_rows || row_.halves || row_.block_scales;
    if (!may_split || problem_.batch_invariant()) return;
    for (int parts = 2; parts <= kMaxParts; parts += std::max(1, parts / 8)) {
        offer_split(parts, false, cheapest);
    }
    Schedule pair = form_;
    pair.split_k = 2;
    pair.in_cluster = true;
    const std::int64_t tiles = product_.arranged(pair).tiles() * problem_.batch_count();
    // A block for each SM.
    offer_split(std::min<std::int64_t>(sm_count_ / tiles, kMaxParts), false, cheapest);
    // The blocks of a cluster have one tile each, and all must be at work at once. Larger clusters
    // leave too many SMs idle.
    if (row_.splits_in_cluster && 2 * tiles <= slots_) offer_split(2, true, cheapest);
}

Schedule Search::best() const {
    Schedule whole = form_;
    whole.split_k = invariant_splits(row_, problem_);
    Cheapest cheapest(product_, whole);
    offer_split_rest(form_, cheapest);
    offer_narrower(cheapest);
    offer_box(cheapest);
    offer_splits(cheapest);
    return cheapest.best();
}

Schedule cheaper(const Schedule& one, const Schedule& other) {
    return other.cost_us < one.cost_us ? other : one;
}

// Whether tiles that are not loaded in pairs could be, and that may gain what a row of idle tiles
// costs.
bool could_pair(const RowProduct& product, const Schedule& schedule) {
    const Arrangement arrangement = product.arranged(schedule);
    return arrangement.cluster() == 1 && arrangement.clusters_m > 1 && schedule.split_k == 1 &&
           product.row.tile.block_n >= kLeastPairedN &&
           arrangement.tiles() * product.problem.batch_count() >= kManyTiles;
}

// Where L2 is the limit, or rows of many tiles are odd in number, pairs of blocks may pay.
Schedule best_in_form(const RowProduct& product, Schedule form) {
    const Schedule schedule = Search(product, form).best();
    if (product.forms.at_lines() && !could_pair(product, schedule)) return schedule;
    form.shares_b = true;
    return cheaper(schedule, Search(product, form).best());
}

// Operands packed with contiguous k, or as they lie.
Schedule best_packed(RowProduct product, Schedule form, bool a, bool b) {
    // Of a k-block's time: B packed as it lies. A factor, measured on an H200
    constexpr double kPackedAlongN = 1.03;
    const bool along_n = n_is_contiguous(product.row, product.problem, form);
    form.packs_a_k_major = a;
    form.packs_b_k_major = b;
    Forms& forms = product.forms;
    if (a) forms.packs_a = true, forms.a = RowsBegin::at_lines;
    if (b) forms.packs_b = true, forms.b = RowsBegin::at_lines;
    if (forms.packs_b && along_n && !b) product.row.k_block_us *= kPackedAlongN;
    return best_in_form(product, form);
}

// The row as it multiplies this product.
RowInfo row_of(const RowProduct& product) {
    // Of a k-block's time: sums scaled for blocks of B's columns, and for each column. Factors,
    // measured on an H200
    constexpr double kScaledBlocks = 1.15, kScaledColumns = 1.45;
    const ValidProblem& problem = product.problem;
    RowInfo row = product.row;
    row.least_n =
        least_width(row.least_n, row.tile.block_n, a_in_registers(row, problem, product.forms));
    if (problem.has_block_scales()) {
        const bool of_columns = problem->scale_b.kind == ScaleKind::block_1x128;
        row.k_block_us *= of_columns ? kScaledColumns : kScaledBlocks;
    }
    return row;
}

}  // namespace

int invariant_splits(const RowInfo& row, const ValidProblem& problem) {
    constexpr InvariantSplit kSplit = {16384, 2048, 64};
    // Of rows with contiguous k not all split all tiles, so that none does.
    if (!row.any_major()) return 1;
    return std::min(invariant_parts(problem, kSplit), kMaxParts);
}

Schedule cheapest_schedule(const RowProduct& any_product, bool transposed) {
    RowProduct product = any_product;
    product.row = row_of(any_product);
    const ValidProblem& problem = product.problem;
    Schedule form;
    form.transposed = transposed;
    // It may pay for a B that is packed anyway, and for operands of fewer rows or columns than a
    // box has, which would come in pieces of a few bytes.
    const bool may_a = m_is_contiguous(product.row, problem, form) && problem->m < kBoxMn;
    const bool may_b = n_is_contiguous(product.row, problem, form) &&
                       (product.forms.packs_b || problem->n < kBoxMn);
    Schedule best = best_packed(product, form, false, false);
    if (may_a) best = cheaper(best, best_packed(product, form, true, false));
    if (may_b) best = cheaper(best, best_packed(product, form, false, true));
    if (may_a && may_b) best = cheaper(best, best_packed(product, form, true, true));
    return best;
}

}  // namespace tcgemm::sm90_wgmma
