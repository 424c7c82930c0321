// Environment variables that are asked for when a product runs.
#pragma once

#include "tcgemm/environment.hpp"

namespace tcgemm {

// As getenv(), or what the thread holds. One of kRunVariables.
const char* run_variable(const char* name);

inline constexpr const char* kNumThreads = "TCGEMM_NUM_THREADS";
inline constexpr const char* kHostIsa = "TCGEMM_HOST_ISA";
inline constexpr const char* kRunVariables[] = {kNumThreads, kHostIsa};

}  // namespace tcgemm
