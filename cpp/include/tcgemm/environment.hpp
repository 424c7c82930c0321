// The environment variables that a product on the CPU asks for when it runs.
#pragma once

#include <optional>
#include <string>

#include "tcgemm/export.h"

namespace tcgemm {

enum class RunVariable;

// While it lives, products that its thread runs on the CPU take TCGEMM_NUM_THREADS and
// TCGEMM_HOST_ISA to be what they were when it was made. Without one they call getenv(), which must
// not run while another thread changes the environment, whichever variable: setenv() may move it.
class TCGEMM_API HeldEnvironment {
   public:
    HeldEnvironment();
    ~HeldEnvironment();
    HeldEnvironment(const HeldEnvironment&) = delete;
    HeldEnvironment& operator=(const HeldEnvironment&) = delete;

   private:
    std::optional<std::string> value_[2];  // by RunVariable
    const HeldEnvironment* outer_;         // of the thread, before
    friend const char* run_variable(RunVariable variable);
};

}  // namespace tcgemm
