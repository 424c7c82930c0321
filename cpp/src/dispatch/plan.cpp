#include "tcgemm/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "core/floating_point.hpp"
#include "core/math.hpp"
#include "dispatch/pack_step.hpp"
#include "dispatch/select.hpp"
#include "kernels/host/gemm.hpp"
#include "pack/halves.hpp"
#include "pack/pack.hpp"
#include "problem/scales.hpp"
#include "tcgemm/buffer.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm {
namespace {

constexpr std::int64_t kWorkspaceAlignment = 256;  // bytes, what cudaMalloc gives

ScaleView scale_view(const Scale& scale) {
    ScaleView view;
    view.outer_stride = scale.outer_stride;
    view.k_stride = scale.k_stride;
    for (int dim = 0; dim < kMaxBatchDims; ++dim) view.batch_stride[dim] = scale.batch_stride[dim];
    view.outer_block = scale.kind == ScaleKind::block_128x128 ? kScaleBlock : 1;
    view.along_k = is_blockwise(scale.kind);
    return view;
}

// Where passes of packing into halves come from and go to, with what a fallback for others needs.
struct HalvesStep {
    pack::HalvesTask a, b;
    std::size_t a_offset = 0, b_offset = 0;  // of halves, in the workspace
    std::size_t a_exponents_offset = 0, b_exponents_offset = 0, report_offset = 0;
    const KernelInfo* fallback = nullptr;  // null: the plan has no operands in halves
    Schedule fallback_schedule;
};

void check_whole(double value, const char* which) {
    if (value == std::floor(value) && std::fabs(value) <= 2147483648.0) return;
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    throw InvalidArgument(std::string(which) + " is " + text +
                          "; an int8 product with an int32 result takes whole numbers up to "
                          "2^31: name a floating-point dtype for D (out_dtype in Python)");
}

bool is_aligned(const void* pointer, std::int64_t alignment) {
    return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment) == 0;
}

std::string address(const void* pointer) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", pointer);
    return text;
}

// `fix`: what to do about an address that is not aligned.
void check_pointer(const void* pointer, int alignment, const char* operand, const char* fix) {
    if (pointer == nullptr) {
        throw LayoutError(std::string("operand ") + operand +
                          " is a null pointer, but its elements are used; give its address");
    }
    if (!is_aligned(pointer, alignment)) {
        throw LayoutError(std::string("operand ") + operand + " is at " + address(pointer) +
                          ", not aligned to " + std::to_string(alignment) + " bytes" + fix);
    }
}

void check_operand(const void* pointer, const Operand& operand, const char* name) {
    check_pointer(pointer, operand.alignment, name,
                  ", as its description says; describe its alignment as it is and make another "
                  "plan");
}

// Their alignment is not described: it is always that of float32 numbers.
void check_scale(const float* scale, const char* name) {
    check_pointer(scale, size_of(DType::f32), name,
                  ", as float32 numbers are; copy it to an address that is");
}

}  // namespace

struct Plan::Impl {
    Impl(const GemmProblem& problem, Device on, const Forced& forced);

    GemmScalars flushed(const GemmScalars& scalars) const;
    void check_run(const GemmPointers& p, const GemmScalars& scalars, bool reads_ab) const;
    GemmArgs make_args(const GemmPointers& pointers, const GemmScalars& scalars) const;
    void check_scales(const GemmPointers& p, bool reads_ab) const;
    void check_workspace(const void* workspace, std::size_t bytes) const;
    ScaleArgs make_scales(const GemmPointers& pointers, bool reads_ab) const;
    bool in_integers() const { return is_integer(valid->d.dtype); }
    void pack(GemmArgs& args, char* workspace, StreamView stream) const;
    void pack_halves(GemmArgs& args, char* workspace, StreamView stream) const;

    ValidProblem valid;
    Device device;
    std::string family_name, kernel_name;
    const KernelInfo* kernel = nullptr;  // null: the problem is empty, nothing is ever launched
    Schedule schedule;
    PackStep pack_a, pack_b;
    HalvesStep halves;
    std::size_t kernel_workspace_offset = 0, workspace_bytes = 0;
    Footprint a, b, c, d;  // in the canonical form, as `valid`
    Footprint scale_a, scale_b;
    GemmArgs args_without_pointers;
    ScaleArgs scales_without_pointers;
    bool same_layout_c_d = false;
};

