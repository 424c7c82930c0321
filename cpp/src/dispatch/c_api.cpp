#include <cstring>
#include <new>
#include <string>

#include "tcgemm/buffer.hpp"
#include "tcgemm/error.hpp"
#include "tcgemm/plan.hpp"
#include "tcgemm/tcgemm.h"

struct tcgemm_plan {
    tcgemm::Plan plan;
};

namespace {

using namespace tcgemm;

static_assert(TCGEMM_MAX_BATCH_DIMS == kMaxBatchDims);
static_assert(static_cast<int>(DType::e5m2) == TCGEMM_FLOAT8_E5M2);
static_assert(static_cast<int>(Precision::fp32_simt) == TCGEMM_PRECISION_FP32_SIMT);
static_assert(static_cast<int>(Accumulate::fast) == TCGEMM_ACCUMULATE_FAST);
static_assert(static_cast<int>(ScaleKind::block_128x128) == TCGEMM_SCALE_BLOCK_128X128);
static_assert(static_cast<int>(Overflow::nan) == TCGEMM_OVERFLOW_NAN);
static_assert(static_cast<int>(Determinism::batch_invariant) == TCGEMM_BATCH_INVARIANT);
static_assert(static_cast<int>(ErrorCode::internal) == TCGEMM_INTERNAL_ERROR);

thread_local std::string last_error;

tcgemm_status fail(ErrorCode code, const char* message) noexcept {
    try {
        last_error = message;
    } catch (...) {  // not even memory for the message
        last_error.clear();
    }
    return static_cast<tcgemm_status>(code);
}

// Runs `call`; whatever it throws becomes a status.
template <class Call>
tcgemm_status guarded(const Call& call) noexcept {
    try {
        call();
        return TCGEMM_OK;
    } catch (const std::exception& error) {
        const auto* ours = dynamic_cast<const Error*>(&error);
        if (ours) return fail(ours->code(), error.what());
        if (dynamic_cast<const std::bad_alloc*>(&error)) {
            return fail(ErrorCode::out_of_memory, "out of host memory");
        }
        return fail(ErrorCode::internal, error.what());
    } catch (...) {
        return fail(ErrorCode::internal, "an exception of unknown type");
    }
}

template <class T>
const T& required(const T* pointer, const char* what, const char* fix) {
    if (pointer == nullptr) throw InvalidArgument(std::string(what) + " is NULL; " + fix);
    return *pointer;
}
constexpr const char* kProblemFix = "give the address of a tcgemm_problem";

// C may put any int into an enum: one that uint8_t does not hold must not wrap into a valid value.
template <class Enum, class RawEnum>
Enum to_enum(const RawEnum& raw, const char* what, const char* operand = "") {
    static_assert(sizeof(RawEnum) == sizeof(int));
    int value = 0;
    std::memcpy(&value, &raw, sizeof value);  // to read it as an enum would be undefined
    if (value < 0 || value > 255) {
        throw InvalidArgument(std::string(what) + operand + " has the value " +
                              std::to_string(value) +
                              "; it must be one of the enum's constants in tcgemm.h");
    }
    return static_cast<Enum>(value);
}

Operand to_operand(const tcgemm_operand& raw, const char* name) {
    Operand operand;
    operand.dtype = to_enum<DType>(raw.dtype, "dtype of operand ", name);
    operand.row_stride = raw.row_stride;
    operand.col_stride = raw.col_stride;
    for (int dim = 0; dim < kMaxBatchDims; ++dim) operand.batch_stride[dim] = raw.batch_stride[dim];
    operand.alignment = raw.alignment;
    return operand;
}

Scale to_scale(const tcgemm_scale& raw, const char* name) {
    Scale scale;
    scale.kind = to_enum<ScaleKind>(raw.kind, "kind of scale_", name);
    scale.outer_stride = raw.outer_stride;
    scale.k_stride = raw.k_stride;
    for (int dim = 0; dim < kMaxBatchDims; ++dim) scale.batch_stride[dim] = raw.batch_stride[dim];
    return scale;
}

GemmProblem to_problem(const tcgemm_problem& raw) {
    GemmProblem problem;
    problem.m = raw.m;
    problem.n = raw.n;
    problem.k = raw.k;
    problem.batch_rank = raw.batch_rank;
    for (int dim = 0; dim < kMaxBatchDims; ++dim) problem.batch_shape[dim] = raw.batch_shape[dim];
    problem.a = to_operand(raw.a, "A");
    problem.b = to_operand(raw.b, "B");
    problem.c = to_operand(raw.c, "C");
    problem.d = to_operand(raw.d, "D");
    problem.precision = to_enum<Precision>(raw.precision, "precision");
    problem.accumulate = to_enum<Accumulate>(raw.accumulate, "accumulate");
    problem.determinism = to_enum<Determinism>(raw.determinism, "determinism");
    problem.scale_a = to_scale(raw.scale_a, "a");
    problem.scale_b = to_scale(raw.scale_b, "b");
    problem.scale_d = raw.scale_d != 0;
    problem.overflow = to_enum<Overflow>(raw.overflow, "overflow");
    return problem;
}

Device to_device(int device) {
    if (device < TCGEMM_CPU) {
        throw DeviceError("device is " + std::to_string(device) +
                          "; it must be TCGEMM_CPU (-1) or a CUDA ordinal");
    }
    return Device{device};
}

StreamView to_stream(void* stream) { return static_cast<StreamHandle>(stream); }

GemmPointers to_pointers(const tcgemm_pointers* raw) {
    if (raw == nullptr) {
        throw InvalidArgument(
            "pointers is NULL; give the address of a tcgemm_pointers, with NULL for each operand "
            "that is not used");
    }
    return {raw->a, raw->b, raw->c, raw->d, raw->scale_a, raw->scale_b, raw->scale_d};
}

}  // namespace

