// How long a row of the table would take, in microseconds: for choosing among the rows and splits.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math.hpp"
#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/sm90_wgmma/arrangement.hpp"
#include "kernels/sm90_wgmma/load_model.hpp"
#include "kernels/sm90_wgmma/store.hpp"
#include "kernels/split_k/split_choice.hpp"

namespace tcgemm::sm90_wgmma {

// Measured by schedule_bench: the constants of loads, power, splits and clusters fitted to all
// schedules of 184 products in FP16 on an H100 (step 82), the others on an H200.
// Of memory, to an SM whose block reads more than its ring holds.
inline constexpr double kAloneBytesPerUs = 7.25e4;
// And to a pair of SMs, both of which are at it, as rows of A. (Columns of B are narrowed until
// pairs have equal shares.)
inline constexpr double kPairBytesPerUs = 6.45e4;
inline constexpr double kRingBytes = 192 << 10;  // of stages, at once
// A k-block, however narrow the tile: of a ring of k-blocks, and of one.
inline constexpr double kLatencyUs = 1.1, kIssueUs = 0.075;
// How much longer multiplications of large tiles take, for power, where all SMs are at them; from
// this share of the SMs on. And elements of a tile that is large.
inline constexpr double kThrottle = 0.3, kCool = 0.3, kLargeTile = 64 * 256;
// Two SMs share a port to L2. Up to half of them have one for themselves: loads take so much of the
// time that they take where all SMs load, at least and for the share of the SMs at work.
inline constexpr double kPortAlone = 0.52, kPortShare = 1.3;
// Saved of the store of columns that are not there, of 16-bit rows (of others all).
inline constexpr double kNarrowStore = 0.54;
// Two blocks on an SM that promote sums of FP8 hide what each waits for from each other: of the
// time that they take one behind the other.
inline constexpr double kTogether = 0.65;
// Of the time of 64 columns, what those cost that a narrower tile does not have; where sums of FP8
// are promoted more.
inline constexpr double kMissing = 0.5, kMissingPromoted = 0.7;
// A k-block of large tiles that promote sums of FP8 takes what so many columns would and this part
// of its own, at least (112 to 208 columns, an H200).
inline constexpr double kPromotedColumns = 52, kOfPromoted = 0.73;
inline constexpr double kPairUs = 0.38;  // blocks that share B begin together
// Where an operand that does not fit into L2 is read twice as often, of the time of one read: by
// all parts of K, by one wave of tiles and by several. And for columns of B's boxes beside a
// tile's.
inline constexpr double kPartsAtOnce = 0.02, kAtOnce = 0.13, kAgain = 0.18;
inline constexpr double kBeside = 1.1;
// From partial sums in a workspace to D: at least; to and from an SM; and an element of D.
inline constexpr double kSplitUs = 0.42, kSumBytesPerUs = 4.3e4, kSharedStoreUs = 4.4e-4;
// And where the next launch, whose blocks begin all at once, has no SMs to make ready on meanwhile.
inline constexpr double kNoRoomUs = 0.77;
// In a cluster: besides, and an element of a warpgroup.
inline constexpr double kMeetUs = 0.31, kSendUs = 1.9e-4;
// The store of a tile and of its elements, hidden or not; and more, where the copy engine can't.
inline constexpr double kTileStoreUs = 0.5, kStoreUs = 1.07 / (128 * 128);
inline constexpr double kCutUs = 0.5;   // of one whose last box is cut, of rows with contiguous k
inline constexpr double kRowsUs = 1.2;  // each 64 rows of 512 bytes of a warpgroup
// Of that, in ping-pong tiles: rows of two go out side by side.
inline constexpr double kRowsBeside = 0.5;
inline constexpr double kElementsUs = 9.0 / (128 * 256);
// Packing A or B with contiguous k, more than as it lies: always, and passes over it.
inline constexpr double kTransposeUs = 1.0, kTransposePasses = 1.5;
// Waits for the pass that packs, all blocks at once: rows of any layout, and of contiguous k.
inline constexpr double kAfterPackUs[2] = {0.3, 0.5};
inline constexpr double kPackedAlongN = 1.03;  // of a k-block's time: B packed as it lies
// Of a k-block's time: sums scaled for blocks of B's columns, and for each column.
inline constexpr double kScaledBlocks = 1.15, kScaledColumns = 1.45;
// Of a k-block's time in ping-pong tiles, where A comes through registers; and at least, however
// few columns there are.
inline constexpr double kFragments = 1.2, kFragmentsUs = 0.2;
// What a consumer stores itself, an element at a time: the other one's wgmma. Rows hold up nothing.
inline constexpr double kHoldsUp = 1.3;
inline constexpr int kMinPartBlocks = 2;
inline constexpr double kMaxWorkspaceBytes = 64.0 * (1 << 20);

inline ProductSize product_size(const RowInfo& row, const ValidProblem& problem) {
    return {problem->m, problem->n, row.k(problem->k), problem.batch_count(),
            problem.has_block_scales()};
}

inline Arrangement arrange(const RowInfo& row, const ValidProblem& problem,
                           const DeviceProperties& device, const Schedule& schedule) {
    return arrange(row, product_size(row, problem), schedule, device.sm_count);
}

// Whether tiles that are not loaded in pairs could be, and that may gain what a row of idle tiles
// costs.
inline bool could_pair(const RowInfo& row, const Arrangement& arrangement,
                       const ValidProblem& problem, const Schedule& schedule) {
    return arrangement.cluster() == 1 && arrangement.clusters_m > 1 && schedule.split_k == 1 &&
           row.tile.block_n >= kLeastPairedN &&
           arrangement.tiles() * problem.batch_count() >= kManyTiles;
}

// `row` for tiles of `columns`.
inline RowInfo narrowed(const RowInfo& row, int columns, bool has_block_scales) {
    int width = widest(row.tile.block_n, has_block_scales);
    for (int next = width; next >= std::max(columns, row.least_n);) {
        width = next;
        next = narrower(width, row.tile.block_n, row.by_steps, has_block_scales);
    }
    RowInfo narrow = row;
    narrow.tile.block_n = width;
    const double part = static_cast<double>(width) / row.tile.block_n;
    const double saved = row.any_major() ? kNarrowStore : 1;
    narrow.start_us -= saved * (1 - part) * row.tile.block_m * row.tile.block_n * kStoreUs;
    // As many rows of A come out of shared memory for fewer columns.
    const double missing = row.block_scales ? kMissingPromoted : kMissing;
    double multiplied = width + missing * std::max(kMmaM - width, 0);
    if (row.block_scales && row.tile.block_m > kMmaM) {
        multiplied = std::max(multiplied, kPromotedColumns + kOfPromoted * width);
    }
    narrow.k_block_us *= multiplied / row.tile.block_n;
    narrow.tile_us *= (1 + part) / 2;
    return narrow;
}

// A k-block of so many blocks at once, whose loads take `load_us` where all SMs are at work, and
// which takes each block `least_us` at least.
inline double k_block_us(const RowInfo& row, const Ring& ring, double load_us, double least_us,
                         double blocks, double sms) {
    const double on_sm =
        std::clamp(std::ceil(blocks / sms), 1.0, static_cast<double>(row.blocks_per_sm));
    const double share = std::min(1.0, blocks / sms);
    const double elements = static_cast<double>(row.tile.block_m) * row.tile.block_n;
    const double together = on_sm > 1 && row.block_scales ? kTogether : 1;
    const double multiply_us =
        together * row.k_block_us *
        (1 + kThrottle * std::max(0.0, share - kCool) * std::min(1.0, elements / kLargeTile));
    // Two SMs share a port to L2, and half of the blocks have one to themselves.
    if (share <= 0.5) load_us *= std::max(kPortAlone, kPortShare * share);
    const double waits_us =
        together * std::max(kIssueUs, kLatencyUs / (ring.stages * row.stage_blocks));
    return on_sm * std::max(overlapped(overlapped(multiply_us, load_us), waits_us), least_us);
}

// Blocks that are at work at once and have as much to read each. Pairs of SMs get memory's rate in
// equal shares: those that have a block more than others are left behind with it, which comes at
// the rate of an SM.
inline double spread_us(double bytes, double blocks, const DeviceProperties& device) {
    const double rate = memory_rate(device), block_bytes = bytes / blocks;
    if (block_bytes <= kRingBytes) return bytes / rate;
    const double pairs = std::max(device.sm_count / 2, 1);
    const double together = std::floor(blocks / pairs) * pairs, rest = blocks - together;
    const double behind = rest > 0 ? rest / std::min(rate, rest * kAloneBytesPerUs) : 0;
    return block_bytes * (together / rate + behind);
}

// What a warp has of a row of D at a time: see RowStore.
inline std::int64_t stored_columns(const RowInfo& row, const Arrangement& arrangement,
                                   DType dtype) {
    return std::min<std::int64_t>(arrangement.n_step,
                                  most_row_bytes(row.consumers) / size_of(dtype));
}

// What the parts of K and the tiles that `chosen` names need and cost.
inline Schedule schedule_with(const RowInfo& of_whole_tiles, const ValidProblem& problem,
                              const DeviceProperties& device, const Forms& forms,
                              const Schedule& chosen) {
    const Arrangement arrangement = arrange(of_whole_tiles, problem, device, chosen);
    const auto columns = static_cast<int>(std::min<std::int64_t>(problem->n, arrangement.n_step));
    const std::int64_t blocks = arrangement.blocks, split = arrangement.split_tiles;
    const bool along_n = n_is_contiguous(of_whole_tiles, problem, chosen);
    const bool from_registers = a_in_registers(of_whole_tiles, problem, forms);
    const Majors majors = {from_registers ? Major::mn : Major::k, along_n ? Major::mn : Major::k};
    const Ring ring =
        ring_of(of_whole_tiles, product_size(of_whole_tiles, problem), majors, chosen, arrangement);
    RowInfo row = narrowed(of_whole_tiles, columns, problem.has_block_scales());
    if (from_registers && row.ping_pong) {
        row.k_block_us = std::max(row.k_block_us * kFragments, kFragmentsUs);
    }
    const auto beside =
        along_n ? static_cast<int>(round_up(arrangement.n_step, kBoxMn) - arrangement.n_step) : 0;
    const int rows = ring.bytes_a / kRowBytes;
    const double loading_us = load_us(rows, columns, beside, arrangement, forms);
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(row.k(problem->k));
    const double batch = static_cast<double>(problem.batch_count());
    const double sms = std::max(device.sm_count, 1), slots = sms * row.blocks_per_sm;
    // With parts of K counted as tiles.
    const double parts = static_cast<double>(split) * chosen.split_k;
    const double whole_tiles = static_cast<double>(arrangement.tiles()) * batch - split;
    const double tiles = whole_tiles + parts;
    const double elements = static_cast<double>(row.tile.block_m) * row.tile.block_n;  // of a tile
    // Of 16-bit ones in ping-pong further tiles take half for the rows that D has in them.
    const bool by_rows = row.any_major() && row.ping_pong && row.tile.block_m == kMmaM;
    const double rows_of_d = by_rows ? std::min(m / kMmaM, 1.0) : 1;  // a part of the tile's
    row.tile_us *= (1 + rows_of_d) / 2;
    const double part_k_blocks =
        std::ceil(static_cast<double>(arrangement.k_blocks) / chosen.split_k);
    const double k_blocks =
        chosen.splits_rest ? static_cast<double>(arrangement.k_blocks) : part_k_blocks;

    // All slots are at work but in the last wave.
    const double full_waves = std::floor((chosen.splits_rest ? whole_tiles : tiles) / slots);
    const double rest = tiles - full_waves * slots;
    const double waves = full_waves + (rest > 0 ? 1 : 0);
    const bool is_split = chosen.splits_all();
    const double clipping_us = clipped_us(of_whole_tiles, problem, chosen, columns, waves > 1);
    const double least_us =
        std::max({clipping_us, far_us(problem, forms, rows, columns),
                  hot_us(of_whole_tiles, problem, chosen, forms, arrangement, device.sm_count)});
    const auto k_blocks_us = [&](double count, double at_once, double least) {
        return count * k_block_us(row, ring, loading_us, least, at_once, sms);
    };
    double busy = full_waves * k_blocks_us(k_blocks, slots, least_us) +
                  (rest > 0 ? k_blocks_us(part_k_blocks, rest, least_us) : 0) +
                  (waves - 1) * row.tile_us;
    if (row.blocks_per_sm == 1) {
        // Of loads that take longer than the multiplication those that the ring has room for come
        // while the tile before is stored.
        const double held = std::min<double>(ring.stages * row.stage_blocks, k_blocks);
        const double ahead_us = k_blocks_us(held, slots, least_us) - k_blocks_us(held, slots, 0);
        busy -= (waves - 1) * std::min(row.tile_us, ahead_us);
    }
    const Operand& d = problem->d;
    const double tiles_on_sm = full_waves * row.blocks_per_sm + std::ceil(rest / sms);
    double cut_us = 0;
    const Store store = store_of(stored_matrix(d, problem->batch_rank), nullptr, problem->m,
                                 problem->n, arrangement.n_step, chosen.transposed);
    const bool copies_d = store == Store::tensor || store == Store::transposed;
    // The copy engine leaves out what D does not have.
    const double stored = copies_d ? static_cast<double>(row.tile.block_m) * columns : elements;
    double store_us = kTileStoreUs + rows_of_d * stored * kStoreUs;
    if (copies_d) {
        // hidden behind the next tile, or part of tile_us
        const bool cuts_boxes = !chosen.transposed && arrangement.n_step < problem->n &&
                                arrangement.n_step * size_of(d.dtype) % kRowBytes != 0;
        if (cuts_boxes && !row.any_major() && chosen.split_k == 1) cut_us = kCutUs;
    } else if (store == Store::rows) {
        const double rows_us = kRowsUs * row.tile.block_m * of_whole_tiles.tile.block_n *
                               size_of(d.dtype) / (row.warpgroups_per_tile() * kMmaM * 512);
        store_us += kRowsBeside * rows_us;
        busy += (row.ping_pong ? 1 : tiles_on_sm) * rows_us;
    } else {
        store_us += elements * kElementsUs;
        busy = row.ping_pong ? busy * kHoldsUp : busy + tiles_on_sm * elements * kElementsUs;
    }
    if (row.ping_pong) {  // two tiles on an SM: none is done before it is stored
        busy = std::max(busy, (waves - 1) * store_us);
    }
    // Several columns (rows) of tiles read A (B): what does not fit into L2 may come from memory
    // again, unless all parts of K are at work at once.
    const double item = row.element_bytes();
    const double matrices_a = distinct_matrices(*problem, problem->a),
                 matrices_b = distinct_matrices(*problem, problem->b);
    const double a_bytes = item * m * k * matrices_a, b_bytes = item * n * k * matrices_b;
    const auto l2_bytes = static_cast<double>(device.l2_bytes);
    const double again = is_split ? kPartsAtOnce : waves > 1 ? kAgain : kAtOnce;
    const auto read = [&](double its_bytes, double matrices, std::int64_t tiles_across) {
        const bool stays = a_bytes + b_bytes < l2_bytes || its_bytes / matrices < l2_bytes / 4;
        const double reads = static_cast<double>(tiles_across) * batch / matrices;
        return its_bytes * (1 + (stays ? 0 : again * std::log2(reads)));
    };
    const double bytes =
        read(a_bytes, matrices_a, arrangement.clusters_n) +
        read(b_bytes, matrices_b, arrangement.clusters_m) *
            (1 + kBeside * beside / arrangement.n_step) +
        stored_bytes(problem, row.tile.block_m, stored_columns(row, arrangement, d.dtype), device);
    // A block alone on its SM has the whole ring, where it is fitted to few rows.
    const bool has_whole_ring = row.few_rows && tiles <= sms;
    double memory_us =
        is_split || has_whole_ring ? spread_us(bytes, tiles, device) : bytes / memory_rate(device);
    // Of rows of A that one tile alone reads, pairs of SMs get no more than kPairBytesPerUs, and
    // some have more tiles than others.
    const double pairs = std::max(device.sm_count / 2, 1);
    if (!is_split && arrangement.tiles_n() == 1 && tiles > pairs && a_bytes / tiles > kRingBytes) {
        memory_us =
            std::max(memory_us, std::ceil(tiles / pairs) * a_bytes / tiles / kPairBytesPerUs);
    }
    Schedule schedule = chosen;
    if (tiles > kMaxTiles) {
        schedule.cost_us = std::numeric_limits<double>::infinity();
        return schedule;
    }
    const int on_sm = has_whole_ring ? 1 : row.blocks_per_sm;
    // In one wave parts of K on all SMs keep memory busy, and so do tiles for few rows of
    // contiguous k and those that promote sums of FP8, which wait for what is no load. More is
    // hidden then.
    const bool keeps_busy =
        waves <= 1 && (row.few_rows || row.block_scales || (is_split && !chosen.in_cluster));
    const double kept_us = keeps_busy ? hidden(busy, memory_us) : overlapped(busy, memory_us);
    schedule.cost_us = row.start_us + cut_us + kept_us;
    if (arrangement.cluster_m == 2) schedule.cost_us += kPairUs;
    const double turned_bytes =
        (chosen.packs_a_k_major ? a_bytes : 0) + (chosen.packs_b_k_major ? b_bytes : 0);
    if (turned_bytes > 0) {
        schedule.cost_us += kTransposeUs + turned_bytes * kTransposePasses / memory_rate(device);
    }
    if (row.halves) {
        schedule.cost_us +=
            halves::packing_us(a_bytes + b_bytes, m * matrices_a + n * matrices_b, device);
    } else if (forms.packs_a || forms.packs_b) {
        PackingWork work;
        const auto add = [&](const Operand& operand, std::int64_t rows, std::int64_t cols,
                             pack::Order order) {
            add_packed(work, *problem, operand, rows, cols, item,
                       row.any_major() ? pack::Order::either : order);
        };
        if (forms.packs_a) add(problem->a, problem->m, problem->k, pack::Order::row);
        if (forms.packs_b) add(problem->b, problem->k, problem->n, pack::Order::col);
        schedule.cost_us += kAfterPackUs[!row.any_major()] + packing_pass_us(work, device);
    }
    // Partial sums are priced as those of whole tiles: fewer columns save a third of what their
    // bytes would take.
    const int whole_n = widest(of_whole_tiles.tile.block_n, problem.has_block_scales());
    const double sums = static_cast<double>(row.tile.block_m) * whole_n;
    if (chosen.in_cluster) {
        schedule.cost_us += kMeetUs + sums / row.warpgroups_per_tile() * kSendUs;
    } else if (chosen.split_k > 1) {
        const auto layout = [&](int its_columns) {
            return split_layout(of_whole_tiles, chosen, arrangement, its_columns);
        };
        // What a block leaves of each of its parts, and what it adds up.
        const SplitLayout shared = layout(whole_n);
        const double slots_used = std::min(parts, slots);
        const double parts_bytes = std::ceil(parts / slots_used) * sums * sizeof(float);
        const double share_bytes =
            static_cast<double>(shared.share_pieces) * kPieceBytes *
            std::ceil(static_cast<double>(split) * shared.shares / slots_used);
        schedule.workspace_bytes = layout(columns).bytes;
        if (2 * blocks > device.sm_count) schedule.cost_us += kNoRoomUs;
        schedule.cost_us += kSplitUs +
                            on_sm * (parts_bytes + share_bytes * chosen.split_k) / kSumBytesPerUs +
                            share_bytes / sizeof(float) * kSharedStoreUs;
    }
    return schedule;
}

inline int invariant_splits(const RowInfo& row, const ValidProblem& problem) {
    constexpr InvariantSplit kSplit = {16384, 2048, 64};
    // Of rows with contiguous k not all split all tiles, so that none does.
    if (!row.any_major()) return 1;
    return std::min(invariant_parts(problem, kSplit), kMaxParts);
}

// Parts of K and columns of tiles with the least cost, of schedules that are otherwise as `form`.
inline Schedule schedule_form(const RowInfo& row, const ValidProblem& problem,
                              const DeviceProperties& device, const Forms& forms,
                              const Schedule& form) {
    Schedule best = form;
    best.split_k = invariant_splits(row, problem);
    const bool splits_always = best.split_k > 1;
    best = schedule_with(row, problem, device, forms, best);
    const auto consider = [&](const Schedule& candidate) {
        const Schedule priced = schedule_with(row, problem, device, forms, candidate);
        const auto bytes = static_cast<double>(priced.workspace_bytes);
        if (bytes <= kMaxWorkspaceBytes && priced.cost_us < best.cost_us) best = priced;
    };

    // Narrower tiles: those that share the columns evenly, and those that fill the SMs, as many
    // columns of them as fit into the waves that whole tiles take, or into one more.
    const Arrangement whole = arrange(row, problem, device, form);
    const std::int64_t slots =
        std::max<std::int64_t>(std::int64_t{device.sm_count} * row.blocks_per_sm, 1);
    const std::int64_t rows = whole.tiles_m() * problem.batch_count();
    const std::int64_t waves = divide_up(rows * whole.tiles_n(), slots);
    // Boxes along n begin at lines of L2, or amid them where pairs of blocks load them together.
    const bool along_n = n_is_contiguous(row, problem, form);
    Schedule pairs = form;
    pairs.shares_b = true;
    const bool can_share = arrange(row, problem, device, pairs).cluster_m == 2;
    const std::int64_t step = problem.has_block_scales() ? scaled_width_step(row.tile.block_n)
                              : !along_n                 ? kWidthStep
                              : can_share                ? kBoxMn / 2
                                                         : kBoxMn;
    // Of so many columns of them; 0: they would not be narrower, or too narrow. Tiles of contiguous
    // k may have fewer columns than are multiplied, down to a box.
    const std::int64_t least_n = round_up(std::int64_t{row.least_n}, step);
    const auto narrower_n = [&](std::int64_t columns) {
        std::int64_t n = round_up(divide_up(problem->n, columns), step);
        if (n < least_n && !row.any_major() && (n < kBoxMn || problem.has_block_scales())) return 0;
        if (row.any_major()) n = std::max(n, least_n);
        return n < whole.n_step ? static_cast<int>(n) : 0;
    };
    // Tiles behind the last whole wave, where most SMs would have none: as many parts of their K as
    // give each SM one. Batches that take several launches have other rests in each.
    const auto consider_rest = [&](Schedule candidate) {
        const bool is_one_launch = problem->batch_rank <= kBatchDims;
        if (problem.batch_invariant() || !is_one_launch) return;
        candidate.splits_rest = true;
        const Arrangement arrangement = arrange(row, problem, device, candidate);
        const std::int64_t all = arrangement.tiles() * problem.batch_count();
        const std::int64_t rest = arrangement.split_tiles;
        if (rest == all || rest == 0) return;
        candidate.split_k = static_cast<int>(std::min<std::int64_t>(
            {slots / rest, arrangement.k_blocks / kMinPartBlocks, kMaxParts}));
        if (candidate.split_k > 1) consider(candidate);
    };
    consider_rest(form);
    for (const std::int64_t columns :
         {whole.tiles_n(), waves * slots / rows, (waves + 1) * slots / rows}) {
        Schedule candidate = form;
        candidate.tile_n = narrower_n(columns);
        candidate.shares_b |= along_n && candidate.tile_n % kBoxMn != 0;
        if (candidate.tile_n > 0 && !splits_always) {
            consider(candidate);
            consider_rest(candidate);
        }
        // Most of what tiles of half a width or less load is A: pairs of columns load it together.
        // Small tiles, two of which share an SM, lost by it (1024 cubed in FP8 5.2 to 5.7 us).
        candidate.tile_n = narrower_n(std::max<std::int64_t>(columns / 2 * 2, 2));
        candidate.shares_a = true;
        candidate.shares_b = false;
        if (candidate.tile_n > 0 && row.any_major() && !along_n && !splits_always &&
            arrange(row, problem, device, candidate).band() == 1) {
            consider(candidate);
        }
    }
    // And those of a box of D, whose store is not cut.
    Schedule box = form;
    box.tile_n = kRowBytes / static_cast<int>(size_of(problem->d.dtype));
    if (row.few_rows && box.tile_n >= row.least_n && !splits_always &&
        !problem.has_block_scales()) {
        consider(box);
    }
    const bool may_split = row.any_major() || row.few_rows || row.halves || row.block_scales;
    if (!may_split || problem.batch_invariant()) return best;

    const auto longest = problem->k / (kMinPartBlocks * row.tile.block_k);  // splits
    const auto consider_split = [&](std::int64_t parts, bool in_cluster) {
        Schedule candidate = form;
        candidate.tile_n = narrower_n(whole.tiles_n());
        candidate.split_k = static_cast<int>(parts);
        candidate.in_cluster = in_cluster;
        if (parts >= 2 && parts <= longest) consider(candidate);
    };
    for (int parts = 2; parts <= kMaxParts; parts += std::max(1, parts / 8)) {
        consider_split(parts, false);
    }
    Schedule pair = form;
    pair.split_k = 2;
    pair.in_cluster = true;
    const std::int64_t tiles = arrange(row, problem, device, pair).tiles() * problem.batch_count();
    consider_split(std::min<std::int64_t>(device.sm_count / tiles, kMaxParts),
                   false);  // a block for each SM
    // The blocks of a cluster have one tile each, and all must be at work at once. Larger clusters
    // leave too many SMs idle.
    if (row.splits_in_cluster && 2 * tiles <= slots) consider_split(2, true);
    return best;
}

// `problem`: as the kernel sees it, turned where that is `transposed`.
inline Schedule schedule_row(const RowInfo& of_any_scales, const ValidProblem& problem,
                             const DeviceProperties& device, const Forms& forms,
                             bool transposed = false) {
    RowInfo row = of_any_scales;
    row.least_n = least_width(row.least_n, row.tile.block_n, a_in_registers(row, problem, forms));
    if (problem.has_block_scales()) {
        const bool of_columns = problem->scale_b.kind == ScaleKind::block_1x128;
        row.k_block_us *= of_columns ? kScaledColumns : kScaledBlocks;
    }
    const auto cheaper = [](const Schedule& one, const Schedule& other) {
        return other.cost_us < one.cost_us ? other : one;
    };
    // Where L2 is the limit, or rows of many tiles are odd in number, pairs of blocks may pay.
    const auto in_form = [&](const RowInfo& its_row, const Forms& its_forms, Schedule form) {
        const Schedule schedule = schedule_form(its_row, problem, device, its_forms, form);
        const Arrangement arrangement = arrange(its_row, problem, device, schedule);
        if (its_forms.at_lines() && !could_pair(its_row, arrangement, problem, schedule)) {
            return schedule;
        }
        form.shares_b = true;
        Schedule in_pairs = schedule_form(its_row, problem, device, its_forms, form);
        return cheaper(schedule, in_pairs);
    };
    Schedule form;
    form.transposed = transposed;
    const bool along_m = m_is_contiguous(row, problem, form);
    const bool along_n = n_is_contiguous(row, problem, form);
    RowInfo packed_along_n = row;
    packed_along_n.k_block_us *= kPackedAlongN;
    // Operands packed with contiguous k.
    const auto turned = [&](bool a, bool b) {
        form.packs_a_k_major = a;
        form.packs_b_k_major = b;
        Forms packed = forms;
        if (a) packed.packs_a = true, packed.a = RowsBegin::at_lines;
        if (b) packed.packs_b = true, packed.b = RowsBegin::at_lines;
        const bool as_it_lies = packed.packs_b && along_n && !b;
        return in_form(as_it_lies ? packed_along_n : row, packed, form);
    };
    // It may pay for a B that is packed anyway, and for operands of fewer rows or columns than a
    // box has, which would come in pieces of a few bytes.
    const bool may_a = along_m && problem->m < kBoxMn;
    const bool may_b = along_n && (forms.packs_b || problem->n < kBoxMn);
    Schedule best = turned(false, false);
    if (may_a) best = cheaper(best, turned(true, false));
    if (may_b) best = cheaper(best, turned(false, true));
    if (may_a && may_b) best = cheaper(best, turned(true, true));
    return best;
}

}  // namespace tcgemm::sm90_wgmma