Plan::Impl::Impl(const GemmProblem& problem, Device on, const Forced& forced)
    : valid(ValidProblem::check(problem)), device(on) {
    const DefaultFloatingPoint environment;  // of the cost models: the same choice everywhere
    const DeviceProperties& props = properties(device);
    if (valid.empty()) {
        kernel_name = family_name = "none";
        return;
    }
    const Choice choice = select(valid, props, forced);
    if (choice.gathered) valid = *choice.gathered;
    family_name = choice.family->name;
    kernel_name = choice.kernel->name;
    kernel = choice.kernel;
    schedule = choice.schedule;

    const GemmProblem& p = *valid;
    const PackSteps steps = plan_packing(valid, kernel->needs, schedule);
    pack_a = steps.a;
    pack_b = steps.b;
    const auto reserve = [&](std::size_t bytes) {
        const std::size_t offset = workspace_bytes;
        workspace_bytes += static_cast<std::size_t>(
            round_up(static_cast<std::int64_t>(bytes), kWorkspaceAlignment));
        return offset;
    };
    if (pack_a.needed) pack_a.workspace_offset = reserve(pack_a.task.target.bytes);
    if (pack_b.needed) pack_b.workspace_offset = reserve(pack_b.task.target.bytes);
    if (kernel->needs.halves() && p.k > 0) {
        const BatchShape batch = batch_shape(p);
        const int block = kernel->needs.halves_block;
        halves.a = pack::halves_task(pack_a.result, false, p.m, p.k, block, batch);
        halves.b = pack::halves_task(pack_b.result, true, p.n, p.k, block, batch);
        halves.a_offset = reserve(halves.a.target.bytes);
        halves.b_offset = reserve(halves.b.target.bytes);
        halves.a_exponents_offset = reserve(pack::exponents_bytes(halves.a));
        halves.b_exponents_offset = reserve(pack::exponents_bytes(halves.b));
        halves.report_offset = reserve(sizeof(halves::Report));
        halves.fallback = choice.fallback;
        halves.fallback_schedule = choice.fallback_schedule;
    }
    // Only one of the two kernels does anything.
    kernel_workspace_offset =
        reserve(std::max(schedule.workspace_bytes, halves.fallback_schedule.workspace_bytes));

    const GemmProblem& lies = valid.ungathered();
    a = footprint(lies, lies.a, lies.m, lies.k, "A");
    b = footprint(p, p.b, p.k, p.n, "B");
    c = footprint(p, p.c, p.m, p.n, "C");
    d = footprint(p, p.d, p.m, p.n, "D");
    const ScaleMatrix of_a = scale_matrix(p.scale_a, p.m, p.k);
    const ScaleMatrix of_b = scale_matrix(p.scale_b, p.n, p.k);
    scale_a = footprint(p, of_a.operand, of_a.rows, of_a.cols, "scale_a");
    scale_b = footprint(p, of_b.operand, of_b.rows, of_b.cols, "scale_b");
    scales_without_pointers = {scale_view(p.scale_a), scale_view(p.scale_b), nullptr, p.overflow};
    same_layout_c_d = p.c.row_stride == p.d.row_stride && p.c.col_stride == p.d.col_stride &&
                      p.c.batch_stride == p.d.batch_stride;

    GemmArgs& args = args_without_pointers;
    args.m = p.m;
    args.n = p.n;
    args.k = p.k;
    args.batch = batch_shape(p);
    args.a = matrix_view(p.a);
    args.b = matrix_view(p.b);
    args.c = matrix_view(p.c);
    args.d = matrix_view(p.d);
}

// What an FP32 accumulator rounds to 0 is 0: then A and B, or C, are not read. (Rounding both to
// float and back would say the same, but GCC 12 drops the two conversions at -O2.)
GemmScalars Plan::Impl::flushed(const GemmScalars& scalars) const {
    if (valid->precision == Precision::fp64 || in_integers()) return scalars;
    const auto flush = [](double x) { return static_cast<float>(x) == 0.0f ? 0.0 : x; };
    return {flush(scalars.alpha), flush(scalars.beta)};
}

