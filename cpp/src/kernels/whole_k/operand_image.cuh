// Brings the part of an operand that a tile needs to shared memory.
#pragma once

#include <cstdint>

#include "kernels/device/ptx/async_copy.cuh"
#include "kernels/device/ptx/shared.cuh"
#include "kernels/whole_k/operand_image.hpp"

namespace tcgemm::whole_k {

namespace ptx = device::ptx;

// An operand's part in shared memory. In bytes.
struct Image {
    int data;  // element (0, 0)
    int outer_step, k_step;
    int outer;  // rows of A or columns of B that exist
};

template <class Element>
__device__ __forceinline__ Image image_at(int data, const ImageLayout& layout, int outer) {
    constexpr int kItem = sizeof(Element);
    return {data, layout.along_k ? layout.pitch : kItem, layout.along_k ? kItem : layout.pitch,
            outer};
}

// 16 aligned bytes where `valid`, which have come when wait_for_images() returns.
__device__ __forceinline__ void bring_vector(std::uint32_t shared, const void* address, bool valid,
                                             bool through_l1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    ptx::copy_async(shared, address, valid && !through_l1);
    ptx::copy_async_through_l1(shared, address, valid && through_l1);
#else
    if (valid) ptx::store_shared(shared, *static_cast<const uint4*>(address));
#endif
}
__device__ __forceinline__ void end_image_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    ptx::commit_copies();
#endif
}
// All groups but the last one.
__device__ __forceinline__ void wait_for_images() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    ptx::wait_for_copies<1>();
#endif
}
__device__ __forceinline__ void wait_for_all_images() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    ptx::wait_for_all_copies();
#endif
}

// Begins to bring `outer` x k elements from `data` on to `to`, layout.bytes() of the shared memory.
// The block has kThreads threads. kMany: threads have many vectors; the layout may be swizzled
// then, and says by how many threads it is walked.
template <int kThreads, bool kMany = false, class Element>
__device__ __forceinline__ Image bring_image(const ImageLayout& layout, unsigned char* shared,
                                             const Element* data, int outer, int k, int to) {
    constexpr int kItem = sizeof(Element);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(data);
    const int all_lines = layout.lines_of(outer, k);
    const int line_bytes = layout.line_bytes(outer, k, kItem);
    const int head = static_cast<int>(reinterpret_cast<std::uintptr_t>(data) % kVectorBytes);
    const std::uint32_t base = ptx::shared_address(shared) + to;
    if (layout.merged) {
#pragma unroll 1
        for (int at = threadIdx.x * kVectorBytes - head; at < line_bytes;
             at += kThreads * kVectorBytes) {
            int place = at;
            if (kMany && layout.swizzle) {  // then `head` is 0
                place = layout.swizzled(at / kVectorBytes) * kVectorBytes;
            }
            bring_vector(base + head + place, bytes + at, true, layout.through_l1);
        }
    } else if constexpr (kMany) {
#pragma unroll 1
        for (ImageWalk walk(layout, head, threadIdx.x); walk.line() < all_lines; walk.next()) {
            bring_vector(base + walk.to(), bytes + walk.from(), walk.in_line() < line_bytes,
                         layout.through_l1);
        }
    } else {
        const int vectors = all_lines * layout.line_vectors;
#pragma unroll 1
        for (int v = threadIdx.x; v < vectors; v += kThreads) {
            const ImageWalk at(layout, head, v);
            bring_vector(base + at.to(), bytes + at.from(), at.in_line() < line_bytes,
                         layout.through_l1);
        }
    }
    return image_at<Element>(to + head, layout, outer);
}

}  // namespace tcgemm::whole_k
