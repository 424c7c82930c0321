#include "product.hpp"

#include <optional>

#include "errors.hpp"
#include "gil.hpp"
#include "staging.hpp"
#include "tcgemm/environment.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

void launch(const tcgemm::Plan& plan, const GemmPointers& pointers, const GemmScalars& scalars,
            StreamView stream, Workspace* workspace) {
    if (workspace != nullptr) {
        workspace->run(plan, pointers, scalars, stream);
    } else {
        plan.run(pointers, scalars, stream);
    }
}

// Frameworks keep GPU memory for later. Where there is none left, one more attempt without that,
// but not while a graph is captured: to free memory could end that.
template <class Attempt>
auto with_room(const Operands& operands, const Attempt& attempt) {
    try {
        return attempt();
    } catch (const OutOfMemory&) {
        if (operands.stream().is_capturing()) throw;
    }
    try {
        py::module_::import("tcgemm._frameworks").attr("release_cached_memory")();
    } catch (const py::error_already_set&) {  // as while another thread captures a graph
    }
    return attempt();
}

// Copies what the product reads to the GPU, computes, and copies the result back. Without the GIL.
void run_staged(const Operands& operands, const Statement& statement, const tcgemm::Plan& plan,
                const GemmScalars& scalars, Workspace* workspace) {
    const StreamView stream = operands.stream();
    std::array<std::optional<StagedArray>, kSlots> staged;
    const bool reads_ab = scalars.alpha != 0;
    const std::array<bool, kSlots> read = {reads_ab,
                                           reads_ab,
                                           statement.has_c && scalars.beta != 0,
                                           false,
                                           reads_ab && operands.has(kScaleA),
                                           reads_ab && operands.has(kScaleB),
                                           operands.has(kScaleD)};
    for (int i = 0; i < kSlots; ++i) {
        if (!read[i] && i != kOut) continue;
        staged[i].emplace(operands.view(static_cast<Slot>(i)), operands.compute_device(), stream);
        if (read[i]) staged[i]->upload();
    }
    const auto data = [&](Slot slot) { return staged[slot] ? staged[slot]->data() : nullptr; };
    const auto scales = [&](Slot slot) { return static_cast<const float*>(data(slot)); };
    launch(plan,
           {data(kA), data(kB), data(kC), data(kOut), scales(kScaleA), scales(kScaleB),
            scales(kScaleD)},
           scalars, stream, workspace);
    staged[kOut]->download();
}

GemmPointers pointers_of(const Operands& operands, const Statement& statement) {
    const auto scales = [&](Slot slot) {  // null where there are none
        return static_cast<const float*>(operands.view(slot).data);
    };
    return {operands.view(kA).data,
            operands.view(kB).data,
            statement.has_c ? operands.view(kC).data : nullptr,
            operands.view(kOut).data,
            scales(kScaleA),
            scales(kScaleB),
            scales(kScaleD)};
}

}  // namespace

Workspace::Workspace(std::size_t bytes, Device device)
    : buffer_(std::make_shared<DeviceBuffer>(bytes, device, service_stream(device))),
      last_use_(device) {
    // The memory may have been another plan's that is still at work in it. Waited for here, as a
    // captured run can't.
    const ReleasedGil no_gil;
    buffer_->stream().synchronize();
}

Workspace::~Workspace() {
    try {
        last_use_.wait_on(buffer_->stream());  // the buffer is freed in the order of its stream
    } catch (...) {
        // The device is lost, and its memory with it.
    }
}

void Workspace::run(const tcgemm::Plan& plan, const GemmPointers& pointers,
                    const GemmScalars& scalars, StreamView stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto run_plan = [&] {
        plan.run(pointers, scalars, stream, buffer_->data(), buffer_->bytes());
    };
    if (stream.is_capturing()) {  // events from outside can't enter a graph
        stream.share_with_graph(buffer_);
        return run_plan();
    }
    last_use_.wait_on(stream);
    try {
        run_plan();
    } catch (...) {  // maybe after the launch of a kernel that writes to the workspace
        try {
            last_use_.record(stream);
        } catch (...) {  // the first error says more
        }
        throw;
    }
    last_use_.record(stream);
}

py::object execute(Operands& operands, const Statement& statement, const tcgemm::Plan& plan,
                   const GemmScalars& scalars, Workspace* workspace) {
    if (!operands.has(kOut)) {
        const auto allocate = [&] {
            operands.allocate_out(statement.out_dtype, statement.shape.out_ndim,
                                  statement.shape.out);
        };
        operands.memory_device().is_cpu() ? allocate() : with_room(operands, allocate);
    }
    if (operands.compute_device().is_cpu()) {
        const HeldEnvironment environment;  // os.environ is written with the GIL alone
        const ReleasedGil no_gil;
        plan.run(pointers_of(operands, statement), scalars);
    } else if (operands.staged()) {
        operands.wait_for_frameworks();
        with_room(operands, [&] {
            const ReleasedGil no_gil;
            run_staged(operands, statement, plan, scalars, workspace);
        });
    } else {
        operands.check_copies_can_be_kept();
        operands.wait_for_frameworks();
        with_room(operands, [&] {
            const ReleasedGil no_gil;
            launch(plan, pointers_of(operands, statement), scalars, operands.stream(), workspace);
            if (operands.synchronous() || operands.holds_copies()) operands.stream().synchronize();
        });
        operands.release_to_frameworks();
    }
    return operands.finish();
}