// `p` is in the canonical form: A and B have traded places where D is computed as D^T.
void Plan::Impl::check_run(const GemmPointers& p, const GemmScalars& scalars, bool reads_ab) const {
    const char* const a_name = valid.is_transposed() ? "B" : "A";
    const char* const b_name = valid.is_transposed() ? "A" : "B";
    const bool reads_c = scalars.beta != 0.0;
    check_operand(p.d, valid->d, "D");
    if (reads_ab) {
        check_operand(p.a, valid.ungathered().a, a_name);
        check_operand(p.b, valid->b, b_name);
    }
    if (reads_c) check_operand(p.c, valid->c, "C");
    const auto refuse = [&](const char* operand, const char* fix) {
        throw LayoutError(std::string("D overlaps operand ") + operand +
                          " in memory, which would be read after it was written; " + fix);
    };
    if (reads_ab && overlaps(p.a, a, p.d, d)) refuse(a_name, "give D memory of its own");
    if (reads_ab && overlaps(p.b, b, p.d, d)) refuse(b_name, "give D memory of its own");
    if (reads_c && !(p.c == p.d && same_layout_c_d) && overlaps(p.c, c, p.d, d)) {
        refuse("C", "C may be D itself (same address and strides) or lie apart");
    }
}

void Plan::Impl::check_scales(const GemmPointers& p, bool reads_ab) const {
    const auto check = [&](const float* scales, const Footprint& span, const std::string& name) {
        check_scale(scales, name.c_str());
        if (overlaps(scales, span, p.d, d)) {
            throw LayoutError("D overlaps operand " + name + " in memory, which is read while D " +
                              "is written; give D memory of its own");
        }
    };
    const bool a_is_b = valid.is_transposed();
    if (reads_ab && valid->scale_a.kind != ScaleKind::none) {
        check(p.scale_a, scale_a, a_is_b ? "scale_b" : "scale_a");
    }
    if (reads_ab && valid->scale_b.kind != ScaleKind::none) {
        check(p.scale_b, scale_b, a_is_b ? "scale_a" : "scale_b");
    }
    const int size = size_of(DType::f32);
    if (valid->scale_d) check(p.scale_d, {0, size, size, 0}, "scale_d");
}

void Plan::Impl::check_workspace(const void* workspace, std::size_t bytes) const {
    if (workspace_bytes == 0) return;  // it is not touched
    const bool is_usable = workspace != nullptr && is_aligned(workspace, kWorkspaceAlignment);
    if (is_usable && bytes >= workspace_bytes) return;
    throw InvalidArgument("workspace has " + std::to_string(bytes) + " bytes at " +
                          (workspace != nullptr ? address(workspace) : "a null pointer") +
                          "; the plan needs " + std::to_string(workspace_bytes) + ", aligned to " +
                          std::to_string(kWorkspaceAlignment) +
                          ", as cudaMalloc() gives them: pass such memory, or no workspace for "
                          "one out of the library's pool");
}

ScaleArgs Plan::Impl::make_scales(const GemmPointers& pointers, bool reads_ab) const {
    ScaleArgs scales = scales_without_pointers;
    const bool has_a = reads_ab && valid->scale_a.kind != ScaleKind::none;
    const bool has_b = reads_ab && valid->scale_b.kind != ScaleKind::none;
    scales.a.data = has_a ? pointers.scale_a : nullptr;
    scales.b.data = has_b ? pointers.scale_b : nullptr;
    scales.d = valid->scale_d ? pointers.scale_d : nullptr;
    return scales;
}

GemmArgs Plan::Impl::make_args(const GemmPointers& pointers, const GemmScalars& scalars) const {
    GemmArgs args = args_without_pointers;
    args.a.data = const_cast<void*>(pointers.a);  // never written: a view has one type for all
    args.b.data = const_cast<void*>(pointers.b);
    args.c.data = const_cast<void*>(pointers.c);
    args.d.data = pointers.d;
    args.alpha = scalars.alpha;
    args.beta = scalars.beta;
    if (args.alpha == 0.0) args.k = 0;
    if (args.k == 0) args.alpha = 0.0;
    return args;
}

// Packs what the kernel cannot take as it is, and lets `args` point there.
void Plan::Impl::pack(GemmArgs& args, char* workspace, StreamView stream) const {
    if (!pack_a.needed && !pack_b.needed) return;
    pack::Task tasks[2];
    int count = 0;
    const auto add = [&](const PackStep& step, MatrixView& operand) {
        if (!step.needed) return;
        pack::Task& task = tasks[count++];
        task = step.task;
        task.source.data = operand.data;
        task.target.view.data = workspace + step.workspace_offset;
        operand = step.result;
        operand.data = task.target.view.data;
    };
    add(pack_a, args.a);
    add(pack_b, args.b);
    pack::launch(tasks, count, stream);
}

