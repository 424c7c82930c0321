/* The C interface of tcgemm. No call throws or ends the process: each returns a status, and
 * tcgemm_last_error() explains the last one that failed on the calling thread. */
#ifndef TCGEMM_H
#define TCGEMM_H

#include <stddef.h>
#include <stdint.h>

#include "tcgemm/export.h"
#include "tcgemm/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values never change their meaning; they are those of tcgemm::ErrorCode (error.hpp). */
typedef enum tcgemm_status {
    TCGEMM_OK = 0,
    TCGEMM_INVALID_ARGUMENT = 1,
    TCGEMM_INVALID_SHAPE = 2,
    TCGEMM_INVALID_DTYPE = 3,
    TCGEMM_INVALID_LAYOUT = 4,
    TCGEMM_UNSUPPORTED = 5,
    TCGEMM_NO_KERNEL = 6,
    TCGEMM_DEVICE_ERROR = 7,
    TCGEMM_OUT_OF_MEMORY = 8,
    TCGEMM_CUDA_ERROR = 9,
    TCGEMM_INTERNAL_ERROR = 10
} tcgemm_status;

/* In the order of the tables in dtype.hpp. */
typedef enum tcgemm_dtype {
    TCGEMM_FLOAT16 = 0,
    TCGEMM_BFLOAT16 = 1,
    TCGEMM_FLOAT32 = 2,
    TCGEMM_FLOAT64 = 3,
    TCGEMM_INT8 = 4,
    TCGEMM_INT32 = 5,
    TCGEMM_FLOAT8_E4M3FN = 6,
    TCGEMM_FLOAT8_E5M2 = 7
} tcgemm_dtype;

typedef enum tcgemm_precision {
    TCGEMM_PRECISION_AUTO = 0,
    TCGEMM_PRECISION_FP16 = 1,
    TCGEMM_PRECISION_BF16 = 2,
    TCGEMM_PRECISION_TF32 = 3,
    TCGEMM_PRECISION_FP32 = 4,
    TCGEMM_PRECISION_FP64 = 5,
    TCGEMM_PRECISION_INT8 = 6,
    TCGEMM_PRECISION_FP8_E4M3 = 7,
    TCGEMM_PRECISION_FP8_E5M2 = 8,
    TCGEMM_PRECISION_FP8 = 9, /* each operand in its own FP8 format */
    TCGEMM_PRECISION_FP32_SIMT = 10
} tcgemm_precision;

typedef enum tcgemm_accumulate {
    TCGEMM_ACCUMULATE_AUTO = 0,
    TCGEMM_ACCUMULATE_FP16 = 1,
    TCGEMM_ACCUMULATE_FP32 = 2,
    TCGEMM_ACCUMULATE_PROMOTED = 3,
    TCGEMM_ACCUMULATE_FP64 = 4,
    TCGEMM_ACCUMULATE_INT32 = 5,
    TCGEMM_ACCUMULATE_FAST = 6
} tcgemm_accumulate;

typedef enum tcgemm_determinism {
    TCGEMM_RUN_TO_RUN = 0,
    TCGEMM_BATCH_INVARIANT = 1
} tcgemm_determinism;

#define TCGEMM_MAX_BATCH_DIMS 8
#define TCGEMM_CPU (-1) /* the value of `device` for host memory */

/* Strides count elements, and may be negative; 0 repeats an element (not allowed for D). */
typedef struct tcgemm_operand {
    tcgemm_dtype dtype;
    int64_t row_stride;
    int64_t col_stride;
    int64_t batch_stride[TCGEMM_MAX_BATCH_DIMS];
    int alignment; /* bytes; 1, 2, 4, 8 or 16: divides every address that is given for it */
} tcgemm_operand;

/* Which elements of A or B share a scale: see TCGEMM_SCALE_KINDS (epilogue.hpp). */
typedef enum tcgemm_scale_kind {
    TCGEMM_SCALE_NONE = 0,
    TCGEMM_SCALE_TENSOR = 1,
    TCGEMM_SCALE_VECTOR = 2,
    TCGEMM_SCALE_BLOCK_1X128 = 3,
    TCGEMM_SCALE_BLOCK_128X128 = 4
} tcgemm_scale_kind;

/* What becomes of too large values of a D in FP8: the largest number, or NaN (e5m2: Inf). */
typedef enum tcgemm_overflow {
    TCGEMM_OVERFLOW_SATURATE = 0,
    TCGEMM_OVERFLOW_NAN = 1
} tcgemm_overflow;

