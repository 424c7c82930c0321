#include "dispatch/registry.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tcgemm/plan.hpp"

// families.inc is written by cmake/TcgemmFamily.cmake: TCGEMM_FAMILY(name, "architectures") each.
#define TCGEMM_FAMILY(name, architectures) \
    namespace tcgemm::name {               \
    const Family& family();                \
    }
#include "families.inc"
#undef TCGEMM_FAMILY

namespace tcgemm {

const std::vector<RegisteredFamily>& registered_families() {
    const auto make = [] {
        std::vector<RegisteredFamily> families;
#define TCGEMM_FAMILY(name, architectures) \
    families.push_back({#name, architectures, &name::family()});
#include "families.inc"
#undef TCGEMM_FAMILY
        return families;
    };
    static const auto& families = *new std::vector<RegisteredFamily>(make());  // not destroyed
    return families;
}

int code_for(const std::string& architectures, int cc) {
    int newest = 0;
    std::istringstream list(architectures);
    for (std::string entry; std::getline(list, entry, ';');) {
        char* suffix = nullptr;
        const int built = static_cast<int>(std::strtol(entry.c_str(), &suffix, 10));
        const std::string kind = suffix;
        if (kind == "-virtual" ? built <= cc
            : kind == "a"      ? built == cc
                               : built / 10 == cc / 10 && built <= cc) {
            newest = std::max(newest, built);
        }
    }
    return newest;
}

bool runs_on(const std::string& architectures, int cc) { return code_for(architectures, cc) > 0; }

bool has_kernels(const DeviceProperties& device) {
    const std::vector<RegisteredFamily>& families = registered_families();
    return std::any_of(families.begin(), families.end(), [&](const RegisteredFamily& entry) {
        return entry.family->on_cpu ? device.device.is_cpu()
                                    : runs_on(entry.architectures, device.cc());
    });
}
bool has_kernels(Device device) { return has_kernels(properties(device)); }

std::vector<KernelDescription> kernels() {
    std::vector<KernelDescription> result;
    for (const RegisteredFamily& entry : registered_families()) {
        for (int i = 0; i < entry.family->kernel_count; ++i) {
            const KernelInfo& kernel = entry.family->kernels[i];
            const TileConfig& t = kernel.tile;
            std::string tile;
            if (t.block_m > 0) {
                tile = std::to_string(t.block_m) + "x" + std::to_string(t.block_n) + "x" +
                       std::to_string(t.block_k);
            }
            result.push_back(
                {entry.name, kernel.name, tile, entry.architectures, kernel.dynamic_shared_bytes});
        }
    }
    return result;
}

}  // namespace tcgemm
