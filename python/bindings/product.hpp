// From Python's arguments to a GemmProblem, and from a Plan to a result. No kernel is chosen here.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>

#include "factors.hpp"
#include "operands.hpp"
#include "shapes.hpp"
#include "tcgemm/buffer.hpp"
#include "tcgemm/plan.hpp"

namespace tcgemm::python {

// The keywords that matmul, gemm, plan and explain share.
struct Modes {
    bool trans_a = false, trans_b = false;
    py::object out_dtype;   // a name or None
    py::object precision;   // likewise
    py::object accumulate;  // likewise
    py::object determinism;
    py::object overflow;
    py::object a_dtype, b_dtype;  // names or None: of operands that are given as uint8
    NumberScales scales = {};
};
// What they say of arrays that are given as uint8. Throws DTypeError for an unknown name.
NamedDTypes named_dtypes(const Modes& modes);

// A product without its addresses: all that a Plan depends on.
struct Statement {
    ProductShape shape;
    DType out_dtype = DType::f32;
    GemmProblem problem;  // of the arrays as the kernels see them: after staging
    bool has_c = false;
};

// `scalars`: with the scales that are numbers. Throws ShapeError, DTypeError, LayoutError,
// InvalidArgument.
Statement state(const Operands& operands, const Modes& modes, const GemmScalars& scalars);

// A statement and the plan that computes it.
struct Prepared {
    Statement statement;
    std::shared_ptr<const tcgemm::Plan> plan;
};
// As state() and cached_plan(), or what they gave for arrays that looked the same.
std::shared_ptr<const Prepared> prepare(const Operands& operands, const Modes& modes,
                                        const GemmScalars& scalars);

// Refuses an `out` that shares memory in a way that would spoil the result.
void check_out_memory(const Operands& operands, bool reads_c);

// Memory that a Plan needs between its kernels, kept from run to run.
class Workspace {
   public:
    Workspace(std::size_t bytes, Device device);
    ~Workspace();
    // Runs `plan` in it, after the run before it.
    void run(const tcgemm::Plan& plan, const GemmPointers& pointers, const GemmScalars& scalars,
             StreamView stream);

   private:
    std::mutex mutex_;
    std::shared_ptr<DeviceBuffer> buffer_;  // and that of graphs which a run was captured into
    Event last_use_;
};

// Computes into `out`, which is allocated if there is none, and returns it. `workspace` may be
// null.
py::object execute(Operands& operands, const Statement& statement, const tcgemm::Plan& plan,
                   const GemmScalars& scalars, Workspace* workspace);

// Python's tcgemm.Plan: a plan bound to arrays.
class BoundPlan {
   public:
    BoundPlan(const Arrays& arrays, const Modes& modes, const GemmScalars& scalars,
              py::handle stream);
    // None: as bound.
    py::object run(Arrays arrays, const py::object& alpha, const py::object& beta,
                   py::handle stream);
    const tcgemm::Plan& plan() const { return *plan_; }
    DType out_dtype() const { return statement_.out_dtype; }
    Arrays& arrays() { return arrays_; }
    py::object& stream() { return stream_; }

   private:
    void check_layout(const Operands& operands) const;
    void check_scales_are_numbers(const NumberScales& scales) const;

    Arrays arrays_;
    py::object stream_;                    // None: the frameworks' current one, at each run
    std::array<ArrayView, kSlots> views_;  // of the bound arrays, and of a new `out`
    std::array<bool, kSlots> has_{};
    GemmScalars scalars_;
    NumberScales scales_;
    NamedDTypes named_;
    Statement statement_;
    std::shared_ptr<const tcgemm::Plan> plan_;
    std::unique_ptr<Workspace> workspace_;
};

}  // namespace tcgemm::python
