// Devices that compute products, and their properties. All functions are thread-safe.
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
    // A negative ordinal does not mean the CPU, but a device that does not exist.
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
    int clock_khz = 0;              // boost
    int memory_gb_per_s = 0;        // peak bandwidth of the memory, GB/s; 0: not known
    constexpr int cc() const { return 10 * cc_major + cc_minor; }
};

// Number of usable CUDA devices; 0 without a driver, without a GPU or in a host-only build.
TCGEMM_API int cuda_device_count() noexcept;
// Why there is no CUDA device ("no NVIDIA driver is installed", ...); empty if there is one.
TCGEMM_API std::string cuda_unavailable_reason();
// The same, but also empty if no GPU is to be expected: without a driver, without a visible device
// and in a host-only build.
TCGEMM_API std::string cuda_failure();
// Read once for each device; the reference stays valid. Throws DeviceError for a device that does
// not exist, CudaError.
TCGEMM_API const DeviceProperties& properties(Device device);

// Whether this build has kernels that run on the device. Throws as properties() does.
TCGEMM_API bool has_kernels(Device device);
// The CUDA device in whose memory an address is. Throws DeviceError if there is none, CudaError.
TCGEMM_API Device device_holding(const void* address);

// Makes `device` the calling thread's current CUDA device, and restores the former one when it is
// destroyed, which must be on the same thread. Throws as properties() does.
class TCGEMM_API DeviceGuard {
   public:
    explicit DeviceGuard(Device device);  // the CPU changes nothing
    ~DeviceGuard();
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

   private:
    int previous_ = -1;
};

}  // namespace tcgemm
