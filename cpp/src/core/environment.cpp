#include "core/environment.hpp"

#include <cstdlib>

namespace tcgemm {
namespace {

constexpr const char* kNames[] = {"TCGEMM_NUM_THREADS", "TCGEMM_HOST_ISA"};  // by RunVariable

thread_local const HeldEnvironment* held = nullptr;  // null: getenv() is asked

}  // namespace

HeldEnvironment::HeldEnvironment() : outer_(held) {
    static_assert(sizeof(value_) / sizeof(value_[0]) == sizeof(kNames) / sizeof(kNames[0]));
    auto* value = value_;
    for (const char* const name : kNames) {
        if (const char* const text = std::getenv(name)) *value = text;
        ++value;
    }
    held = this;
}

HeldEnvironment::~HeldEnvironment() { held = outer_; }

const char* run_variable(RunVariable variable) {
    const auto i = static_cast<int>(variable);
    if (held == nullptr) return std::getenv(kNames[i]);
    return held->value_[i] ? held->value_[i]->c_str() : nullptr;
}

}  // namespace tcgemm
