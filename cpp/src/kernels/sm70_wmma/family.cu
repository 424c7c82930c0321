// sm70_wmma: FP16 products on any tensor core (sm_70 and newer) and INT8 ones from Turing on
// (sm_75), through WMMA.
#include <algorithm>
#include <string>

#include "core/l2.hpp"
#include "kernels/blocks_on_sm.hpp"
#include "kernels/packing_cost.hpp"
#include "kernels/rejects.hpp"
#include "kernels/row_modes.cuh"
#include "kernels/sm70_wmma/gemm_kernel.cuh"
#include "kernels/sm70_wmma/launch.hpp"
#include "kernels/sm70_wmma/rows.hpp"
#include "kernels/tile_launch.cuh"
#include "kernels/wave_model.hpp"

namespace tcgemm::sm70_wmma {
namespace {

// See launch_tiles(). On an H200, 4096 and 8192: 512 up to 4 % faster than 1024, 2048 slower than
// both.
constexpr int kBandRows = 512;

// The last k-block is summed first: rows of another depth give other bits, but of integers. The
// batch-invariant ones are those that the largest problems need.
constexpr int kInvariantBlockK = 32;

// One k-block is in flight at a time; see wave::RowCost.
constexpr double kLatencyUs = 0.5, kFarLatencyUs = 0.8;

template <class Row>
constexpr DType element() {
    return dtype_of<typename Row::Element>();
}

template <class Row>
std::string rejects(const ValidProblem& problem, const DeviceProperties& device) {
    constexpr Accumulate kAccumulate =
        accumulate_of<typename Row::Element, typename Row::Accumulator>();
    if (std::string reason = rejects_mode(problem, device, element<Row>(), kAccumulate,
                                          Row::scales ? problem.epilogue() : Epilogue::linear);
        !reason.empty()) {
        return reason;
    }
    if (problem->accumulate == Accumulate::promoted && !is_fp8(problem->precision)) {
        // 3 K u32, however short K is
        return "truncates sums more often than promoted ones may be";
    }
    if (problem.batch_invariant() && !Row::is_int8 && Row::tile.block_k != kInvariantBlockK) {
        return "sums K in blocks of " + std::to_string(Row::tile.block_k) +
               ", the batch-invariant rows in blocks of " + std::to_string(kInvariantBlockK);
    }
    std::string reason = rejects_tiles(problem, Row::tile);
    return reason.empty() ? rejects_k_blocks(problem, Row::tile.block_k, kBlocksAhead) : reason;
}

// Of a block, the most over the layouts.
template <class Row>
constexpr int shared_bytes() {
    constexpr int k_k = sizeof(SharedMemory<Policy<Row, Major::k, Major::k>>);
    if constexpr (!Row::any_major) {
        return k_k;
    } else {
        constexpr int k_mn = sizeof(SharedMemory<Policy<Row, Major::k, Major::mn>>);
        constexpr int mn_k = sizeof(SharedMemory<Policy<Row, Major::mn, Major::k>>);
        constexpr int mn_mn = sizeof(SharedMemory<Policy<Row, Major::mn, Major::mn>>);
        return std::max({k_k, k_mn, mn_k, mn_mn});
    }
}

template <class Row>
constexpr OperandNeeds needs() {
    OperandNeeds needs;
    needs.vector_bytes = 16;
    needs.packed_row_bytes = kLineBytes;
    needs.k_major_a = needs.k_major_b = !Row::any_major;
    return needs;
}

template <class Row>
Schedule schedule(const ValidProblem& problem, const DeviceProperties& device) {
    const int blocks_per_sm = blocks_on_sm(shared_bytes<Row>(), Row::blocks_per_sm, device);
    Schedule schedule =
        wave::schedule_row({Row::tile, blocks_per_sm, Row::k_block_us, Row::block_us, kLatencyUs,
                            kFarLatencyUs, element<Row>(), sum_dtype(element<Row>())},
                           problem, device);
    schedule.cost_us += packing_us(problem, device, needs<Row>());
    return schedule;
}

template <class Row>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    const LaunchLayout launch_one = by_majors<Row::any_major, Row::any_major>(
        args, [](auto a, auto b) -> LaunchLayout { return launch_layout<Row, a(), b()>; });
    launch_tiles<Row>(args, schedule, stream, element<Row>(), kBandRows, launch_one);
}

constexpr KernelInfo kKernels[] = {
#define TCGEMM_ROW(id, ...)                                     \
    {id::name,     id::tile,   needs<id>(),        rejects<id>, \
     schedule<id>, launch<id>, shared_bytes<id>(), id::least_cc},
    TCGEMM_SM70_WMMA_ROWS(TCGEMM_ROW) TCGEMM_SM70_WMMA_K_MAJOR_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW
};
constexpr Family kFamily = {kKernels, static_cast<int>(std::size(kKernels)), false};

}  // namespace

const Family& family() { return kFamily; }

}  // namespace tcgemm::sm70_wmma
