#include <set>
#include <sstream>

#include "dispatch/registry.hpp"
#include "tcgemm/plan.hpp"
#include "tcgemm/version.h"

namespace tcgemm {
namespace {

#include "build_info.inc"

std::string all_architectures() {
    std::set<std::string> all;
    for (const RegisteredFamily& entry : registered_families()) {
        std::istringstream list(entry.architectures);
        for (std::string one; std::getline(list, one, ';');) all.insert(one);
    }
    std::string joined;
    for (const std::string& one : all) joined += (joined.empty() ? "" : ";") + one;
    return joined;
}

}  // namespace

const BuildInfo& build_info() {
    // Never freed: other threads may still ask when a program ends.
    static const BuildInfo& info = *new BuildInfo{
        TCGEMM_VERSION, kBuildCuda, kBuildCompiler, kBuildType, all_architectures(), kBuildCommit};
    return info;
}

}  // namespace tcgemm