// Then into halves, and lets `args` run where the operands fit them.
void Plan::Impl::pack_halves(GemmArgs& args, char* workspace, StreamView stream) const {
    const auto placed = [&](const pack::HalvesTask& task, const MatrixView& source,
                            std::size_t offset, std::size_t exponents_offset) {
        pack::HalvesTask result = task;
        result.source.data = source.data;
        result.target.view.data = workspace + offset;
        result.exponents = reinterpret_cast<int*>(workspace + exponents_offset);
        return result;
    };
    const pack::HalvesTask its_a =
        placed(halves.a, args.a, halves.a_offset, halves.a_exponents_offset);
    const pack::HalvesTask its_b =
        placed(halves.b, args.b, halves.b_offset, halves.b_exponents_offset);
    auto* const report =
        reinterpret_cast<tcgemm::halves::Report*>(workspace + halves.report_offset);
    pack::launch_halves(its_a, its_b, report, stream);
    args.run_if = {report, tcgemm::halves::max_spans(args.k), true};
    args.a = its_a.target.view;
    args.b = its_b.target.view;
    args.exponents_a = its_a.exponents;
    args.exponents_b = its_b.exponents;
    args.k = tcgemm::halves::packed_k(args.k, halves.a.block);
}

Plan::Plan(const GemmProblem& problem, Device device)
    : Plan(problem, device, forced_by_environment()) {}
