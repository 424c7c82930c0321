#include "tcgemm/device.hpp"

#include <atomic>
#include <fstream>
#include <mutex>

#include "core/cpu_count.hpp"
#include "core/runtime.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm {
namespace {

DeviceProperties read_cpu_properties() {
    DeviceProperties cpu;
    cpu.device = Device::cpu();
    cpu.name = "CPU";
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.rfind("model name", 0) == 0) {
            const std::size_t begin = line.find_first_not_of(" \t:", line.find(':'));
            if (begin != std::string::npos) cpu.name = line.substr(begin);
            break;
        }
    }
    cpu.sm_count = usable_cpus();
    return cpu;
}

}  // namespace

int cuda_device_count() noexcept { return runtime::device_count(nullptr); }

std::string cuda_unavailable_reason() {
    std::string reason;
    return runtime::device_count(&reason) > 0 ? std::string() : reason;
}

std::string cuda_failure() {
    std::string reason;
    bool fails = false;
    (void)runtime::device_count(&reason, &fails);
    return fails ? reason : std::string();
}

const DeviceProperties& properties(Device device) {
    // Never freed: other threads may still multiply when a program ends.
    static const DeviceProperties& cpu = *new DeviceProperties(read_cpu_properties());
    if (device.is_cpu()) return cpu;

    static std::mutex mutex;
    static std::atomic<const DeviceProperties*> known[runtime::kMaxDevices];  // never freed
    if (device.ordinal < runtime::kMaxDevices) {
        const DeviceProperties* const found = known[device.ordinal].load(std::memory_order_acquire);
        if (found != nullptr) return *found;
    }
    std::string reason;
    const int count = runtime::device_count(&reason);
    if (device.ordinal >= count || device.ordinal >= runtime::kMaxDevices) {
        const bool may_be_negative = device == Device::cuda(-1);
        throw DeviceError("device cuda:" + std::to_string(device.ordinal) +
                          (may_be_negative ? ", which stands for a negative ordinal," : "") +
                          " does not exist: " +
                          (count == 0 ? reason
                           : count == 1
                               ? "the only CUDA device is cuda:0"
                               : "CUDA devices are cuda:0 to cuda:" + std::to_string(count - 1)));
    }
    const std::lock_guard<std::mutex> lock(mutex);
    auto& slot = known[device.ordinal];
    if (slot.load() == nullptr) {
        slot = new DeviceProperties(runtime::device_properties(device.ordinal));
    }
    return *slot.load();
}

Device runtime::usable_gpu(Device device) {
    if (device.is_cpu()) {
        throw DeviceError(
            "device is the CPU, which has no CUDA streams, events or memory; name a GPU, such as "
            "cuda:0");
    }
    properties(device);
    return device;
}

Device device_holding(const void* address) {
    return Device::cuda(runtime::device_of_address(address));
}

DeviceGuard::DeviceGuard(Device device) {
    if (device.is_cpu()) return;
    const int current = runtime::current_device();
    if (current == device.ordinal) return;
    properties(device);  // throws where there is none
    runtime::enter_device(device.ordinal);
    previous_ = current;
}

DeviceGuard::~DeviceGuard() {
    if (previous_ >= 0) runtime::leave_device(previous_);
}

}  // namespace tcgemm
