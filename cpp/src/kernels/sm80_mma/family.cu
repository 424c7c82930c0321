// sm80_mma: products on the tensor cores of sm_80 and newer, through mma.sync.
#include <string>

#include "core/l2.hpp"
#include "kernels/blocks_on_sm.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/rejects.hpp"
#include "kernels/row_modes.cuh"
#include "kernels/sm80_mma/launch.hpp"
#include "kernels/sm80_mma/rows.hpp"
#include "kernels/sm80_mma/strips.hpp"
#include "kernels/sm80_mma/whole_k_mma.cuh"
#include "kernels/tile_launch.cuh"
#include "kernels/wave_model.hpp"

namespace tcgemm::sm80_mma {
namespace {

constexpr int kBandRows = 1024;  // see launch_tiles()

// See wave::RowCost, measured on an H100: of rows whose warps share K, and where their grid starts
// while the one before ends.
constexpr double kSharedKLaunchUs = 0.6, kSharedKReduceUs = 4.5;
constexpr double kOverlappedLaunchUs = 0.3, kOverlappedReduceUs = 3.3;

template <class Row>
constexpr DType element() {
    return dtype_of<typename Row::ElementA>();
}

// Of the problem's k.
template <class Row>
constexpr int kBlockK = Row::halves ? kHalvesBlock : Row::tile.block_k;

// Why a row does not multiply what the problem asks for; empty: it does.
template <class Row>
std::string rejects_elements(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr DType a = element<Row>(), b = dtype_of<typename Row::ElementB>();
    constexpr bool is_tf32 = a == DType::f32;
    if (is_tf32 && problem->precision != Precision::tf32) {
        return multiplies_others(problem, "tf32", "tf32");
    }
    if (Row::fp8 && !is_fp8_of(problem, a, b)) return multiplies_others(problem, name(a), name(b));
    if (problem.batch_invariant() && is_fp8(problem->precision)) {
        // One kind of sums, whatever M is.
        if (a == DType::f16 && device.cc() >= kFp8Cc) {
            return "multiplies FP8 as float16, and rows for FP8 itself give other bits";
        }
        const bool fast_in_fp32 = !Row::fp8 && problem->accumulate == Accumulate::fast;
        if (accumulate_of<Row>() != (fast_in_fp32 ? Accumulate::fp32 : problem->accumulate)) {
            return sums_otherwise(accumulate_of<Row>());
        }
    }
    if (!Row::block_scales && problem.has_block_scales()) {
        return "scales whole sums only, the problem has scales of blocks";
    }
    return rejects_mode(problem, device, Row::fp8 ? problem.compute_dtype() : a,
                        accumulate_of<Row>(), Row::scales ? problem.epilogue() : Epilogue::linear);
}

template <class Row>
std::string rejects(const ValidProblem& problem, const DeviceProperties& device) {
    if (device.shared_memory_per_block < Row::shared_bytes) {
        return "needs " + std::to_string(Row::shared_bytes) +
               " bytes of shared memory a block, the device has " +
               std::to_string(device.shared_memory_per_block);
    }
    std::string reason =
        Row::halves ? rejects_halves_mode(problem, device) : rejects_elements<Row>(problem, device);
    if (reason.empty() && Row::warps_k > 1 && problem.batch_invariant()) {
        reason = competes_in_other_bits();
    }
    if (reason.empty()) reason = rejects_tiles(problem, Row::tile);
    return reason.empty() ? rejects_k_blocks(problem, kBlockK<Row>, Row::stages) : reason;
}

template <class Row>
constexpr OperandNeeds needs() {
    OperandNeeds needs;
    needs.vector_bytes = Row::unaligned ? 8 : 16;
    needs.packed_row_bytes = kLineBytes;
    needs.fp8 = Row::fp8;
    needs.k_major_a = needs.k_major_b = !Row::any_major;
    needs.halves_block = Row::halves ? kHalvesBlock : 0;
    return needs;
}

template <class Row>
Schedule schedule(const ValidProblem& problem, const DeviceProperties& device) {
    const int blocks_per_sm = blocks_on_sm(Row::shared_bytes, Row::blocks_per_sm, device);
    wave::RowCost cost = {
        Row::tile,       blocks_per_sm,       Row::k_block_us, Row::block_us,
        Row::latency_us, Row::far_latency_us, element<Row>(),  sum_dtype(element<Row>()),
        Row::halves};
    if (Row::warps_k > 1) {
        const bool overlaps = Row::overlaps && device.cc() >= 90;
        cost.launch_us = overlaps ? kOverlappedLaunchUs : kSharedKLaunchUs;
        cost.reduce_us = overlaps ? kOverlappedReduceUs : kSharedKReduceUs;
    }
    cost.tile.block_k = kBlockK<Row>;
    Schedule schedule = wave::schedule_row(cost, problem, device);
    schedule.cost_us += packing_us(problem, device, needs<Row>());
    return schedule;
}

template <class Row>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    const LaunchLayout launch_one = by_majors<Row::any_major, Row::any_major>(
        args, [](auto a, auto b) -> LaunchLayout { return launch_layout<Row, a(), b()>; });
    launch_tiles<Row>(args, schedule, stream, element<Row>(), kBandRows, launch_one);
}

template <class Element, class Accumulator, int kTile>
std::string rejects_whole_k(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr DType kDType = dtype_of<Element>();
    if (kDType == DType::f32 && problem->precision != Precision::tf32) {
        return multiplies_others(problem, "tf32", "tf32");
    }
    const std::string reason =
        rejects_mode(problem, device, kDType, accumulate_of<Element, Accumulator>());
    return reason.empty()
               ? whole_k::rejects_size(problem, WholeKMma<Element, Accumulator, kTile>::kShape)
               : reason;
}

template <class Element, class Accumulator, int kTile>
constexpr KernelInfo whole_k_row(const char* name) {
    KernelInfo info = whole_k::row<WholeKMma<Element, Accumulator, kTile>>(
        name, rejects_whole_k<Element, Accumulator, kTile>);
    info.least_cc = 80;
    return info;
}

template <class Element, int kTile, bool kAnyK>
std::string rejects_strips(const ValidProblem& problem, const DeviceProperties& device) {
    const std::string reason = rejects_mode(problem, device, dtype_of<Element>(), Accumulate::fp32);
    return reason.empty() ? rejects_strips_size(problem, device, kTile, kAnyK) : reason;
}

template <class Element, int kTile, bool kAnyK>
constexpr KernelInfo strips_row(const char* name) {
    KernelInfo info = {name,
                       {kTile, kTile, whole_k::kMaxK, kStripRows, kTile, strip_threads(kTile)},
                       whole_k::needs(kStripItem),
                       rejects_strips<Element, kTile, kAnyK>,
                       schedule_strips<kTile, kAnyK>,
                       launch_strips<Element, kTile, kAnyK>};
    info.dynamic_shared_bytes = usual_strips_bytes(kTile);
    info.competes = true;
    info.least_cc = 80;
    return info;
}

constexpr KernelInfo kKernels[] = {
#define TCGEMM_ROW(id, ...)                                   \
    {id::name,     id::tile,   needs<id>(),      rejects<id>, \
     schedule<id>, launch<id>, id::shared_bytes, id::least_cc},
    TCGEMM_SM80_MMA_ROWS(TCGEMM_ROW) TCGEMM_SM80_MMA_K_MAJOR_ROWS(TCGEMM_ROW)
        TCGEMM_SM80_MMA_FP8_ROWS(TCGEMM_ROW) TCGEMM_SM80_MMA_HALVES_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW
            whole_k_row<__half, float, 16>("sm80_mma_f16_whole_k_16x16"),
    whole_k_row<__half, float, 32>("sm80_mma_f16_whole_k_32x32"),
    strips_row<__half, 64, false>("sm80_mma_f16_strips_64x64"),
    strips_row<__half, 128, false>("sm80_mma_f16_strips_128x128"),
    strips_row<__half, 64, true>("sm80_mma_f16_strips_64x64x128"),
    whole_k_row<__nv_bfloat16, float, 16>("sm80_mma_bf16_whole_k_16x16"),
    whole_k_row<__nv_bfloat16, float, 32>("sm80_mma_bf16_whole_k_32x32"),
    strips_row<__nv_bfloat16, 64, false>("sm80_mma_bf16_strips_64x64"),
    strips_row<__nv_bfloat16, 128, false>("sm80_mma_bf16_strips_128x128"),
    strips_row<__nv_bfloat16, 64, true>("sm80_mma_bf16_strips_64x64x128"),
    whole_k_row<device::Tf32, float, 16>("sm80_mma_tf32_whole_k_16x16"),
    whole_k_row<device::Tf32, float, 32>("sm80_mma_tf32_whole_k_32x32"),
    whole_k_row<double, double, 16>("sm80_mma_f64_whole_k_16x16"),
    whole_k_row<double, double, 32>("sm80_mma_f64_whole_k_32x32"),
    whole_k_row<std::int8_t, std::int32_t, 16>("sm80_mma_i8_whole_k_16x16"),
    whole_k_row<std::int8_t, std::int32_t, 32>("sm80_mma_i8_whole_k_32x32"),
};
constexpr Family kFamily = {kKernels, static_cast<int>(std::size(kKernels)), false};

}  // namespace

const Family& family() { return kFamily; }

}  // namespace tcgemm::sm80_mma
