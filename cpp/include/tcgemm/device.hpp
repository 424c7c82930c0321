// Where a product is computed, and what is known of that place.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tcgemm/export.h"

namespace tcgemm {

// The CPU (ordinal -1) or a CUDA device by its ordinal.
struct Device {
    int ordinal = -1;
    static constexpr Device cpu() { return {-1}; }
    // A negative ordinal is not the CPU either: such a device does not exist.
    static constexpr Device cuda(int ordinal) {
        return {ordinal < 0 ? std::numeric_limits<int>::max() : ordinal};
    }
    constexpr bool is_cpu() const { return ordinal < 0; }
    constexpr bool operator==(Device other) const { return ordinal == other.ordinal; }
};

struct DeviceProperties {
    Device device;
    std::string name;
    int cc_major = 0;  // compute capability; 0.0 for the CPU
    int cc_minor = 0;
    int sm_count = 0;  // streaming multiprocessors; hardware threads for the CPU
    std::int64_t shared_memory_per_block = 0;  // bytes, the opt-in limit
    std::int64_t l2_bytes = 0;
    std::int64_t total_memory = 0;  // bytes
    int clock_khz = 0;
    int memory_gb_per_s = 0;  // that memory can deliver; 0: not known
    constexpr int cc() const { return 10 * cc_major + cc_minor; }
};

// CUDA devices that can be used; 0 without a driver, without a GPU or in a host-only build.
TCGEMM_API int cuda_device_count() noexcept;
// Empty where devices are found; otherwise why there is none ("no NVIDIA driver", ...).
TCGEMM_API std::string cuda_unavailable_reason();
// The same, but empty too where there is no GPU to expect: without a driver, a visible device or
// GPU code in this build.
TCGEMM_API std::string cuda_failure();
// Throws DeviceError for a device that is not there. Read once per device and kept.
TCGEMM_API const DeviceProperties& properties(Device device);

// Whether this build has code that runs on a CUDA device of that kind. Throws as properties() does.
TCGEMM_API bool has_kernels(Device device);
// The CUDA device whose memory an address is of. Throws DeviceError where it is of none.
TCGEMM_API Device device_holding(const void* address);

// Makes `device` the calling thread's current CUDA device, and restores the former one.
class TCGEMM_API DeviceGuard {
   public:
    explicit DeviceGuard(Device device);  // a CPU device changes nothing
    ~DeviceGuard();
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

   private:
    int previous_ = -1;
};

}  // namespace tcgemm
