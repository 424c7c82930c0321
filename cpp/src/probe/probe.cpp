#include "tcgemm/probe.hpp"

#include <cstring>
#include <string>

#include "dispatch/registry.hpp"
#include "probe/launch.hpp"
#include "probe_archs.inc"  // TCGEMM_PROBE_*_ARCHS, written by cpp/src/CMakeLists.txt
#include "tcgemm/buffer.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm {
namespace {

// min_cc: of the first GPUs that have it. Warpgroup instructions are Hopper's alone.
struct Row {
    MmaInstruction instruction;
    int min_cc;
    bool warpgroup;
};
constexpr Row kRows[] = {
    {{"mma_fp16", Precision::fp16, 16}, 70, false},
    {{"mma_bf16", Precision::bf16, 16}, 80, false},
    {{"mma_tf32", Precision::tf32, 8}, 80, false},
    {{"mma_fp8_e4m3", Precision::fp8_e4m3, 32}, 89, false},
    {{"mma_fp8_e5m2", Precision::fp8_e5m2, 32}, 89, false},
    {{"wgmma_fp16", Precision::fp16, 16}, 90, true},
    {{"wgmma_bf16", Precision::bf16, 16}, 90, true},
    {{"wgmma_tf32", Precision::tf32, 8}, 90, true},
    {{"wgmma_fp8_e4m3", Precision::fp8_e4m3, 32}, 90, true},
    {{"wgmma_fp8_e5m2", Precision::fp8_e5m2, 32}, 90, true},
};

bool has(const Row& row, const DeviceProperties& device) {
    if (device.device.is_cpu() || device.cc() < row.min_cc) return false;
    if (row.warpgroup) return runs_on(TCGEMM_PROBE_WGMMA_ARCHS, device.cc());
    return runs_on(TCGEMM_PROBE_MMA_ARCHS, device.cc());
}

}  // namespace

std::vector<MmaInstruction> mma_instructions(Device device) {
    std::vector<MmaInstruction> result;
    for (const Row& row : kRows) {
        if (has(row, properties(device))) result.push_back(row.instruction);
    }
    return result;
}

void run_mma(const MmaInstruction& instruction, Device device, int count, const float* a,
             const float* b, const float* c, float* d) {
    const Row* found = nullptr;
    for (const Row& row : kRows) {
        const bool same = std::strcmp(row.instruction.name, instruction.name) == 0;
        if (same && has(row, properties(device))) found = &row;
    }
    if (found == nullptr) {
        throw UnsupportedError(std::string("instruction ") + instruction.name +
                               " does not exist on " + properties(device).name +
                               "; mma_instructions() lists those that do");
    }
    if (count <= 0) return;
    const DeviceGuard guard(device);
    const auto cases = static_cast<std::size_t>(count);
    const std::size_t elements = cases * static_cast<std::size_t>(found->instruction.k);
    const Stream stream(device);
    const DeviceBuffer memory((2 * elements + 2 * cases) * sizeof(float), device, stream);
    auto* const at_a = static_cast<float*>(memory.data());
    float *const at_b = at_a + elements, *const at_c = at_b + elements, *const at_d = at_c + cases;
    copy_async(at_a, a, elements * sizeof(float), stream);
    copy_async(at_b, b, elements * sizeof(float), stream);
    copy_async(at_c, c, cases * sizeof(float), stream);
    const auto launch = found->warpgroup ? probe_wgmma::launch : probe::launch;
    launch(found->instruction.precision, {at_a, at_b, at_c, at_d, count}, stream);
    copy_async(d, at_d, cases * sizeof(float), stream);
    stream.view().synchronize();
}

}  // namespace tcgemm
