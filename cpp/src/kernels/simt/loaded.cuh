// Elements in registers on the way from memory to the multiply-adds.
#pragma once

#include <cstdint>

#include "kernels/simt/policy.hpp"
#include "pack/convert.cuh"

namespace tcgemm::simt {

// An element as it comes from memory. Those of two bytes are words in which nothing is done to them
// before they are multiplied: whatever is, waits for the load.
template <class Numbers>
struct Loaded {
    using Raw = typename Numbers::Element;
    static __device__ __forceinline__ Raw from(const Raw* at) { return *at; }
    static __device__ __forceinline__ Raw value(Raw raw) { return raw; }
};
template <>
struct Loaded<TF32> : Loaded<F32> {
    static __device__ __forceinline__ float value(float raw) { return pack::to_tf32(raw).value; }
};
template <>
struct Loaded<F16> {
    using Raw = std::uint32_t;
    static __device__ __forceinline__ Raw from(const __half* at) {
        return *reinterpret_cast<const std::uint16_t*>(at);
    }
    static __device__ __forceinline__ float value(Raw raw) {
        return __half2float(__ushort_as_half(static_cast<std::uint16_t>(raw)));
    }
};
template <>
struct Loaded<BF16> {
    using Raw = std::uint32_t;
    static __device__ __forceinline__ Raw from(const __nv_bfloat16* at) {
        return *reinterpret_cast<const std::uint16_t*>(at);
    }
    static __device__ __forceinline__ float value(Raw raw) { return __uint_as_float(raw << 16); }
};

}  // namespace tcgemm::simt
