// A Plan is a checked problem with the kernel, the packing and the split that were chosen for it.
// Making one costs microseconds to tens of microseconds; running it only launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tcgemm/device.hpp"
#include "tcgemm/export.h"
#include "tcgemm/problem.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm {

struct Forced;  // what the TCGEMM_FORCE_* variables ask for

// Addresses of element (0, 0) of batch 0, in memory of the plan's device, which the caller owns and
// keeps until the product is computed. `c` may be null if beta = 0, `a` and `b` if alpha = 0 or
// K = 0, and all if D has no elements. `c` may be `d`, with the same strides; nothing else may
// overlap `d`.
struct GemmPointers {
    const void* a = nullptr;
    const void* b = nullptr;
    const void* c = nullptr;
    void* d = nullptr;
    // Only if the problem has such scales, aligned to 4 bytes. scale_a and scale_b are read if A
    // and B are, scale_d always.
    const float* scale_a = nullptr;
    const float* scale_b = nullptr;
    const float* scale_d = nullptr;
};

// Rounded to float32, except in FP64 products. For an int32 D they must be whole numbers of at most
// 2^31 in magnitude.
struct GemmScalars {
    double alpha = 1.0;
    double beta = 0.0;
};

// Immutable: several threads may run the same plan at the same time, each run with a workspace and
// a D of its own.
class TCGEMM_API Plan {
   public:
    // Checks the problem and chooses a kernel; the environment variables TCGEMM_FORCE_FAMILY and
    // TCGEMM_FORCE_KERNEL limit the choice. Throws InvalidArgument (modes, scales, environment
    // variables) or its kinds ShapeError, DTypeError and LayoutError; DeviceError for a device that
    // does not exist; NoKernelError, which lists each kernel's reason.
    Plan(const GemmProblem& problem, Device device);
    ~Plan();
    Plan(Plan&&) noexcept;
    Plan& operator=(Plan&&) noexcept;

    const std::string& kernel() const noexcept;  // "sm70_wmma_f16_128x256x32"; "none": D is empty
    const std::string& family() const noexcept;  // "sm70_wmma"
    // The kernel that computes the product if the device finds that values of the operands do not
    // fit kernel() (docs/numerics.md, FP32). Empty if all fit.
    std::string fallback() const;
    Device device() const noexcept;
    const GemmProblem& problem() const noexcept;  // as it was given
    Precision precision() const noexcept;         // resolved, never automatic
    Accumulate accumulate() const noexcept;       // resolved, never automatic
    Epilogue epilogue() const noexcept;           // scaled where the problem asks for it
    int split_k() const noexcept;  // parts of K: of all tiles, or of those left over by whole waves
    std::size_t workspace_bytes() const noexcept;  // of device memory, for a run; 0 on the CPU
    std::string describe() const;                  // one line for each decision, for people
    // Throws InvalidArgument if run() would for these factors.
    void check_scalars(const GemmScalars& scalars) const;

    // Launches the product on `stream`, of the plan's device; D is written in stream order. Nothing
    // is allocated and nothing waits, so the call can be captured into a CUDA graph. On the CPU the
    // stream is ignored, and D is written when the call returns.
    // `workspace`: at least workspace_bytes() bytes of the plan's device, aligned to 256, which
    // nothing else uses until the stream has computed the product; not read if that is 0.
    // Throws LayoutError (null, misaligned or overlapping operands), InvalidArgument (a workspace
    // that is null, misaligned or too small; a factor that is no whole number for an int32 D; on
    // the CPU a wrong TCGEMM_NUM_THREADS or TCGEMM_HOST_ISA), CudaError; on the CPU OutOfMemory.
    void run(const GemmPointers& pointers, const GemmScalars& scalars, StreamView stream,
             void* workspace, std::size_t workspace_bytes) const;
    // The same with a workspace from the library's pool, allocated in stream order. Throws
    // OutOfMemory, too.
    void run(const GemmPointers& pointers, const GemmScalars& scalars = {},
             StreamView stream = {}) const;

   private:
    friend TCGEMM_API std::shared_ptr<const Plan> cached_plan(const GemmProblem& problem,
                                                              Device device);
    Plan(const GemmProblem& problem, Device device, const Forced& forced);
    struct Impl;
    std::unique_ptr<const Impl> impl_;
};

// The plan that was made for an equal problem before, or a new one, which is kept. Thread-safe.
// Throws as Plan's constructor does.
TCGEMM_API std::shared_ptr<const Plan> cached_plan(const GemmProblem& problem, Device device);
TCGEMM_API void clear_plan_cache();  // plans that are in use live on
// While this stays the same, cached_plan() gives an equal problem an equal plan: it changes with
// TCGEMM_FORCE_FAMILY, TCGEMM_FORCE_KERNEL and clear_plan_cache(). Throws InvalidArgument for wrong
// values of environment variables.
TCGEMM_API std::uint64_t plan_cache_generation();

// D = alpha * A B + beta * C, by a cached plan that runs with a workspace from the library's pool.
// Throws as Plan's constructor and Plan::run() do.
TCGEMM_API void gemm(const GemmProblem& problem, Device device, const GemmPointers& pointers,
                     const GemmScalars& scalars = {}, StreamView stream = {});

struct KernelDescription {
    std::string family;
    std::string name;
    std::string tile;           // "128x256x32" (M x N x K of a block), empty if there is none
    std::string architectures;  // as built: "70;75;90-virtual", empty for the CPU
    int dynamic_shared_bytes;   // of a block, in addition to what its code declares
};
// Every kernel of this build, in order of preference.
TCGEMM_API std::vector<KernelDescription> kernels();

struct KernelVerdict {
    std::string family;
    std::string name;
    std::string reason;   // why the kernel refuses the problem; empty if it accepts
    bool chosen = false;  // whether a plan takes this one
};
// What each kernel says of a problem, and which is chosen if none is forced. `device` need not
// exist: its properties may be those of another card. Throws as Plan's constructor does for a
// malformed problem.
TCGEMM_API std::vector<KernelVerdict> explain(const GemmProblem& problem,
                                              const DeviceProperties& device);

struct BuildInfo {
    std::string version;
    std::string cuda_version;   // "12.4", empty for a host-only build
    std::string compiler;       // host compiler
    std::string build_type;     // "Release"
    std::string architectures;  // all that any kernel was built for, "70;75;..."
    std::string commit;         // empty if unknown
};
TCGEMM_API const BuildInfo& build_info();

}  // namespace tcgemm
