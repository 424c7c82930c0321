// Compiled with -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c (see ../CMakeLists.txt).
#include "kernels/host/instruction_set.hpp"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && \
    defined(__AVX512DQ__) && defined(__FMA__) && defined(__F16C__)
#include "kernels/host/block.hpp"
#include "kernels/host/simd_avx512.hpp"

namespace tcgemm::host {
namespace {
bool supported() {  // each such CPU has FMA and F16C too
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
}  // namespace

const InstructionSet* avx512_instructions() {
    static constexpr InstructionSet set = instruction_set<avx512::Vocabulary>("avx512", supported);
    return &set;
}

}  // namespace tcgemm::host
#else
namespace tcgemm::host {
const InstructionSet* avx512_instructions() { return nullptr; }
}  // namespace tcgemm::host
#endif
