// Bulk tensor copies between global and shared memory (sm_90). The maps have five dimensions.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace tcgemm::device::ptx {

// Elements from the map's origin. May lie outside: loads then give zeros, stores leave out.
struct TensorCoordinates {
    int inner, outer, batch[3];
};

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Completes on `barrier` with the bytes of a whole box.
__device__ __forceinline__ void load_tensor(std::uint32_t shared, const CUtensorMap* map,
                                            const TensorCoordinates& at, std::uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(at.inner), "r"(at.outer), "r"(at.batch[0]), "r"(at.batch[1]),
        "r"(at.batch[2])
        : "memory");
}

// The same into every block of the cluster that `blocks` has a bit for, at the same address, on the
// barrier at the same address.
__device__ __forceinline__ void load_tensor_multicast(std::uint32_t shared, const CUtensorMap* map,
                                                      const TensorCoordinates& at,
                                                      std::uint32_t barrier, std::uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(shared),
        "l"(map), "r"(barrier), "h"(blocks), "r"(at.inner), "r"(at.outer), "r"(at.batch[0]),
        "r"(at.batch[1]), "r"(at.batch[2])
        : "memory");
}

// What the thread's earlier writes put into `shared` must be made visible by fence_async_proxy().
__device__ __forceinline__ void store_tensor(const CUtensorMap* map, const TensorCoordinates& at,
                                             std::uint32_t shared) {
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::
            "l"(map),
        "r"(shared), "r"(at.inner), "r"(at.outer), "r"(at.batch[0]), "r"(at.batch[1]),
        "r"(at.batch[2])
        : "memory");
}

__device__ __forceinline__ void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until at most `kPending` committed groups of this thread still read shared memory.
template <int kPending>
__device__ __forceinline__ void wait_for_store_reads() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Orders ordinary accesses to shared memory before those of the copy engine and the tensor cores.
__device__ __forceinline__ void fence_async_proxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace tcgemm::device::ptx