Plan::Plan(const GemmProblem& problem, Device device, const Forced& forced)
    : impl_(std::make_unique<const Impl>(problem, device, forced)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

const std::string& Plan::kernel() const noexcept { return impl_->kernel_name; }
const std::string& Plan::family() const noexcept { return impl_->family_name; }
Device Plan::device() const noexcept { return impl_->device; }
const GemmProblem& Plan::problem() const noexcept { return impl_->valid.as_given(); }
Precision Plan::precision() const noexcept { return impl_->valid->precision; }
Accumulate Plan::accumulate() const noexcept { return impl_->valid->accumulate; }
Epilogue Plan::epilogue() const noexcept { return impl_->valid.epilogue(); }
std::string Plan::fallback() const {
    return impl_->halves.fallback != nullptr ? impl_->halves.fallback->name : "";
}
int Plan::split_k() const noexcept { return impl_->schedule.split_k; }
std::size_t Plan::workspace_bytes() const noexcept { return impl_->workspace_bytes; }

void Plan::check_scalars(const GemmScalars& scalars) const {
    if (!impl_->in_integers()) return;
    check_whole(scalars.alpha, "alpha");
    check_whole(scalars.beta, "beta");
}

void Plan::run(const GemmPointers& pointers, const GemmScalars& scalars, StreamView stream,
               void* workspace, std::size_t workspace_bytes) const {
    const Impl& plan = *impl_;
    check_scalars(scalars);
    if (plan.valid.empty()) {
        if (plan.device.is_cpu()) host::check_run_variables();  // as where there are elements
        return;
    }
    const DefaultFloatingPoint environment;  // alpha and beta are rounded here
    GemmPointers p = pointers;
    if (plan.valid.is_transposed()) {
        std::swap(p.a, p.b);
        std::swap(p.scale_a, p.scale_b);
    }
    const GemmScalars held = plan.flushed(scalars);
    GemmArgs args = plan.make_args(p, held);
    const bool reads_ab = args.k > 0;
    plan.check_run(p, held, reads_ab);
    std::optional<ScaleArgs> scales;  // validation gives every product with scales this epilogue
    if (plan.valid.epilogue() == Epilogue::scaled) {
        plan.check_scales(p, reads_ab);
        args.scales = &scales.emplace(plan.make_scales(p, reads_ab));
    }
    plan.check_workspace(workspace, workspace_bytes);
    const DeviceGuard guard(plan.device);
    char* const base = static_cast<char*>(workspace);
    args.workspace = base + plan.kernel_workspace_offset;
    if (reads_ab) plan.pack(args, base, stream);
    if (reads_ab && plan.halves.fallback != nullptr) {
        GemmArgs otherwise = args;
        plan.pack_halves(args, base, stream);
        launch_kernel(*plan.kernel, args, plan.schedule, stream);
        otherwise.run_if = args.run_if;
        otherwise.run_if.fits = false;
        launch_kernel(*plan.halves.fallback, otherwise, plan.halves.fallback_schedule, stream);
        return;
    }
    launch_kernel(*plan.kernel, args, plan.schedule, stream);
}

void Plan::run(const GemmPointers& pointers, const GemmScalars& scalars, StreamView stream) const {
    const std::size_t bytes = impl_->workspace_bytes;
    const DeviceBuffer workspace =
        bytes > 0 ? DeviceBuffer(bytes, impl_->device, stream) : DeviceBuffer();
    run(pointers, scalars, stream, workspace.data(), bytes);
}

void gemm(const GemmProblem& problem, Device device, const GemmPointers& pointers,
          const GemmScalars& scalars, StreamView stream) {
    cached_plan(problem, device)->run(pointers, scalars, stream);
}

std::string Plan::describe() const {
    const Impl& plan = *impl_;
    const GemmProblem& given = plan.valid.as_given();
    const auto strides = [](const Operand& o) {
        return std::string(name(o.dtype)) + " strides (" + std::to_string(o.row_stride) + ", " +
               std::to_string(o.col_stride) + ")";
    };
    std::string batch;  // as it is given: an empty product may have more than can be counted
    for (int dim = 0; dim < given.batch_rank; ++dim) {
        batch += (dim > 0 ? " x " : "") + std::to_string(given.batch_shape[dim]);
    }
    std::string text = "problem    " + std::to_string(given.m) + " x " + std::to_string(given.n) +
                       " x " + std::to_string(given.k) + ", batch " +
                       (batch.empty() ? "1" : batch) + "\n";
    text += "operands   A " + strides(given.a) + ", B " + strides(given.b) + ", D " +
            strides(given.d) + "\n";
    text += std::string("compute    ") + name(precision()) + ", accumulate " + name(accumulate()) +
            (given.determinism == Determinism::batch_invariant ? ", batch_invariant" : "") +
            (epilogue() == Epilogue::linear ? "" : std::string(", epilogue ") + name(epilogue())) +
            (plan.valid.is_transposed() != plan.schedule.transposed ? ", as D^T = B^T A^T" : "") +
            "\n";
    std::string scales;
    for (const auto& [operand, scale] : {std::pair{"A", given.scale_a}, {"B", given.scale_b}}) {
        if (scale.kind == ScaleKind::none) continue;
        scales += std::string(scales.empty() ? "" : ", ") + operand + " " + name(scale.kind);
    }
    if (given.scale_d) scales += std::string(scales.empty() ? "" : ", ") + "D tensor";
    if (!scales.empty()) text += "scales     " + scales + "\n";
    text += "device     " + properties(plan.device).name + "\n";
    text += "kernel     " + plan.kernel_name + ", split-K " + std::to_string(split_k()) +
            (plan.schedule.splits_rest ? " of the tiles behind the last whole wave" : "") + "\n";
    const std::string gathered =
        plan.valid.is_gathered()
            ? ", gathered into matrices of " + std::to_string(plan.valid->m) + " rows"
            : "";
    const auto packing = [&](const char* operand, const PackStep& step) {
        if (!step.needed) return;
        const MatrixView& target = step.result;
        text += std::string("pack       ") + operand + " to " + name(target.dtype) +
                (step.task.rounds_to_tf32 ? " rounded to TF32" : "") + " strides (" +
                std::to_string(target.row_stride) + ", " + std::to_string(target.col_stride) + ")" +
                (&step == &plan.pack_a ? gathered : "") + "\n";
    };
    packing(plan.valid.is_transposed() ? "B" : "A", plan.pack_a);
    packing(plan.valid.is_transposed() ? "A" : "B", plan.pack_b);
    if (plan.halves.fallback != nullptr) {
        text += "pack       A and B, each float32 number as two float16\n";
        text += std::string("fallback   ") + plan.halves.fallback->name + ", split-K " +
                std::to_string(plan.halves.fallback_schedule.split_k) +
                ", where numbers do not fit: decided on the device\n";
    }
    text += "workspace  " + std::to_string(plan.workspace_bytes) + " bytes";
    return text;
}

}  // namespace tcgemm
