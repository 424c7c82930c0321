// Environment variables that are asked for when a product runs.
#pragma once

#include "tcgemm/environment.hpp"

namespace tcgemm {

enum class RunVariable { num_threads, host_isa };

// As getenv(), or what the thread holds.
const char* run_variable(RunVariable variable);

}  // namespace tcgemm
