// acc += a * b of one element, as CUDA cores compute it.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace tcgemm::simt {

__device__ __forceinline__ void multiply_add(float& acc, float a, float b) {
    acc = fmaf(a, b, acc);
}
__device__ __forceinline__ void multiply_add(double& acc, double a, double b) {
    acc = fma(a, b, acc);
}
__device__ __forceinline__ void multiply_add(__half& acc, __half a, __half b) {
    acc = __hfma(a, b, acc);  // rounds to FP16 at each step
}
__device__ __forceinline__ void multiply_add(std::int32_t& acc, std::int32_t a, std::int32_t b) {
    acc = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc) +
                                    static_cast<std::uint32_t>(a * b));  // wraps around
}

}  // namespace tcgemm::simt
