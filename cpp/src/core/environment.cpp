#include "core/environment.hpp"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace tcgemm {

struct HeldEnvironment::Values {
    std::optional<std::string> value[std::size(kRunVariables)];
    static thread_local const Values* held;  // null: getenv() is asked
};
thread_local const HeldEnvironment::Values* HeldEnvironment::Values::held = nullptr;

HeldEnvironment::HeldEnvironment() : outer_(Values::held) {
    auto values = std::make_unique<Values>();
    for (std::size_t i = 0; i < std::size(kRunVariables); ++i) {
        if (const char* const text = std::getenv(kRunVariables[i])) values->value[i] = text;
    }
    values_ = std::move(values);
    Values::held = values_.get();
}

HeldEnvironment::~HeldEnvironment() { Values::held = outer_; }

const char* run_variable(const char* name) {
    const HeldEnvironment::Values* const held = HeldEnvironment::Values::held;
    if (held == nullptr) return std::getenv(name);
    for (std::size_t i = 0; i < std::size(kRunVariables); ++i) {
        if (std::strcmp(name, kRunVariables[i]) == 0 && held->value[i]) {
            return held->value[i]->c_str();
        }
    }
    return nullptr;
}

}  // namespace tcgemm
