// What a kernel does where it was compiled for a GPU that it has no code for. Dispatch never lets
// that happen; if it does, the message says which kernel, which device code and which build.
#pragma once

#include <cstdio>

#define TCGEMM_STRINGIZE_EXPANDED(...) #__VA_ARGS__
#define TCGEMM_STRINGIZE(...) TCGEMM_STRINGIZE_EXPANDED(__VA_ARGS__)

// `kernel_family`: a string literal. __CUDA_ARCH_LIST__: 10 * compute capability, "700,750,900".
// The text is put together before it is compiled: arguments of printf would take a stack.
#define TCGEMM_TRAP_WRONG_ARCH(kernel_family)                                                     \
    do {                                                                                          \
        if (threadIdx.x == 0 && blockIdx.x == 0) {                                                \
            printf("tcgemm: " kernel_family                                                       \
                   " has no code for this GPU (running " TCGEMM_STRINGIZE(                        \
                       __CUDA_ARCH__) ", built for " TCGEMM_STRINGIZE(__CUDA_ARCH_LIST__) ")\n"); \
        }                                                                                         \
        __trap();                                                                                 \
    } while (0)