BoundPlan::BoundPlan(const Arrays& arrays, const Modes& modes, const GemmScalars& scalars,
                     py::handle stream)
    : arrays_(arrays),
      stream_(py::reinterpret_borrow<py::object>(stream)),
      scalars_(scalars),
      scales_(modes.scales),
      named_(named_dtypes(modes)) {
    const Operands operands(arrays, stream, named_);
    statement_ = state(operands, modes, scales_.times(scalars));
    for (int i = 0; i < kSlots; ++i) {
        views_[i] = operands.view(static_cast<Slot>(i));
        has_[i] = operands.has(static_cast<Slot>(i));
    }
    if (!operands.has(kOut)) {
        views_[kOut] = packed(statement_.out_dtype, statement_.shape.out_ndim, statement_.shape.out,
                              operands.memory_device());
    }
    plan_ = cached_plan(statement_.problem, operands.compute_device());
    plan_->check_scalars(scales_.times(scalars));
    if (plan_->workspace_bytes() > 0 && !operands.compute_device().is_cpu()) {
        workspace_ = with_room(operands, [&] {
            return std::make_unique<Workspace>(plan_->workspace_bytes(), operands.compute_device());
        });
    }
}

// Of the bound arrays too: frameworks can give an array other memory, of another shape.
void BoundPlan::check_layout(const Operands& operands) const {
    for (int i = 0; i < kSlots; ++i) {
        const auto slot = static_cast<Slot>(i);
        if (!operands.has(slot)) continue;
        const ArrayView& got = operands.view(slot);
        const ArrayView& wanted = views_[slot];
        const bool planned = slot == kC ? statement_.has_c : slot == kOut || has_[slot];
        if (!planned) {
            const std::string name = kSlotNames[slot];
            throw InvalidArgument(
                scales_.has(slot)
                    ? name + " is an array, but the plan was made with a number; make a " +
                          "plan with an array as " + name
                    : name + " is given, but the plan was made without one; make a plan " +
                          "with " + name);
        }
        if (!same_layout(got, wanted)) {
            throw LayoutError(std::string(kSlotNames[slot]) + " is " + name(got.dtype) +
                              " of shape " + text(got.ndim, got.shape) + " and strides " +
                              text(got.ndim, got.stride) + " on " + text(got.device) +
                              "; the plan was made for " + name(wanted.dtype) + " of shape " +
                              text(wanted.ndim, wanted.shape) + " and strides " +
                              text(wanted.ndim, wanted.stride) + " on " + text(wanted.device) +
                              ": make another plan");
        }
        if (!operands.staged() && got.alignment() < wanted.alignment()) {
            throw LayoutError(std::string(kSlotNames[slot]) + " lies at an address aligned to " +
                              std::to_string(got.alignment()) + " bytes; the plan was made for " +
                              std::to_string(wanted.alignment()) + ": make another plan");
        }
    }
}

void BoundPlan::check_scales_are_numbers(const NumberScales& scales) const {
    for (const Slot slot : {kScaleA, kScaleB, kScaleD}) {
        if (scales.has(slot) && !scales_.has(slot)) {
            const std::string name = kSlotNames[slot];
            throw InvalidArgument(name + " is a number, but the plan was made " +
                                  (has_[slot] ? "with an array" : "without one") +
                                  "; make a plan with a number as " + name);
        }
    }
}

py::object BoundPlan::run(Arrays arrays, const py::object& alpha, const py::object& beta,
                          py::handle stream) {
    const NumberScales scales = take_number_scales(arrays);
    check_scales_are_numbers(scales);
    Arrays used = arrays_;
    KnownViews known{};
    for (int i = 0; i < kSlots; ++i) {
        if (!arrays[i].is_none()) {
            used[i] = arrays[i];
        } else if (!arrays_[i].is_none()) {
            known[i] = &views_[i];
        }
    }
    GemmScalars scalars = scalars_;
    if (!alpha.is_none()) scalars.alpha = scalar_from_python(alpha, "alpha");
    if (!beta.is_none()) scalars.beta = scalar_from_python(beta, "beta");
    scalars = scales_.replaced_by(scales).times(scalars);
    if (scalars.beta != 0 && !statement_.has_c) {
        throw InvalidArgument("beta is " + shown(py::repr(py::float_(scalars.beta))) +
                              ", but the plan was made without a c; make a plan with c");
    }
    Operands operands(used, stream.is_none() ? py::handle(stream_) : stream, named_, known,
                      plan_->device());
    check_layout(operands);
    if (operands.has(kOut)) check_out_memory(operands, scalars.beta != 0);
    return execute(operands, statement_, *plan_, scalars, workspace_.get());
}

}  // namespace tcgemm::python
