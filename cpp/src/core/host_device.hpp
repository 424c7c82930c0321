// What functions are that both hosts and GPUs call.
#pragma once

#if defined(__CUDACC__)
#define TCGEMM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TCGEMM_HOST_DEVICE inline
#endif
