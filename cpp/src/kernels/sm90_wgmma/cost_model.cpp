#include "kernels/sm90_wgmma/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/math.hpp"
#include "kernels/d_traffic.hpp"
#include "kernels/device_rates.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/sm90_wgmma/store.hpp"

// Where constants come from: [82] is a fit to all schedules of 184 products in FP16 on an H100
// (docs/performance_log.md, step 82); [bench] stands for other schedules that schedule_bench timed,
// on an H200 where nothing else is said.

namespace tcgemm::sm90_wgmma {
namespace {

// Of the store of an element of a tile, hidden or not. us [bench]
constexpr double kStoreUs = 1.07 / (128 * 128);

// From so many bytes that each block reads on, it shows that SMs get unequal shares of memory. It
// is the ring of a block of two consumers alone on its SM, and stands for others' too, which have
// 208 KB (one consumer) and 200 (three).
constexpr double kUnequalFromBytes = 192 << 10;

// What a launch does: all that its time follows from.
struct Launch {
    const RowProduct& product;  // its row: of whole tiles
    const Schedule& schedule;
    RowInfo row;  // with the times of its tiles
    Arrangement arrangement;
    Ring ring = {};
    Store store = Store::elements;

    int rows = 0, columns = 0;  // of A and of D that a tile has
    int beside = 0;             // columns of B's boxes that belong to the next tile
    double elements = 0;        // of a tile that are multiplied
    double rows_of_d = 1;       // a part of the tile's, where the others save time

    double sms = 1, pairs = 1;          // of the device
    double slots = 1;                   // blocks at once
    double whole_tiles = 0, parts = 0;  // tiles whose K is not split, and parts of the others'
    double tiles = 0;                   // both
    double k_blocks = 0;                // of a tile of a full wave, and
    double part_k_blocks = 0;           // of one behind them
    double full_waves = 0, rest = 0;    // waves on all slots, and tiles behind them
    double waves = 0;                   // with those
    double tiles_on_sm = 0;             // at most
    bool splits_all = false;            // the K of every tile
    bool has_whole_ring = false;        // a block alone on its SM, where the ring is fitted to it
    bool has_more_stagings = false;     // see ring_of()
    bool is_short = false;              // a staging for each box of a tile, thanks to those

