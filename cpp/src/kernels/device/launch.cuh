// The launch of a kernel, with what <<<>>> cannot say: clusters, and overlap with the kernel before
// it in the stream (programmatic dependent launch).
#pragma once

#include "core/runtime.hpp"

namespace tcgemm::device {

using runtime::kMaxGrid;
using runtime::LaunchConfig;

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

}  // namespace detail

// Launches `kernel` on the current device. Throws CudaError, which calls the kernel `name`.
template <class... Params>
void launch(const char* name, void (*kernel)(Params...), const LaunchConfig& config,
            const typename detail::Identity<Params>::Type&... args) {
    void* values[] = {const_cast<void*>(static_cast<const void*>(&args))..., nullptr};
    runtime::launch(name, reinterpret_cast<const void*>(kernel), config, values);
}

}  // namespace tcgemm::device
