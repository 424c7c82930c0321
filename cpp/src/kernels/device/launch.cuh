// The launch of a kernel with what <<<>>> cannot say: clusters, and overlap with the kernel before
// it in the stream (programmatic dependent launch).
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>

#include "core/runtime.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm::device {

struct LaunchConfig {
    dim3 grid = {};
    unsigned threads = 0;
    std::size_t shared_bytes = 0;       // dynamic; above 48 KB too
    std::size_t most_shared_bytes = 0;  // of any launch of the kernel, where not always as many
    StreamView stream = {};
    int cluster = 1;  // blocks along x that form a cluster (cc 9.0); divides grid.x
    // The kernel may start while its predecessor in the stream still runs: it must call
    // wait_for_predecessor(), in each of its threads, before it touches global memory. Without
    // effect where device or driver cannot.
    bool overlaps_predecessor = false;
    // Blocks wait for each other: none begins before there is room for all (a cooperative launch).
    // They must do the same work in a smaller grid, which the launch takes where the stream has
    // fewer SMs than the device (green contexts).
    bool all_at_once = false;
};

// Returns when the predecessor has ended and all that it wrote can be read. At least one thread of
// a grid launched with `overlaps_predecessor` must call it even if there is nothing to do: whoever
// waits for this grid relies on it for the grids before.
__device__ __forceinline__ void wait_for_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the successor start once every block has called this or has ended. Says nothing about
// memory: a successor that reads what this kernel writes waits for its end.
__device__ __forceinline__ void release_successor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

namespace detail {

template <class T>
struct Identity {
    using Type = T;
};

// Devices before cc 9.0 have no such launches; drivers before 12.3 cannot capture them in a graph.
inline bool can_overlap(int device) {
    static const bool driver_can = [] {
        int version = 0;
        return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
    }();
    return driver_can && properties(Device::cuda(device)).cc_major >= 9;
}

// More than 48 KB is an opt-in of each kernel on each device. The last one is remembered: asking
// again costs a part of a launch.
inline void allow_shared_bytes(const void* kernel, int device, std::size_t bytes) {
    thread_local const void* last_kernel = nullptr;
    thread_local int last_device = -1;
    thread_local std::size_t last_bytes = 0;
    if (kernel == last_kernel && device == last_device && bytes <= last_bytes) return;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)) != cudaSuccess) {
        return;  // check_launch() reports it
    }
    last_kernel = kernel;
    last_device = device;
    last_bytes = bytes;
}

}  // namespace detail

// Launches `kernel` on the current device. Throws CudaError, which calls the kernel `name`.
template <class... Params>
void launch(const char* name, void (*kernel)(Params...), const LaunchConfig& config,
            const typename detail::Identity<Params>::Type&... args) {
    constexpr std::size_t kSharedWithoutOptIn = 48 << 10;
    const void* const function = reinterpret_cast<const void*>(kernel);
    const bool opts_in = config.shared_bytes > kSharedWithoutOptIn;
    int device = 0;
    if (opts_in || config.overlaps_predecessor) (void)cudaGetDevice(&device);
    if (opts_in) {
        detail::allow_shared_bytes(function, device,
                                   std::max(config.shared_bytes, config.most_shared_bytes));
    }

    cudaLaunchAttribute attributes[3] = {};
    unsigned count = 0;
    if (config.cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = static_cast<unsigned>(config.cluster);
        attributes[count].val.clusterDim.y = 1;
        attributes[count].val.clusterDim.z = 1;
        ++count;
    }
    if (config.overlaps_predecessor && detail::can_overlap(device)) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count].val.programmaticStreamSerializationAllowed = 1;
        ++count;
    }
    if (config.all_at_once) {
        attributes[count].id = cudaLaunchAttributeCooperative;
        attributes[count].val.cooperative = 1;
        ++count;
    }
    cudaLaunchConfig_t launch_config = {};
    launch_config.gridDim = config.grid;
    launch_config.blockDim = dim3(config.threads);
    launch_config.dynamicSmemBytes = config.shared_bytes;
    launch_config.stream = config.stream.get();
    launch_config.attrs = attributes;
    launch_config.numAttrs = count;
    void* values[] = {const_cast<void*>(static_cast<const void*>(&args))..., nullptr};
    while (cudaLaunchKernelExC(&launch_config, function, values) ==
               cudaErrorCooperativeLaunchTooLarge &&
           launch_config.gridDim.x > 1) {
        (void)cudaGetLastError();
        launch_config.gridDim.x = (launch_config.gridDim.x + 1) / 2;
    }
    runtime::check_launch(name);  // finds the error that is left
}

}  // namespace tcgemm::device
