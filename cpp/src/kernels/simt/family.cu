// CUDA cores: the family that asks for nothing. Any size that tiles
// can be counted of, any stride and alignment, every dtype.
#include <string>

#include "kernels/rejects.hpp"
#include "kernels/simt/cost_model.hpp"
#include "kernels/simt/policy.hpp"

namespace tcgemm::simt {
namespace {

template <class Policy>
std::string rejects(const ValidProblem& problem, const DeviceProperties&) {
    using Numbers = typename Policy::Numbers;
    std::string reason = rejects_mode(problem, Numbers::kDType, Numbers::kAccumulate,
                                      kIsScaled<Numbers> ? Epilogue::scaled : Epilogue::linear);
    return reason.empty() ? rejects_tiles(problem, Policy::tile) : reason;
}

template <class Policy>
Schedule schedule(const ValidProblem& problem, const DeviceProperties& device) {
    using Numbers = typename Policy::Numbers;
    KernelCost cost;
    cost.block = Policy::kBlock;
    cost.block_k = Policy::kBlockK;
    cost.resident = Policy::kBlocksPerSm;
    cost.multiply_cycles =
        Policy::kBlock * Policy::kBlock * Policy::kBlockK / Numbers::kFmaPerCycle;
    cost.efficiency = Policy::kEfficiency;
    cost.element_bytes = sizeof(typename Numbers::Element);
    cost.accumulator_bytes = sizeof(typename Numbers::Acc);
    // Partial sums in FP16 would be rounded otherwise than one FP16 accumulator rounds; how many
    // there are depends on the number of tiles, and shows in the bits of all but whole numbers.
    // The reduction of scaled ones would be two more kernels for long K and few tiles alone.
    const bool any_order = Numbers::kAccumulate == Accumulate::int32 ||
                           (Numbers::kAccumulate != Accumulate::fp16 && !problem.batch_invariant());
    cost.splits = any_order && !kIsScaled<Numbers>;
    return best_schedule(problem, device, cost);
}

template <class Policy>
constexpr KernelInfo row(const char* name) {
    return {name,          Policy::tile, OperandNeeds{false, 0}, rejects<Policy>, schedule<Policy>,
            launch<Policy>};
}

constexpr KernelInfo kKernels[] = {
    row<Large<F32>>("simt_f32_128x128x8"),
    row<Medium<F32>>("simt_f32_64x64x8"),
    row<Small<F32>>("simt_f32_32x32x8"),
    row<Large<F16>>("simt_f16_128x128x8"),
    row<Small<F16>>("simt_f16_32x32x8"),
    row<Large<F16AccF16>>("simt_f16_acc_f16_128x128x8"),
    row<Small<F16AccF16>>("simt_f16_acc_f16_32x32x8"),
    row<Large<BF16>>("simt_bf16_128x128x8"),
    row<Small<BF16>>("simt_bf16_32x32x8"),
    row<Medium<Promoted<F32>>>("simt_f32_promoted_64x64x8"),
    row<Medium<Promoted<F16>>>("simt_f16_promoted_64x64x8"),
    row<Medium<Promoted<BF16>>>("simt_bf16_promoted_64x64x8"),
    row<Large<F64>>("simt_f64_128x128x8"),
    row<Medium<F64>>("simt_f64_64x64x8"),
    row<Small<F64>>("simt_f64_32x32x8"),
    row<Large<I8>>("simt_i8_128x128x8"),
    row<Small<I8>>("simt_i8_32x32x8"),
    row<Medium<Scaled<Promoted<F16>>>>("simt_f16_scaled_64x64x8"),
    row<Medium<Scaled<I8>>>("simt_i8_scaled_64x64x8"),
};

}  // namespace

const Family& family() {
    static constexpr Family kFamily{kKernels, sizeof(kKernels) / sizeof(kKernels[0]), false};
    return kFamily;
}

}  // namespace tcgemm::simt
