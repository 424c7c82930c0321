// sm90_wgmma: FP16 and BF16 products on Hopper, through TMA and warpgroup matrix instructions.
#include <string>

#include "core/runtime.hpp"
#include "kernels/sm90_wgmma/cost_model.hpp"
#include "kernels/sm90_wgmma/launch.hpp"
#include "kernels/sm90_wgmma/rows.hpp"

namespace tcgemm::sm90_wgmma {
namespace {

template <class Row>
constexpr DType element() {
    return std::is_same_v<typename Row::Element, __half> ? DType::f16 : DType::bf16;
}

template <class Row>
constexpr Accumulate accumulate() {
    if (Row::promoted) return Accumulate::promoted;
    return std::is_same_v<typename Row::Accumulator, __half> ? Accumulate::fp16 : Accumulate::fp32;
}

template <class Row>
std::string rejects(const ValidProblem& problem, const DeviceProperties& device) {
    if (device.cc() != 90) {
        return "needs a Hopper GPU (compute capability 9.0), the device has " +
               std::to_string(device.cc_major) + "." + std::to_string(device.cc_minor);
    }
    if (problem.compute_dtype() != element<Row>()) {
        return std::string("multiplies ") + name(element<Row>()) + ", the problem asks for " +
               name(problem.compute_dtype());
    }
    if (problem->accumulate != accumulate<Row>()) {
        return std::string("accumulates in ") + name(accumulate<Row>()) +
               ", the problem asks for " + name(problem->accumulate);
    }
    if (problem->epilogue != Epilogue::linear) {
        return std::string("has no epilogue ") + name(problem->epilogue);
    }
    if (problem->batch_rank > kBatchDims) {
        return "walks at most 3 batch dimensions, the problem has " +
               std::to_string(problem->batch_rank) + " that no single stride can walk";
    }
    constexpr std::int64_t kMaxExtent = 0x7fffffff - 1024;  // coordinates have 32 bits
    const std::pair<const char*, std::int64_t> extents[] = {
        {"m", problem->m}, {"n", problem->n}, {"k", problem->k}, {"batch", problem.batch_count()}};
    for (const auto& [extent_name, extent] : extents) {
        if (extent > kMaxExtent) {
            return std::string("takes ") + extent_name + " up to 2^31 - 1025, the problem has " +
                   std::to_string(extent);
        }
    }
    const Arrangement arrangement = arrange(Row::tile, problem->m, problem->n, problem->k, 1);
    if (arrangement.tiles_m > 0x7fffffff / arrangement.tiles_n) {
        return "counts at most 2^31 - 1 tiles a matrix, the problem has " +
               std::to_string(arrangement.tiles_m) + " x " + std::to_string(arrangement.tiles_n);
    }
    return {};
}

template <class Row>
Schedule schedule(const ValidProblem& problem, const DeviceProperties& device) {
    return schedule_row(Row::tile, Row::ping_pong, problem, device);
}

// Columns contiguous, with rows that start at multiples of 16 bytes; otherwise the rows are.
bool is_row_major(const MatrixView& view, std::int64_t rows) {
    return view.col_stride == 1 && (rows == 1 || view.row_stride % 8 == 0);
}

template <class Row>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    const Major a = is_row_major(args.a, args.m) ? Major::k : Major::mn;
    const Major b = is_row_major(args.b, args.k) ? Major::mn : Major::k;
    const int sm_count = properties(Device::cuda(runtime::current_device())).sm_count;
    const Prepared prepared = prepare(Row::tile, args, schedule, a, b, sm_count);
    const auto launch_one = a == Major::k
                                ? (b == Major::k ? launch_layout<Row, Major::k, Major::k>
                                                 : launch_layout<Row, Major::k, Major::mn>)
                                : (b == Major::k ? launch_layout<Row, Major::mn, Major::k>
                                                 : launch_layout<Row, Major::mn, Major::mn>);
    launch_one(prepared.params, prepared.blocks, stream);
}

constexpr OperandNeeds kNeeds = {false, 16, true};
constexpr KernelInfo kKernels[] = {
#define TCGEMM_ROW(id, ...) {id::name, id::tile, kNeeds, rejects<id>, schedule<id>, launch<id>},
    TCGEMM_SM90_WGMMA_ROWS(TCGEMM_ROW)
#undef TCGEMM_ROW
};
constexpr Family kFamily = {kKernels, static_cast<int>(std::size(kKernels)), false};

}  // namespace

const Family& family() { return kFamily; }

}  // namespace tcgemm::sm90_wgmma
