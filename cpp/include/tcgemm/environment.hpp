// The environment variables that a product on the CPU reads when it runs.
#pragma once

#include <optional>
#include <string>

#include "tcgemm/export.h"

namespace tcgemm {

enum class RunVariable;

// While an object of this class lives, products that its thread runs on the CPU use the values that
// TCGEMM_NUM_THREADS and TCGEMM_HOST_ISA had when it was made. Without one they call getenv(),
// which must not run while another thread changes any environment variable, as setenv() may move
// them all. Objects may be nested; destroy each on its thread, in reverse order.
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
