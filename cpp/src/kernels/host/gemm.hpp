// A whole product on the CPU: cut into blocks, the blocks shared out among threads.
#pragma once

#include <vector>

#include "kernels/gemm_args.hpp"
#include "kernels/host/instruction_set.hpp"

namespace tcgemm::host {

// Those that this build has and this CPU can run, the fastest first; "generic" is always the last.
const std::vector<const InstructionSet*>& usable_instruction_sets();
// The fastest, or the one that TCGEMM_HOST_ISA names. Throws InvalidArgument for another name.
const InstructionSet& chosen_instruction_set();
// Throws InvalidArgument for a wrong TCGEMM_HOST_ISA or TCGEMM_NUM_THREADS.
void check_run_variables();

// How many threads shorten the product, however many there are.
int worthwhile_threads(const GemmArgs& args);

// D = alpha * A B + beta * C with the kernels of one mode, on at most `threads` threads. Returns
// when D is written. Throws std::bad_alloc (OutOfMemory with the byte count, where it is large),
// before D is touched. The bits of D do not depend on `threads`.
void gemm(const ModeKernels& kernels, const GemmArgs& args, int threads);

}  // namespace tcgemm::host
