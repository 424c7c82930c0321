#include "kernels/host/block.hpp"
#include "kernels/host/simd_generic.hpp"

namespace tcgemm::host {

const InstructionSet* generic_instructions() {
    static constexpr InstructionSet set =
        instruction_set<generic::Vocabulary>("generic", [] { return true; });
    return &set;
}

}  // namespace tcgemm::host