/* float32 numbers; strides count them, along rows of A or columns of B, and along K. */
typedef struct tcgemm_scale {
    tcgemm_scale_kind kind;
    int64_t outer_stride;
    int64_t k_stride;
    int64_t batch_stride[TCGEMM_MAX_BATCH_DIMS];
} tcgemm_scale;

/* D (m x n) = alpha * A (m x k) B (k x n) + beta * C (m x n), for each of the batch. Where there is
 * no C, describe it as D. Start from tcgemm_problem_init(). */
typedef struct tcgemm_problem {
    int64_t m, n, k;
    int batch_rank; /* 0: one product */
    int64_t batch_shape[TCGEMM_MAX_BATCH_DIMS];
    tcgemm_operand a, b, c, d;
    tcgemm_precision precision;
    tcgemm_accumulate accumulate;
    tcgemm_determinism determinism;
    tcgemm_scale scale_a, scale_b; /* of FP8 and int8 operands */
    int scale_d;                   /* 1: the result is multiplied by a float32 number in memory */
    tcgemm_overflow overflow;
} tcgemm_problem;

/* Addresses of element (0, 0) of batch 0, on the plan's device. Make all zero first, as in
 * `tcgemm_pointers at = {0};`, so that what is not set is NULL. c may be NULL where beta is 0; a,
 * b, scale_a and scale_b where alpha or k is 0; all where D has no elements. c may be d, with the
 * same strides; nothing else may overlap d. Scales that the problem does not have are ignored. */
typedef struct tcgemm_pointers {
    const void* a;
    const void* b;
    const void* c;
    void* d;
    const float* scale_a; /* scales: aligned to 4 */
    const float* scale_b;
    const float* scale_d;
} tcgemm_pointers;

typedef struct tcgemm_plan tcgemm_plan; /* opaque */

/* Of the library that is loaded: "0.1.0". */
TCGEMM_API const char* tcgemm_version(void);
/* What the calling thread's last failed call said; "" before the first. Valid until the next call
 * of this thread that fails. */
TCGEMM_API const char* tcgemm_last_error(void);
TCGEMM_API const char* tcgemm_status_name(tcgemm_status status);

/* Packed row-major matrices of one dtype (output: the same, also of FP8; int32 for int8), at
   addresses that are multiples of 16 bytes; precision and accumulate automatic. */
TCGEMM_API void tcgemm_problem_init(tcgemm_problem* problem, int64_t m, int64_t n, int64_t k,
                                    tcgemm_dtype dtype);

/* CUDA devices that can be used; 0 where there is none. */
TCGEMM_API int tcgemm_device_count(void);

/* Returns memory that the library keeps for its next products on a CUDA device to the driver. */
TCGEMM_API tcgemm_status tcgemm_release_unused_memory(int device);

/* device: TCGEMM_CPU or a CUDA ordinal. *plan is set only on TCGEMM_OK. */
TCGEMM_API tcgemm_status tcgemm_plan_create(const tcgemm_problem* problem, int device,
                                            tcgemm_plan** plan);
TCGEMM_API void tcgemm_plan_destroy(tcgemm_plan* plan);                 /* NULL is fine */
TCGEMM_API const char* tcgemm_plan_kernel(const tcgemm_plan* plan);     /* lives as the plan */
TCGEMM_API size_t tcgemm_plan_workspace_bytes(const tcgemm_plan* plan); /* bytes */
/* Several threads may run the same plan at the same time, each run with a workspace and a D of its
 * own. `pointers` is read before the call returns. alpha and beta are rounded to the accumulator's
 * precision; of an int32 result they must be whole numbers of at most 2^31 in magnitude. `stream`
 * is a cudaStream_t (ignored on the CPU). workspace: tcgemm_plan_workspace_bytes() bytes aligned to
 * 256, or NULL with 0 bytes: then it is taken from the library's pool. */
TCGEMM_API tcgemm_status tcgemm_plan_run(const tcgemm_plan* plan, const tcgemm_pointers* pointers,
                                         double alpha, double beta, void* stream, void* workspace,
                                         size_t workspace_bytes);

/* All in one: a cached plan, run with a workspace out of the library's pool. */
TCGEMM_API tcgemm_status tcgemm_gemm(const tcgemm_problem* problem, int device,
                                     const tcgemm_pointers* pointers, double alpha, double beta,
                                     void* stream);

#ifdef __cplusplus
}
#endif
#endif
