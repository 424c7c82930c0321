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

// Addresses of element (0, 0) of batch 0, on the plan's device. `c` may be null where beta = 0, `a`
// and `b` where alpha = 0 or K = 0, and any where it has no elements.
struct GemmPointers {
    const void* a = nullptr;
    const void* b = nullptr;
    const void* c = nullptr;
    void* d = nullptr;
    // Where the problem has such scales: of batch 0, aligned to 4. Read as A and B are; scale_d
    // always.
    const float* scale_a = nullptr;
    const float* scale_b = nullptr;
    const float* scale_d = nullptr;
};

// Held in float32, of FP64 products in float64. int8 products with an int32 result take whole
// numbers only.
struct GemmScalars {
    double alpha = 1.0;
    double beta = 0.0;
};

// Immutable: several threads may run the same plan at the same time, each run with a workspace and
// a D of its own.
class TCGEMM_API Plan {
   public:
    // Checks the problem and chooses a kernel. Throws InvalidArgument (modes, scales) or its kinds
    // ShapeError, DTypeError and LayoutError; DeviceError; NoKernelError that lists each kernel's
    // reason.
    // TCGEMM_FORCE_FAMILY and TCGEMM_FORCE_KERNEL (environment) limit the choice.
    Plan(const GemmProblem& problem, Device device);
    ~Plan();
    Plan(Plan&&) noexcept;
    Plan& operator=(Plan&&) noexcept;

    const std::string& kernel() const noexcept;  // "sm70_wmma_f16_128x256x32"
    const std::string& family() const noexcept;  // "sm70_wmma"
    // The kernel that computes the product where operands turn out, on the device, not to fit
    // kernel(): see docs/numerics.md, FP32. Empty where all fit.
    std::string fallback() const;
    Device device() const noexcept;
    const GemmProblem& problem() const noexcept;  // as it was given
    Precision precision() const noexcept;         // resolved, never automatic
    Accumulate accumulate() const noexcept;       // resolved, never automatic
    Epilogue epilogue() const noexcept;           // scaled where the problem asks for it
    int split_k() const noexcept;  // parts of K: of all tiles, or of those left over by whole waves
    std::size_t workspace_bytes() const noexcept;
    std::string describe() const;  // one line a decision, for people
    // Throws InvalidArgument where run() would for these factors.
    void check_scalars(const GemmScalars& scalars) const;

    // Launches on `stream` (ignored on the CPU, where the call returns with D written). Nothing is
    // allocated and nothing waits, so the call can be captured into a CUDA graph. `workspace`:
    // workspace_bytes() bytes on the plan's device, aligned to 256, free for use in stream order.
    // Throws LayoutError (null, misaligned or overlapping operands), InvalidArgument (a workspace
    // too small, a factor that is no whole number for an int32 result), CudaError; on the CPU
    // OutOfMemory.
    void run(const GemmPointers& pointers, const GemmScalars& scalars, StreamView stream,
             void* workspace, std::size_t workspace_bytes) const;
    // The same with a workspace out of the library's pool, in stream order. Throws OutOfMemory.
    void run(const GemmPointers& pointers, const GemmScalars& scalars = {},
             StreamView stream = {}) const;

   private:
    friend TCGEMM_API std::shared_ptr<const Plan> cached_plan(const GemmProblem& problem,
                                                              Device device);
    Plan(const GemmProblem& problem, Device device, const Forced& forced);
    struct Impl;
    std::unique_ptr<const Impl> impl_;
};

// The plan of an equal problem made before, or a new one that is kept. Thread safe.
TCGEMM_API std::shared_ptr<const Plan> cached_plan(const GemmProblem& problem, Device device);
TCGEMM_API void clear_plan_cache();
// While this stays the same, cached_plan() gives an equal problem an equal plan: it changes with
// TCGEMM_FORCE_FAMILY, TCGEMM_FORCE_KERNEL and clear_plan_cache(). Throws as Plan's constructor
// does for wrong values of environment variables.
TCGEMM_API std::uint64_t plan_cache_generation();

// D = alpha * A B + beta * C through a cached plan and a workspace out of the library's pool.
TCGEMM_API void gemm(const GemmProblem& problem, Device device, const GemmPointers& pointers,
                     const GemmScalars& scalars = {}, StreamView stream = {});

struct KernelDescription {
    std::string family;
    std::string name;
    std::string tile;           // "128x256x32" (block M x N x K), empty where there is none
    std::string architectures;  // as built: "70;75;90-virtual", empty for the host
    int dynamic_shared_bytes;   // of a block, on top of what its code declares
};
// Every kernel of this build, in the order of preference.
TCGEMM_API std::vector<KernelDescription> kernels();

struct KernelVerdict {
    std::string family;
    std::string name;
    std::string reason;   // why the kernel refuses; empty: it accepts
    bool chosen = false;  // a plan takes this one
};
// What each kernel says of a problem, and which is chosen where none is forced. Throws as Plan's
// constructor does for a malformed problem. `device` may be a made-up one (compute capability of a
// card that is not there).
TCGEMM_API std::vector<KernelVerdict> explain(const GemmProblem& problem,
                                              const DeviceProperties& device);

struct BuildInfo {
    std::string version;
    std::string cuda_version;   // "12.4", empty for a host-only build
    std::string compiler;       // host compiler
    std::string build_type;     // "Release"
    std::string architectures;  // all that any kernel was built for, "70;75;..."
    std::string commit;         // empty where unknown
};
TCGEMM_API const BuildInfo& build_info();

}  // namespace tcgemm
