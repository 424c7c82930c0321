// CUDA cores: the family that asks for nothing. Any size that tiles can be counted of, any stride
// and alignment, every dtype.
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/packing_cost.hpp"
#include "kernels/rejects.hpp"
#include "kernels/simt/cost_model.hpp"
#include "kernels/simt/few_rows.hpp"
#include "kernels/simt/few_rows_model.hpp"
#include "kernels/simt/outer.hpp"
#include "kernels/simt/outer_model.hpp"
#include "kernels/simt/policy.hpp"
#include "kernels/simt/tile_feed.cuh"
#include "kernels/simt/whole_k_fma.cuh"
#include "kernels/simt/whole_k_rows.cuh"

namespace tcgemm::simt {
namespace {

template <class Policy>
std::string rejects(const ValidProblem& problem, const DeviceProperties& device) {
    using Numbers = typename Policy::Numbers;
    if (Policy::kSlices > 1 && problem.batch_invariant()) return competes_in_other_bits();
    // Of FP8 with fast sums, which both would serve.
    const bool is_other = Numbers::kAccumulate == Accumulate::promoted && !kIsScaled<Numbers> &&
                          problem->accumulate == Accumulate::fast;
    if (is_other && problem.batch_invariant()) return sums_otherwise(Numbers::kAccumulate);
    std::string reason = rejects_mode(problem, device, Numbers::kDType, Numbers::kAccumulate,
                                      kIsScaled<Numbers> ? Epilogue::scaled : Epilogue::linear);
    return reason.empty() ? rejects_tiles(problem, Policy::tile) : reason;
}

constexpr OperandNeeds kTileNeeds = {false, 0};  // any strides

// kEfficiency: of the multiply-add rate that a busy SM reaches, in percent,
// beside what each k-tile takes (kKTileCycles).
template <class Policy, int kEfficiency>
Schedule schedule(const ValidProblem& problem, const DeviceProperties& device) {
    using Numbers = typename Policy::Numbers;
    TileCost cost;
    cost.block_m = Policy::kBlockM;
    cost.block_n = Policy::kBlockN;
    cost.block_k = Policy::kBlockK;
    cost.thread_outputs = Policy::kThreadM * Policy::kThreadN;
    cost.slices = Policy::kSlices;
    cost.step_k = Policy::kStepK;
    cost.resident = Policy::kBlocksPerSm;
    cost.ahead = tiles_ahead<Policy>(device.cc());
    cost.ends_in_pairs = std::is_same_v<typename Numbers::Acc, float> && Policy::kBlocksPerSm == 2;
    cost.multiply_cycles =
        Policy::kBlockM * Policy::kBlockN * Policy::kBlockK / Numbers::kFmaPerCycle;
    cost.efficiency = kEfficiency / 100.0;
    cost.element_bytes = sizeof(typename Numbers::Element);
    cost.accumulator_bytes = sizeof(typename Numbers::Acc);
    // Partial sums in FP16 would be rounded otherwise than one FP16 accumulator rounds. The
    // reduction of scaled ones would be two more kernels for long K and few tiles alone.
    cost.splits = Numbers::kAccumulate != Accumulate::fp16 && !kIsScaled<Numbers>;
    Schedule schedule = tiles_schedule(cost, problem, device);
    static_assert(!kIsScaled<Numbers> || Policy::kBlockM == Policy::kBlockN,
                  "transposed() leaves scales as they are");
    if (Policy::kBlockM != Policy::kBlockN) {
        const Schedule across = tiles_schedule(cost, problem.as_transposed(), device);
        if (across.cost_us < schedule.cost_us) {
            schedule = across;
            schedule.transposed = true;
        }
    }
    schedule.cost_us += packing_us(problem, device, kTileNeeds);
    return schedule;
}

// As the kernel for few rows computes it: few columns are the rows of D^T.
bool is_across(const ValidProblem& problem) { return problem->n < problem->m; }
ValidProblem with_few_rows(const ValidProblem& problem) {
    return is_across(problem) ? problem.as_transposed() : problem;
}

// Why the numbers of a kernel for few rows are not the problem's; empty: they are.
template <class Numbers>
std::string rejects_numbers(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr bool kRounds = std::is_same_v<Numbers, TF32>;
    if (problem.compute_dtype() == DType::f32 &&
        kRounds != (problem->precision == Precision::tf32)) {
        return kRounds ? multiplies_others(problem, "TF32", "TF32")
                       : multiplies_others(problem, "float32", "float32");
    }
    return rejects_mode(problem, device, Numbers::kDType, Numbers::kAccumulate);
}

constexpr KernelInfo competing(KernelInfo info) {
    info.competes = true;
    return info;
}

template <class Policy>
std::string rejects_few_rows(const ValidProblem& problem, const DeviceProperties& device) {
    if (problem.batch_invariant()) {
        return "splits K by the number of tiles, which determinism batch_invariant rules out";
    }
    std::string reason = rejects_numbers<typename Policy::Numbers>(problem, device);
    if (reason.empty()) reason = rejects_k_blocks(problem, 1, 2 * Policy::kBlockK);
    return reason.empty() ? rejects_tiles(with_few_rows(problem), Policy::tile) : reason;
}

// Of kernels whose blocks have all of K: as the operands are and as the sums they store.
template <class Numbers>
std::string rejects_short(const ValidProblem& problem, const DeviceProperties& device, int most_k) {
    if (problem.batch_invariant()) return competes_in_other_bits();
    std::string reason = rejects_numbers<Numbers>(problem, device);
    if (reason.empty()) reason = rejects_long_k(problem, most_k);
    constexpr DType own = Numbers::kDType, sums = sum_dtype(own);
    if (reason.empty() && problem->d.dtype != own && problem->d.dtype != sums) {
        reason = std::string("stores ") + name(own) + (own == sums ? "" : " and float32") +
                 ", the problem asks for " + name(problem->d.dtype);
    }
    return reason;
}

template <class Policy>
constexpr OperandNeeds few_rows_needs() {
    OperandNeeds needs = {false, sizeof(typename Policy::Element)};
    needs.rounds_to_tf32 = true;
    return needs;
}

template <class Policy>
Schedule schedule_few_rows(const ValidProblem& problem, const DeviceProperties& device) {
    const ValidProblem product = with_few_rows(problem);
    const bool along_n = lies_along_n(product->b.row_stride, product->b.col_stride, product->n);
    const int cols =
        along_n ? Threads<Policy, Major::mn>::kBlockCols : Threads<Policy, Major::k>::kBlockCols;
    const bool strided = Policy::kRows > 1 && sizeof(typename Policy::Element) > 2 &&
                         product->m > 1 && product->a.row_stride == 1;
    const double step = along_n ? step_us<Policy>().along_n : step_us<Policy>().along_k;
    const FewRowsCost cost = {Policy::kRows,
                              cols,
                              Policy::kBlockK,
                              Policy::kBlocksPerSm,
                              step * (strided ? kAlongM : 1),
                              sizeof(typename Policy::Element),
                              sizeof(typename Policy::Acc)};
    Schedule schedule = few_rows_schedule(cost, product, device);
    schedule.cost_us += packing_us(problem, device, few_rows_needs<Policy>());
    schedule.transposed = is_across(problem);
    return schedule;
}

template <class Policy>
constexpr KernelInfo few_rows(const char* name) {
    return competing({name, Policy::tile, few_rows_needs<Policy>(), rejects_few_rows<Policy>,
                      schedule_few_rows<Policy>, launch_few_rows<Policy>});
}

template <class Policy>
std::string rejects_outer(const ValidProblem& problem, const DeviceProperties& device) {
    const std::string reason =
        rejects_short<typename Policy::Numbers>(problem, device, Policy::kBlockK);
    return reason.empty() ? rejects_tiles(problem, Policy::tile) : reason;
}

// Along D or across it, whichever costs less.
template <class Policy>
Schedule schedule_outer(const ValidProblem& problem, const DeviceProperties& device) {
    const auto us = [&](const ValidProblem& its) {
        const bool fits = rejects_tiles(its, Policy::tile).empty();
        return fits ? outer_us(Policy::kTile, its, device)
                    : std::numeric_limits<double>::infinity();
    };
    const double along = us(problem), across = us(problem.as_transposed());
    Schedule schedule;
    schedule.transposed = across < along;
    schedule.cost_us = std::min(along, across) + packing_us(problem, device, kTileNeeds);
    return schedule;
}

template <class Policy>
constexpr KernelInfo outer(const char* name) {
    KernelInfo info = competing({name, Policy::tile, kTileNeeds, rejects_outer<Policy>,
                                 schedule_outer<Policy>, launch_outer<Policy>});
    info.dynamic_shared_bytes = outer_shared_bytes(Policy::kTile, Policy::kBlockK);
    return info;
}

template <class Math>
std::string rejects_whole_k(const ValidProblem& problem, const DeviceProperties& device) {
    using Numbers = typename Math::Numbers;
    constexpr whole_k::Shape kShape = Math::kShape;
    const std::string reason = kShape.lanes_have_rows
                                   ? rejects_short<Numbers>(problem, device, whole_k::kMaxK)
                                   : rejects_numbers<Numbers>(problem, device);
    if (!reason.empty()) return reason;
    return whole_k::rejects_size(
        kShape.lanes_have_rows ? whole_k::with_more_rows(problem) : problem, kShape);
}

template <class Math>
constexpr KernelInfo whole_k_row(const char* name) {
    return whole_k::row<Math>(name, rejects_whole_k<Math>);
}

template <class Policy, int kEfficiency>
constexpr KernelInfo row(const char* name) {
    return {name,          Policy::tile, kTileNeeds, rejects<Policy>, schedule<Policy, kEfficiency>,
            launch<Policy>};
}

constexpr KernelInfo kKernels[] = {
    row<Large<F32>, 75>("simt_f32_128x128x16"),
    row<Wide<F32>, 74>("simt_f32_64x128x16"),
    row<Medium<F32>, 69>("simt_f32_64x64x16"),
    row<Narrow<F32>, 66>("simt_f32_32x128x16"),
    row<Tall<F32>, 66>("simt_f32_128x32x16"),
    row<Small<F32>, 54>("simt_f32_32x32x16"),
    row<WideSliced<F32>, 72>("simt_f32_sliced_k_64x128x16"),
    row<SmallSliced<F32>, 46>("simt_f32_sliced_k_32x32x32"),
    row<Large<F16>, 80>("simt_f16_128x128x8"),
    row<Small<F16>, 49>("simt_f16_32x32x8"),
    row<Large<F16AccF16>, 87>("simt_f16_acc_f16_128x128x8"),
    row<Small<F16AccF16>, 49>("simt_f16_acc_f16_32x32x8"),
    row<Large<BF16>, 80>("simt_bf16_128x128x8"),
    row<Small<BF16>, 49>("simt_bf16_32x32x8"),
    row<Medium<Promoted<F32>>, 68>("simt_f32_promoted_64x64x8"),
    row<Medium<Promoted<F16>>, 65>("simt_f16_promoted_64x64x8"),
    row<Medium<Promoted<BF16>>, 65>("simt_bf16_promoted_64x64x8"),
    row<Large<F64>, 75>("simt_f64_64x128x8"),
    row<Medium<F64>, 72>("simt_f64_64x64x8"),
    row<Small<F64>, 58>("simt_f64_32x32x8"),
    row<Large<I8>, 97>("simt_i8_128x128x8"),
    row<Small<I8>, 82>("simt_i8_32x32x8"),
    row<Medium<Scaled<Promoted<F16>>>, 65>("simt_f16_scaled_64x64x8"),
    row<Medium<Scaled<I8>>, 71>("simt_i8_scaled_64x64x8"),
    few_rows<FewRows<F32, 1>>("simt_f32_1x32x256"),
    few_rows<FewRows<F32, 8>>("simt_f32_8x32x256"),
    few_rows<FewRows<TF32, 1>>("simt_tf32_1x32x256"),
    few_rows<FewRows<TF32, 8>>("simt_tf32_8x32x256"),
    few_rows<FewRows<F16, 1>>("simt_f16_1x32x256"),
    few_rows<FewRows<F16, 8>>("simt_f16_8x32x256"),
    few_rows<FewRows<BF16, 1>>("simt_bf16_1x32x256"),
    few_rows<FewRows<BF16, 8>>("simt_bf16_8x32x256"),
    few_rows<FewRows<F64, 1>>("simt_f64_1x32x256"),
    few_rows<FewRows<F64, 8>>("simt_f64_8x32x256"),
    outer<Outer<F32>>("simt_f32_outer_64x128"),
    outer<Outer<F64>>("simt_f64_outer_64x64"),
    whole_k_row<WholeKFma<16>>("simt_f32_whole_k_16x16"),
    whole_k_row<WholeKFma<32>>("simt_f32_whole_k_32x32"),
    whole_k_row<WholeKRows<F32>>("simt_f32_whole_k_128x8"),
    whole_k_row<WholeKRows<F16>>("simt_f16_whole_k_128x8"),
    whole_k_row<WholeKRows<BF16>>("simt_bf16_whole_k_128x8"),
    whole_k_row<WholeKRows<F64>>("simt_f64_whole_k_64x8"),
    whole_k_row<WholeKRows<I8>>("simt_i8_whole_k_128x8"),
};

}  // namespace

const Family& family() {
    static constexpr Family kFamily{kKernels, sizeof(kKernels) / sizeof(kKernels[0]), false};
    return kFamily;
}

}  // namespace tcgemm::simt
