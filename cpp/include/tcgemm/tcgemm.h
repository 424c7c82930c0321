/* The C interface of tcgemm. No call throws or ends the process: each that can fail returns a
 * status, and tcgemm_last_error() explains the last failure on the calling thread. Errors about
 * arguments come before anything is launched: D is untouched. All functions are thread-safe, but a
 * plan must not be destroyed while another call uses it. Strings belong to the library. */
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
    TCGEMM_INVALID_ARGUMENT = 1, /* a wrong value, or values that do not go together */
    TCGEMM_INVALID_SHAPE = 2,    /* sizes that are negative or too large for 64 bits */
    TCGEMM_INVALID_DTYPE = 3,    /* a dtype, or a mix of them, that is not accepted */
    TCGEMM_INVALID_LAYOUT = 4,   /* strides, alignment, overlap, or a null pointer */
    TCGEMM_UNSUPPORTED = 5,      /* not in this version of the library, or not on this device */
    TCGEMM_NO_KERNEL = 6,        /* no kernel takes the problem on this device */
    TCGEMM_DEVICE_ERROR = 7,     /* no such device, or no driver */
    TCGEMM_OUT_OF_MEMORY = 8,    /* of the device or of the host */
    TCGEMM_CUDA_ERROR = 9,       /* reported by the CUDA runtime or driver */
    TCGEMM_INTERNAL_ERROR = 10
} tcgemm_status;

/* Element types of the operands. */
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

/* What the elements of A and B are rounded to before they are multiplied: see dtype.hpp. */
typedef enum tcgemm_precision {
    TCGEMM_PRECISION_AUTO = 0, /* what the operands hold */
    TCGEMM_PRECISION_FP16 = 1,
    TCGEMM_PRECISION_BF16 = 2,
    TCGEMM_PRECISION_TF32 = 3,
    TCGEMM_PRECISION_FP32 = 4,
    TCGEMM_PRECISION_FP64 = 5,
    TCGEMM_PRECISION_INT8 = 6,
    TCGEMM_PRECISION_FP8_E4M3 = 7,
    TCGEMM_PRECISION_FP8_E5M2 = 8,
    TCGEMM_PRECISION_FP8 = 9,       /* each operand in its own FP8 format */
    TCGEMM_PRECISION_FP32_SIMT = 10 /* FP32 on CUDA cores only */
} tcgemm_precision;

/* What the products are summed in: see dtype.hpp. */
typedef enum tcgemm_accumulate {
    TCGEMM_ACCUMULATE_AUTO = 0, /* the usual format for the precision */
    TCGEMM_ACCUMULATE_FP16 = 1,
    TCGEMM_ACCUMULATE_FP32 = 2,
    TCGEMM_ACCUMULATE_PROMOTED = 3,
    TCGEMM_ACCUMULATE_FP64 = 4,
    TCGEMM_ACCUMULATE_INT32 = 5,
    TCGEMM_ACCUMULATE_FAST = 6
} tcgemm_accumulate;

typedef enum tcgemm_determinism {
    TCGEMM_RUN_TO_RUN = 0,     /* the same bits in every run */
    TCGEMM_BATCH_INVARIANT = 1 /* and for a row of D whatever M, the batch and the layout are */
} tcgemm_determinism;

#define TCGEMM_MAX_BATCH_DIMS 8
#define TCGEMM_CPU (-1) /* the value of `device` for host memory */

/* How an operand lies in memory: element (i, j) of batch (p, q, ..) is at
 * p * batch_stride[0] + q * batch_stride[1] + .. + i * row_stride + j * col_stride
 * from the address that is given. Strides count elements, and may be negative; 0 repeats an element
 * (not allowed for D). */
typedef struct tcgemm_operand {
    tcgemm_dtype dtype;
    int64_t row_stride;
    int64_t col_stride;
    int64_t batch_stride[TCGEMM_MAX_BATCH_DIMS];
    /* Bytes: 1, 2, 4, 8 or 16, at least the size of an element. Every address that is given for the
     * operand must be a multiple. */
    int alignment;
} tcgemm_operand;

/* Which elements of A or B share a scale. */
typedef enum tcgemm_scale_kind {
    TCGEMM_SCALE_NONE = 0,
    TCGEMM_SCALE_TENSOR = 1,       /* all */
    TCGEMM_SCALE_VECTOR = 2,       /* a row of A, a column of B */
    TCGEMM_SCALE_BLOCK_1X128 = 3,  /* 128 k of a row of A or column of B; FP8 only */
    TCGEMM_SCALE_BLOCK_128X128 = 4 /* 128 k of 128 rows of A or columns of B; FP8 only */
} tcgemm_scale_kind;

/* What values beyond the range of an FP8 D become: its largest number, or NaN (e5m2: Inf). */
typedef enum tcgemm_overflow {
    TCGEMM_OVERFLOW_SATURATE = 0,
    TCGEMM_OVERFLOW_NAN = 1
} tcgemm_overflow;

/* How the scales of A or B, float32 numbers, lie in memory. Strides count numbers: outer_stride
 * from one row of A or column of B (or 128 of them) to the next, k_stride from one 128 k to the
 * next. */