extern "C" {

const char* tcgemm_version(void) { return TCGEMM_VERSION; }
const char* tcgemm_last_error(void) { return last_error.c_str(); }

const char* tcgemm_status_name(tcgemm_status status) {
    switch (status) {
        case TCGEMM_OK: return "ok";
        case TCGEMM_INVALID_ARGUMENT: return "invalid argument";
        case TCGEMM_INVALID_SHAPE: return "invalid shape";
        case TCGEMM_INVALID_DTYPE: return "invalid dtype";
        case TCGEMM_INVALID_LAYOUT: return "invalid layout";
        case TCGEMM_UNSUPPORTED: return "unsupported";
        case TCGEMM_NO_KERNEL: return "no kernel";
        case TCGEMM_DEVICE_ERROR: return "device error";
        case TCGEMM_OUT_OF_MEMORY: return "out of memory";
        case TCGEMM_CUDA_ERROR: return "CUDA error";
        case TCGEMM_INTERNAL_ERROR: return "internal error";
    }
    return "unknown status";
}

void tcgemm_problem_init(tcgemm_problem* problem, int64_t m, int64_t n, int64_t k,
                         tcgemm_dtype dtype) {
    if (problem == nullptr) return;
    *problem = tcgemm_problem{};
    problem->m = m;
    problem->n = n;
    problem->k = k;
    const tcgemm_dtype output = dtype == TCGEMM_INT8 ? TCGEMM_INT32 : dtype;
    problem->a = {dtype, k, 1, {}, 16};
    problem->b = {dtype, n, 1, {}, 16};
    problem->c = {output, n, 1, {}, 16};
    problem->d = problem->c;
}

int tcgemm_device_count(void) { return cuda_device_count(); }

tcgemm_status tcgemm_release_unused_memory(int device) {
    return guarded([&] { release_unused_memory(to_device(device)); });
}

tcgemm_status tcgemm_plan_create(const tcgemm_problem* problem, int device, tcgemm_plan** plan) {
    return guarded([&] {
        required(plan, "plan", "give the address of a tcgemm_plan*");
        *plan = new tcgemm_plan{
            Plan(to_problem(required(problem, "problem", kProblemFix)), to_device(device))};
    });
}

void tcgemm_plan_destroy(tcgemm_plan* plan) { delete plan; }

const char* tcgemm_plan_kernel(const tcgemm_plan* plan) {
    return plan ? plan->plan.kernel().c_str() : "";
}

size_t tcgemm_plan_workspace_bytes(const tcgemm_plan* plan) {
    return plan ? plan->plan.workspace_bytes() : 0;
}

tcgemm_status tcgemm_plan_run(const tcgemm_plan* plan, const tcgemm_pointers* pointers,
                              double alpha, double beta, void* stream, void* workspace,
                              size_t workspace_bytes) {
    return guarded([&] {
        const Plan& p = required(plan, "plan", "make one with tcgemm_plan_create()").plan;
        const GemmPointers at = to_pointers(pointers);
        if (workspace == nullptr && workspace_bytes == 0) {
            p.run(at, {alpha, beta}, to_stream(stream));
        } else {
            p.run(at, {alpha, beta}, to_stream(stream), workspace, workspace_bytes);
        }
    });
}

tcgemm_status tcgemm_gemm(const tcgemm_problem* problem, int device,
                          const tcgemm_pointers* pointers, double alpha, double beta,
                          void* stream) {
    return guarded([&] {
        gemm(to_problem(required(problem, "problem", kProblemFix)), to_device(device),
             to_pointers(pointers), {alpha, beta}, to_stream(stream));
    });
}

}  // extern "C"
