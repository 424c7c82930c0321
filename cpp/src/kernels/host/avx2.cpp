// Compiled with -mavx2 -mfma -mf16c (see ../CMakeLists.txt).
#include "kernels/host/instruction_set.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <cpuid.h>

#include "kernels/host/block.hpp"
#include "kernels/host/simd_avx2.hpp"

namespace tcgemm::host {
namespace {
bool has_f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool supported() {
    static const bool f16c = has_f16c();  // asked once: cpuid takes 20 us in a virtual machine
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
}
}  // namespace

const InstructionSet* avx2_instructions() {
    static constexpr InstructionSet set = instruction_set<avx2::Vocabulary>("avx2", supported);
    return &set;
}

}  // namespace tcgemm::host
#else
namespace tcgemm::host {
const InstructionSet* avx2_instructions() { return nullptr; }
}  // namespace tcgemm::host
#endif
