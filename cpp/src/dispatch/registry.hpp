// All kernel families of this build, in order of preference.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_info.hpp"

namespace tcgemm {

struct RegisteredFamily {
    const char* name;
    const char* architectures;  // "70;75;90a;90-virtual"; empty for the host
    const Family* family;
};

const std::vector<RegisteredFamily>& registered_families();

// Which code of that built for `architectures` runs on compute capability `cc` (90 for 9.0): a
// cubin of the same major and no later minor, "a" code of exactly that one, or PTX of no later one.
// Its compute capability, the newest; 0: none.
int code_for(const std::string& architectures, int cc);
bool runs_on(const std::string& architectures, int cc);
bool has_kernels(const DeviceProperties& device);

}  // namespace tcgemm