typedef struct tcgemm_scale {
    tcgemm_scale_kind kind;
    int64_t outer_stride;
    int64_t k_stride;
    int64_t batch_stride[TCGEMM_MAX_BATCH_DIMS];
} tcgemm_scale;

/* D (m x n) = alpha * A (m x k) B (k x n) + beta * C (m x n), for each matrix of the batch. C has
 * the dtype of D; if there is none (beta is 0), describe it as D. Start from
 * tcgemm_problem_init(). */
typedef struct tcgemm_problem {
    int64_t m, n, k;
    int batch_rank; /* 0: one product */
    int64_t batch_shape[TCGEMM_MAX_BATCH_DIMS];
    tcgemm_operand a, b, c, d;
    tcgemm_precision precision;
    tcgemm_accumulate accumulate;
    tcgemm_determinism determinism;
    tcgemm_scale scale_a, scale_b; /* of FP8 and int8 operands */
    int scale_d;                   /* 1: D is multiplied by a float32 number in memory */
    tcgemm_overflow overflow;
} tcgemm_problem;

/* Addresses of element (0, 0) of batch 0, in memory of the plan's device, which the caller owns.
 * Begin with `tcgemm_pointers at = {0};`, so that what is not set is NULL. c may be NULL if beta is
 * 0; a, b, scale_a and scale_b if alpha or k is 0; all if D has no elements. c may be d, with the
 * same strides; nothing else may overlap d. Scales that the problem does not have are ignored. */
typedef struct tcgemm_pointers {
    const void* a;
    const void* b;
    const void* c;
    void* d;
    const float* scale_a; /* scales: aligned to 4 bytes */
    const float* scale_b;
    const float* scale_d;
} tcgemm_pointers;

typedef struct tcgemm_plan tcgemm_plan; /* opaque */

/* The version of the library that is loaded: "0.1.0". */
TCGEMM_API const char* tcgemm_version(void);
/* The message of the calling thread's last failure; "" before the first. Valid until the next call
 * of this thread that fails. */
TCGEMM_API const char* tcgemm_last_error(void);
/* "invalid shape", for example. */
TCGEMM_API const char* tcgemm_status_name(tcgemm_status status);

/* Sets all fields, for one product of packed row-major matrices at addresses that are multiples of
 * 16 bytes, with the default precision and accumulator. `dtype` is that of all operands, also for
 * FP8; C and D of int8 operands are int32. */
TCGEMM_API void tcgemm_problem_init(tcgemm_problem* problem, int64_t m, int64_t n, int64_t k,
                                    tcgemm_dtype dtype);

/* Number of usable CUDA devices; 0 without a GPU, a driver or GPU code in this build. */
TCGEMM_API int tcgemm_device_count(void);

/* Returns the memory that the library keeps for its next products on a CUDA device (its ordinal) to
 * the driver. */
TCGEMM_API tcgemm_status tcgemm_release_unused_memory(int device);

/* Checks the problem and chooses a kernel on `device`, TCGEMM_CPU or a CUDA ordinal. *plan is set
 * only on TCGEMM_OK; the caller destroys it. */
TCGEMM_API tcgemm_status tcgemm_plan_create(const tcgemm_problem* problem, int device,
                                            tcgemm_plan** plan);
/* NULL is allowed. Products that were launched do not need the plan any more. */
TCGEMM_API void tcgemm_plan_destroy(tcgemm_plan* plan);
/* Name of the kernel, valid as long as the plan; "" for NULL. */
TCGEMM_API const char* tcgemm_plan_kernel(const tcgemm_plan* plan);
/* Bytes of device memory that a run needs; 0 for NULL and on the CPU. */
TCGEMM_API size_t tcgemm_plan_workspace_bytes(const tcgemm_plan* plan);
/* Computes the product. On a GPU the call only launches, and D is written in the order of `stream`,
 * a cudaStream_t of the plan's device (NULL: its legacy default stream). On the CPU `stream` is
 * ignored, and D is written when the call returns.
 * alpha and beta are rounded to float32, except in FP64 products; for an int32 D they must be whole
 * numbers of at most 2^31 in magnitude. `pointers` is read before the call returns.
 * workspace: at least tcgemm_plan_workspace_bytes() bytes of the plan's device, aligned to 256,
 * which nothing else uses until the stream has computed the product; or NULL and 0: then it is
 * taken from the library's pool. Several threads may run the same plan at the same time, each run
 * with a workspace and a D of its own. */
TCGEMM_API tcgemm_status tcgemm_plan_run(const tcgemm_plan* plan, const tcgemm_pointers* pointers,
                                         double alpha, double beta, void* stream, void* workspace,
                                         size_t workspace_bytes);

/* Both in one call: a cached plan, run as by tcgemm_plan_run() with a workspace from the library's
 * pool. */
TCGEMM_API tcgemm_status tcgemm_gemm(const tcgemm_problem* problem, int device,
                                     const tcgemm_pointers* pointers, double alpha, double beta,
                                     void* stream);

#ifdef __cplusplus
}
#endif
#endif