    double matrices_a = 1, matrices_b = 1;  // that differ
    double a_bytes = 0, b_bytes = 0;        // of those
};

// `row` for tiles of `columns`.
RowInfo narrowed(const RowInfo& row, int columns, bool has_block_scales) {
    // Saved of the store of columns that are not there, of 16-bit rows (of others all). A part [82]
    constexpr double kNarrowStore = 0.54;
    // Of the time of 64 columns, what those cost that a narrower tile does not have; where sums of
    // FP8 are promoted more. Parts [bench]
    constexpr double kMissing = 0.5, kMissingPromoted = 0.7;
    // A k-block of large tiles that promote sums of FP8 takes what so many columns would and this
    // part of its own, at least (112 to 208 columns). Columns and a part [bench]
    constexpr double kPromotedColumns = 52, kOfPromoted = 0.73;
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

// The row with the times of tiles of `columns` of the product's D.
RowInfo timed_row(const RowProduct& product, int columns, bool from_registers, double rows_of_d) {
    // Of a k-block's time in ping-pong tiles, where A comes through registers; and at least,
    // however few columns there are. A factor [82] and us [bench]
    constexpr double kFragments = 1.2, kFragmentsUs = 0.2;
    RowInfo row = narrowed(product.row, columns, product.problem.has_block_scales());
    if (from_registers && row.ping_pong) {
        row.k_block_us = std::max(row.k_block_us * kFragments, kFragmentsUs);
    }
    row.tile_us *= (1 + rows_of_d) / 2;
    return row;
}

// Whether a tile is begun while the one before is stored: see leaves_in_boxes().
bool is_begun_ahead(const Launch& launch) {
    const auto& [row, problem, device, forms] = launch.product;
    const bool has_block_scales = problem.has_block_scales();
    const bool of_columns = problem->scale_b.kind == ScaleKind::block_1x128;
    return begins_ahead(row.block_scales, row.consumers) && begins_ahead_of(problem->d.dtype) &&
           launch.store == Store::tensor && launch.schedule.split_k == 1 &&
           launch.row.tile.block_n >= least_ahead(row.tile.block_n, has_block_scales) &&
           !of_columns;
}

Launch launch_of(const RowProduct& product, const Schedule& schedule) {
    // What a further tile adds, of short ones and of those begun ahead. Parts [bench]
    constexpr double kShortTile = 0.42, kAheadTile = 0.53;
    const RowInfo& row = product.row;
    const ValidProblem& problem = product.problem;
    Launch launch = {product, schedule, row, product.arranged(schedule)};
    const Arrangement& arrangement = launch.arrangement;
    const bool along_n = n_is_contiguous(row, problem, schedule);
    const bool from_registers = a_in_registers(row, problem, product.forms);
    const bool along_m = from_registers || m_is_contiguous(row, problem, schedule);
    const Majors majors = {along_m ? Major::mn : Major::k, along_n ? Major::mn : Major::k};
    launch.ring = ring_of(row, product.size(), majors, schedule, arrangement);
    launch.has_more_stagings = launch.ring.stagings > row.stagings();
    launch.store = store_of(stored_matrix(problem->d, problem->batch_rank), nullptr, problem->m,
                            problem->n, arrangement.n_step, schedule.transposed);

    launch.rows = launch.ring.bytes_a / kRowBytes;
    launch.columns = static_cast<int>(std::min<std::int64_t>(problem->n, arrangement.n_step));
    launch.beside =
        along_n ? static_cast<int>(round_up(arrangement.n_step, kBoxMn) - arrangement.n_step) : 0;
    const double m = static_cast<double>(problem->m), n = static_cast<double>(problem->n);
    const double k = static_cast<double>(row.k(problem->k));
    // Of 16-bit ones in ping-pong further tiles take half for the rows that D has in them.
    const bool by_rows = row.any_major() && row.ping_pong && row.tile.block_m == kMmaM;
    launch.rows_of_d = by_rows ? std::min(m / kMmaM, 1.0) : 1;
    launch.row = timed_row(product, launch.columns, from_registers, launch.rows_of_d);
    const std::int64_t boxes = divide_up(launch.columns * size_of(problem->d.dtype), kRowBytes) *
                               (row.tile.block_m / row.warpgroups_per_tile() / kMmaM);
    launch.is_short = launch.has_more_stagings && !row.ping_pong && boxes > row.stagings() &&
                      boxes <= launch.ring.stagings;
    if (launch.is_short) launch.row.tile_us *= kShortTile;
    if (is_begun_ahead(launch)) launch.row.tile_us *= kAheadTile;
    launch.elements = static_cast<double>(row.tile.block_m) * launch.row.tile.block_n;

    launch.sms = std::max(product.device.sm_count, 1);
    launch.pairs = std::max(product.device.sm_count / 2, 1);
    launch.slots = static_cast<double>(slots(product.device.sm_count, row.blocks_per_sm));
    launch.splits_all = schedule.splits_all();
    const auto split = static_cast<double>(arrangement.split_tiles);
    launch.parts = split * schedule.split_k;
    launch.whole_tiles =
        static_cast<double>(arrangement.tiles()) * static_cast<double>(problem.batch_count()) -
        split;
    launch.tiles = launch.whole_tiles + launch.parts;
    launch.part_k_blocks = std::ceil(static_cast<double>(arrangement.k_blocks) / schedule.split_k);
    launch.k_blocks =
        schedule.splits_rest ? static_cast<double>(arrangement.k_blocks) : launch.part_k_blocks;
    // All slots are at work but in the last wave.
    launch.full_waves =
        std::floor((schedule.splits_rest ? launch.whole_tiles : launch.tiles) / launch.slots);
    launch.rest = launch.tiles - launch.full_waves * launch.slots;
    launch.waves = launch.full_waves + (launch.rest > 0 ? 1 : 0);
    launch.tiles_on_sm =
        launch.full_waves * row.blocks_per_sm + std::ceil(launch.rest / launch.sms);
    launch.has_whole_ring =
        row.fits_ring && (row.few_rows || row.blocks_per_sm > 1) && launch.tiles <= launch.sms;

    const double item = row.element_bytes();
    launch.matrices_a = distinct_matrices(*problem, problem->a);
    launch.matrices_b = distinct_matrices(*problem, problem->b);
    launch.a_bytes = item * m * k * launch.matrices_a;
    launch.b_bytes = item * n * k * launch.matrices_b;
    return launch;
}

// A k-block of so many blocks at once, which takes each of them `least_us` at least.
double k_block_us(const Launch& launch, double blocks, double least_us) {
    // A k-block, however narrow the tile: of a ring of k-blocks, and of one. us [82]
    constexpr double kLatencyUs = 1.1, kIssueUs = 0.075;
    // How much longer multiplications of large tiles take, for power, where all SMs are at them;
    // from this share of the SMs on. And elements of a tile that is large. Parts [82]
    constexpr double kThrottle = 0.3, kCool = 0.3, kLargeTile = 64 * 256;
    // Two SMs share a port to L2. Up to half of them have one for themselves: loads take so much
    // of the time that they take where all SMs load, at least and for the share of the SMs at
    // work. Parts [82]
    constexpr double kPortAlone = 0.52, kPortShare = 1.3;
    // Two blocks on an SM that promote sums of FP8 hide what each waits for from each other: of
    // the time that they take one behind the other. A part [bench]
    constexpr double kTogether = 0.65;
    const RowInfo& row = launch.row;
    const double on_sm =
        std::clamp(std::ceil(blocks / launch.sms), 1.0, static_cast<double>(row.blocks_per_sm));
    const double share = std::min(1.0, blocks / launch.sms);
    const double together = on_sm > 1 && row.block_scales ? kTogether : 1;
    // Of short tiles little of the time is multiplication.
    const double throttle = launch.is_short ? 0 : kThrottle;
    const double multiply_us =
        together * row.k_block_us *
        (1 + throttle * std::max(0.0, share - kCool) * std::min(1.0, launch.elements / kLargeTile));
    double its_load_us = load_us(launch.rows, launch.columns, launch.beside, launch.arrangement,
                                 launch.product.forms);
    if (share <= 0.5) its_load_us *= std::max(kPortAlone, kPortShare * share);
    // Tiles in ping-pong do not miss the stage that further stagings take.
    const int stages = launch.ring.stages + (launch.has_more_stagings && row.ping_pong);
    const double waits_us = together * std::max(kIssueUs, kLatencyUs / (stages * row.stage_blocks));
    return on_sm * std::max(overlapped(overlapped(multiply_us, its_load_us), waits_us), least_us);
}

// What a k-block of a tile takes at least for how its operands come.
double least_k_block_us(const Launch& launch) {
    const auto& [row, problem, device, forms] = launch.product;
    return std::max(
        {clipped_us(row, problem, launch.schedule, launch.columns, launch.waves > 1),
         far_us(problem, forms, launch.rows, launch.columns),
         hot_us(row, problem, launch.schedule, forms, launch.arrangement, device.sm_count)});
}

// The k-blocks of all tiles, and what each further tile adds.
double multiply_us(const Launch& launch) {
    const RowInfo& row = launch.row;
    const double least_us = least_k_block_us(launch);
    const auto k_blocks_us = [&](double count, double at_once, double least) {
        return count * k_block_us(launch, at_once, least);
    };
    const double us =
        launch.full_waves * k_blocks_us(launch.k_blocks, launch.slots, least_us) +
        (launch.rest > 0 ? k_blocks_us(launch.part_k_blocks, launch.rest, least_us) : 0) +
        (launch.waves - 1) * row.tile_us;
    if (row.blocks_per_sm > 1) return us;
    // Of loads that take longer than the multiplication those that the ring has room for come while
    // the tile before is stored.
    const double held = std::min<double>(launch.ring.stages * row.stage_blocks, launch.k_blocks);
    const double ahead_us =
        k_blocks_us(held, launch.slots, least_us) - k_blocks_us(held, launch.slots, 0);
    return us - (launch.waves - 1) * std::min(row.tile_us, ahead_us);
}

// What storing D takes besides what the times of the row have of it.
struct StoreCost {
    double tile_us;       // of a tile, hidden or not
    double holds_up = 1;  // multiplications meanwhile: of their time
    double added_us = 0;  // behind them
    double cut_us = 0;    // of the last boxes
};
StoreCost store_cost(const Launch& launch) {
    // The store of a tile, besides its elements: of few stagings, and of more. us [bench]
    constexpr double kTileStoreUs[2] = {0.5, 0.1};
    // Of one whose last box is cut, of rows with contiguous k. us [bench]
    constexpr double kCutUs = 0.5;
    // Each 64 rows of 512 bytes of a warpgroup, where the copy engine can't. us [bench,
    // an H100]
    constexpr double kRowsUs = 1.2;
    // Of that, in ping-pong tiles: rows of two go out side by side. A part [bench]
    constexpr double kRowsBeside = 0.5;
    // What a consumer stores itself, an element at a time. us [bench]
    constexpr double kElementsUs = 9.0 / (128 * 256);
    // And the other one's wgmma, in ping-pong (rows hold up nothing). A factor [bench]
    constexpr double kHoldsUp = 1.3;
    const RowInfo& row = launch.row;
    const int item = size_of(launch.product.problem->d.dtype);
    const bool copies = launch.store == Store::tensor || launch.store == Store::transposed;
    // The copy engine leaves out what D does not have.
    const double stored =
        copies ? static_cast<double>(row.tile.block_m) * launch.columns : launch.elements;
    StoreCost cost = {kTileStoreUs[launch.has_more_stagings] +
                      launch.rows_of_d * stored * kStoreUs};
    if (copies) {  // hidden behind the next tile, or part of tile_us
        const int n_step = launch.arrangement.n_step;
        const bool cuts_boxes = !launch.schedule.transposed && n_step < launch.product.problem->n &&
                                n_step * item % kRowBytes != 0;
        if (cuts_boxes && !row.any_major() && launch.schedule.split_k == 1) cost.cut_us = kCutUs;
    } else if (launch.store == Store::rows) {
        const double rows_us = kRowsUs * row.tile.block_m * launch.product.row.tile.block_n * item /
                               (row.warpgroups_per_tile() * kMmaM * 512);
        cost.tile_us += kRowsBeside * rows_us;
        cost.added_us = (row.ping_pong ? 1 : launch.tiles_on_sm) * rows_us;
    } else {
        cost.tile_us += launch.elements * kElementsUs;
        if (row.ping_pong) {
            cost.holds_up = kHoldsUp;
        } else {
            cost.added_us = launch.tiles_on_sm * launch.elements * kElementsUs;
        }
    }
    return cost;
}

// All SMs: what they multiply and store.
double busy_us(const Launch& launch, const StoreCost& store) {
    const double us = multiply_us(launch) * store.holds_up + store.added_us;
    // Two tiles on an SM: none is done before it is stored.
    return launch.row.ping_pong ? std::max(us, (launch.waves - 1) * store.tile_us) : us;
}

// Blocks that are at work at once and have as much to read each. Pairs of SMs get memory's rate in
// equal shares: those that have a block more than others are left behind with it, which comes at
// the rate of an SM.
double spread_us(double bytes, double blocks, const DeviceProperties& device) {
    // Of memory, to an SM whose block reads more than its ring holds. Bytes a us [82]
    constexpr double kAloneBytesPerUs = 7.25e4;
    const double rate = memory_rate(device), block_bytes = bytes / blocks;
    if (block_bytes <= kUnequalFromBytes) return bytes / rate;
    const double pairs = std::max(device.sm_count / 2, 1);
    const double together = std::floor(blocks / pairs) * pairs, rest = blocks - together;
    const double behind = rest > 0 ? rest / std::min(rate, rest * kAloneBytesPerUs) : 0;
    return block_bytes * (together / rate + behind);
}

// What a warp has of a row of D at a time: see RowStore.
std::int64_t stored_columns(const Launch& launch) {
    return std::min<std::int64_t>(
        launch.arrangement.n_step,
        most_row_bytes(launch.row.stagings()) / size_of(launch.product.problem->d.dtype));
}

// What memory moves. Several columns (rows) of tiles read A (B): what does not fit into L2 may come
// from memory again, unless all parts of K are at work at once.
double moved_bytes(const Launch& launch) {
    // Where an operand that does not fit into L2 is read twice as often, of the time of one read:
    // by all parts of K, by one wave of tiles and by several. Parts [82]
    constexpr double kPartsAtOnce = 0.02, kAtOnce = 0.13, kAgain = 0.18;
    // Of those of columns of B's boxes beside a tile's. A factor [82]
    constexpr double kBeside = 1.1;
    const auto& [row, problem, device, forms] = launch.product;
    const Arrangement& arrangement = launch.arrangement;
    const auto batch = static_cast<double>(problem.batch_count());
    const auto l2_bytes = static_cast<double>(device.l2_bytes);
    const double again = launch.splits_all ? kPartsAtOnce : launch.waves > 1 ? kAgain : kAtOnce;
    const auto read = [&](double its_bytes, double matrices, std::int64_t tiles_across) {
        const bool stays =
            launch.a_bytes + launch.b_bytes < l2_bytes || its_bytes / matrices < l2_bytes / 4;
        const double reads = static_cast<double>(tiles_across) * batch / matrices;
        return its_bytes * (1 + (stays ? 0 : again * std::log2(reads)));
    };
    return read(launch.a_bytes, launch.matrices_a, arrangement.clusters_n) +
           read(launch.b_bytes, launch.matrices_b, arrangement.clusters_m) *
               (1 + kBeside * launch.beside / arrangement.n_step) +
           stored_bytes(problem, row.tile.block_m, stored_columns(launch), device);
}

double memory_us(const Launch& launch) {
    // Of memory, to a pair of SMs, both of which are at it, as rows of A. (Columns of B are
    // narrowed until pairs have equal shares.) Bytes a us [bench]
    constexpr double kPairBytesPerUs = 6.45e4;
    const DeviceProperties& device = launch.product.device;
    const double bytes = moved_bytes(launch);
    // A block alone on its SM has the whole ring, where a small tile's is fitted.
    const double us = launch.splits_all || launch.has_whole_ring
                          ? spread_us(bytes, launch.tiles, device)
                          : bytes / memory_rate(device);
    // Of rows of A that one tile alone reads, pairs of SMs get no more than kPairBytesPerUs, and
    // some have more tiles than others.
    const bool reads_alone = !launch.splits_all && launch.arrangement.tiles_n() == 1 &&
                             launch.tiles > launch.pairs &&
                             launch.a_bytes / launch.tiles > kUnequalFromBytes;
    if (!reads_alone) return us;
    return std::max(us, std::ceil(launch.tiles / launch.pairs) * launch.a_bytes / launch.tiles /
                            kPairBytesPerUs);
}

// In one wave parts of K on all SMs keep memory busy, and so do tiles for few rows of contiguous k
// and those that promote sums of FP8, which wait for what is no load. More is hidden then.
double busy_and_memory_us(const Launch& launch, double busy_us, double memory_us) {
    const bool keeps_busy =
        launch.waves <= 1 && (launch.row.few_rows || launch.row.block_scales ||
                              (launch.splits_all && !launch.schedule.in_cluster));
    return keeps_busy ? hidden(busy_us, memory_us) : overlapped(busy_us, memory_us);
}

double pair_us(const Launch& launch) {
    constexpr double kPairUs = 0.38;  // blocks that share B begin together. us [bench]
    return launch.arrangement.cluster_m == 2 ? kPairUs : 0;
}

// Packing A or B with contiguous k, more than as it lies.
double packing_k_major_us(const Launch& launch) {
    // Always, and passes over it. us and a factor [bench]
    constexpr double kKMajorUs = 1.0, kKMajorPasses = 1.5;
    const double bytes = (launch.schedule.packs_a_k_major ? launch.a_bytes : 0) +
                         (launch.schedule.packs_b_k_major ? launch.b_bytes : 0);
    if (bytes == 0) return 0;
    return kKMajorUs + bytes * kKMajorPasses / memory_rate(launch.product.device);
}

// The pass that packs operands.
double packing_us(const Launch& launch) {
    // Waits for it, all blocks at once: of rows of any layout, and of contiguous k. us [bench]
    constexpr double kAfterPackUs[2] = {0.3, 0.5};
    const auto& [row, problem, device, forms] = launch.product;
    if (row.halves) {
        const double lines = static_cast<double>(problem->m) * launch.matrices_a +
                             static_cast<double>(problem->n) * launch.matrices_b;
        return halves::packing_us(launch.a_bytes + launch.b_bytes, lines, device);
    }
    if (!forms.packs_a && !forms.packs_b) return 0;
    const bool any_major = row.any_major();
    PackingWork work;
    const auto add = [&, &its_problem = problem, item = row.element_bytes()](
                         const Operand& operand, std::int64_t rows, std::int64_t cols,
                         pack::Order order) {
        add_packed(work, *its_problem, operand, rows, cols, item,
                   any_major ? pack::Order::either : order);
    };
    if (forms.packs_a) add(problem->a, problem->m, problem->k, pack::Order::row);
    if (forms.packs_b) add(problem->b, problem->k, problem->n, pack::Order::col);
    return kAfterPackUs[!any_major] + packing_pass_us(work, device);
}

// Where the next launch, whose blocks begin all at once, has no SMs to make ready on while parts of
// K are added up.
double no_room_us(const Launch& launch) {
    constexpr double kNoRoomUs = 0.77;  // us [82]
    const bool uses_grid = launch.schedule.split_k > 1 && !launch.schedule.in_cluster;
    return uses_grid && 2 * launch.arrangement.blocks > launch.product.device.sm_count ? kNoRoomUs
                                                                                       : 0;
}

// Adding up parts of K. Partial sums are priced as those of whole tiles: fewer columns save a third
// of what their bytes would take.
double adding_us(const Launch& launch) {
    // In a cluster: besides, and an element of a warpgroup. us [82]
    constexpr double kMeetUs = 0.31, kSendUs = 1.9e-4;
    // From partial sums in a workspace to D: at least; to and from an SM; and an element of D.
    // us, bytes a us and us [82]
    constexpr double kSplitUs = 0.42, kSumBytesPerUs = 4.3e4, kSharedStoreUs = 4.4e-4;
    const Schedule& schedule = launch.schedule;
    const RowInfo& row = launch.product.row;
    if (schedule.split_k == 1) return 0;
    const int whole_n = widest(row.tile.block_n, launch.product.problem.has_block_scales());
    const double sums = static_cast<double>(row.tile.block_m) * whole_n;
    if (schedule.in_cluster) return kMeetUs + sums / row.warpgroups_per_tile() * kSendUs;
    // What a block leaves of each of its parts, and what it adds up.
    const SplitLayout layout = split_layout(row, schedule, launch.arrangement, whole_n);
    const double slots_used = std::min(launch.parts, launch.slots);
    const double parts_bytes = std::ceil(launch.parts / slots_used) * sums * sizeof(float);
    const double share_bytes =
        static_cast<double>(layout.share_pieces) * kPieceBytes *
        std::ceil(static_cast<double>(launch.arrangement.split_tiles) * layout.shares / slots_used);
    const int on_sm = launch.has_whole_ring ? 1 : row.blocks_per_sm;
    return kSplitUs + on_sm * (parts_bytes + share_bytes * schedule.split_k) / kSumBytesPerUs +
           share_bytes / sizeof(float) * kSharedStoreUs;
}

}  // namespace

Schedule priced(const RowProduct& product, const Schedule& schedule) {
    Schedule result = schedule;
    const Launch launch = launch_of(product, schedule);
    if (launch.tiles > kMaxTiles) {
        result.cost_us = std::numeric_limits<double>::infinity();
        return result;
    }
    const StoreCost store = store_cost(launch);
    result.cost_us = launch.row.start_us + store.cut_us +
                     busy_and_memory_us(launch, busy_us(launch, store), memory_us(launch)) +
                     pair_us(launch) + packing_k_major_us(launch) + packing_us(launch) +
                     no_room_us(launch) + adding_us(launch);
    result.workspace_bytes =
        split_layout(product.row, schedule, launch.arrangement, launch.columns).bytes;
    return result;
}

}  // namespace tcgemm::sm90_wgmma
