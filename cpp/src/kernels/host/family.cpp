// The host family: CPU arrays of every dtype, stride and size, in every mode of the library.
#include <new>
#include <string>

#include "kernels/host/gemm.hpp"
#include "kernels/host/thread_pool.hpp"
#include "kernels/kernel_info.hpp"
#include "kernels/rejects.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::host {
namespace {

// tf32: whether elements are rounded to TF32, which float32 holds.
template <DType compute, Accumulate accumulate, bool tf32>
std::string rejects(const ValidProblem& problem, const DeviceProperties& device) {
    // FP32 sums are promoted anyway: see BlockKernel::kBlockLanes.
    const bool promoted =
        accumulate == Accumulate::fp32 && problem->accumulate == Accumulate::promoted;
    const std::string reason = rejects_mode(
        problem, device, compute, promoted ? Accumulate::promoted : accumulate, problem.epilogue());
    if (reason.empty() && tf32 != (problem->precision == Precision::tf32)) {
        const char* const multiplies = tf32 ? "tf32" : name(compute);
        return multiplies_others(problem, multiplies, multiplies);
    }
    return reason;
}

Schedule schedule(const ValidProblem&, const DeviceProperties&) { return {}; }

void launch_mode(Mode mode, const GemmArgs& args) {
    try {
        gemm(chosen_instruction_set()[mode], args, usable_threads(worthwhile_threads(args)));
    } catch (const OutOfMemory&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw OutOfMemory("no host memory");  // a longer message would take memory itself
    }
}

template <Mode mode>
void launch(const GemmArgs& args, const Schedule&, StreamView) {
    launch_mode(mode, args);
}

template <Mode mode, DType compute, Accumulate accumulate>
constexpr KernelInfo row(const char* name) {
    return {name,
            TileConfig{},
            OperandNeeds{true, 0},
            rejects<compute, accumulate, mode == Mode::tf32>,
            schedule,
            launch<mode>};
}

constexpr KernelInfo kKernels[] = {
    row<Mode::f32, DType::f32, Accumulate::fp32>("host_float32"),
    row<Mode::f16, DType::f16, Accumulate::fp32>("host_float16"),
    row<Mode::f16_acc16, DType::f16, Accumulate::fp16>("host_float16_acc16"),
    row<Mode::bf16, DType::bf16, Accumulate::fp32>("host_bfloat16"),
    row<Mode::f64, DType::f64, Accumulate::fp64>("host_float64"),
    row<Mode::i8, DType::i8, Accumulate::int32>("host_int8"),
    row<Mode::tf32, DType::f32, Accumulate::fp32>("host_tf32"),
};

}  // namespace

const Family& family() {
    static constexpr Family family{kKernels, sizeof(kKernels) / sizeof(kKernels[0]), true};
    return family;
}

}  // namespace tcgemm::host
