// tcgemm._core: what Python calls. Names and docstrings for users are in the package's own modules.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "calls.hpp"
#include "elements.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "probe.hpp"
#include "tcgemm/tcgemm.hpp"

namespace tcgemm::python {
namespace {

Request request_of(const py::args& args) {
    return python::request_of(PySequence_Fast_ITEMS(args.ptr()), PyTuple_GET_SIZE(args.ptr()));
}

std::unique_ptr<BoundPlan> make_plan(const py::args& args) {
    const Request request = request_of(args);
    return std::make_unique<BoundPlan>(request.arrays, request.modes, request.scalars,
                                       request.stream);
}

py::list verdicts(const GemmProblem& problem, const DeviceProperties& device) {
    py::list rows;
    for (const KernelVerdict& verdict : tcgemm::explain(problem, device)) {
        py::dict row;
        row["family"] = verdict.family;
        row["name"] = verdict.name;
        row["reason"] = verdict.reason;
        row["chosen"] = verdict.chosen;
        rows.append(row);
    }
    return rows;
}

py::list explain_product(const py::args& args) {
    const Request request = request_of(args);
    const Modes& modes = request.modes;
    plan_cache_generation();  // throws what a product would say of the environment
    const Operands operands(request.arrays, request.stream, named_dtypes(modes));
    const Statement statement = state(operands, modes, modes.scales.times(request.scalars));
    return verdicts(statement.problem, properties(operands.compute_device()));
}

// Row-major matrices on a card that need not be there; `cc` None: on the CPU.
py::list explain_example(const std::string& operand_dtype, const std::string& out_dtype,
                         const std::string& precision, const std::string& accumulate,
                         const std::tuple<std::int64_t, std::int64_t, std::int64_t>& shape,
                         const std::optional<std::pair<int, int>>& cc, int sm_count,
                         std::int64_t shared_memory_per_block, std::int64_t l2_bytes, int clock_khz,
                         int memory_gb_per_s) {
    const auto index = [](const auto& names, const std::string& name) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (name == names[i]) return i;
        }
        throw InvalidArgument("unknown name " + name);
    };
    GemmProblem problem;
    std::tie(problem.m, problem.n, problem.k) = shape;
    const auto row_major = [](DType element, std::int64_t columns) {
        Operand operand = Operand::row_major(element, columns);
        while (columns * size_of(element) % operand.alignment != 0) operand.alignment /= 2;
        return operand;
    };
    const auto dtype = [](const std::string& name) {
        if (const std::optional<DType> known = dtype_named(name)) return *known;
        throw DTypeError("unknown dtype " + name);
    };
    const DType operands = dtype(operand_dtype);
    problem.a = row_major(operands, problem.k);
    problem.b = row_major(operands, problem.n);
    problem.c = problem.d = row_major(dtype(out_dtype), problem.n);
    problem.precision = static_cast<Precision>(index(kPrecisionNames, precision));
    problem.accumulate = static_cast<Accumulate>(index(kAccumulateNames, accumulate));
    if (!cc) return verdicts(problem, properties(Device::cpu()));
    DeviceProperties card;
    card.device = Device::cuda(0);
    card.cc_major = cc->first;
    card.cc_minor = cc->second;
    card.name = "sm_" + std::to_string(card.cc());
    card.sm_count = sm_count;
    card.shared_memory_per_block = shared_memory_per_block;
    card.l2_bytes = l2_bytes;
    card.clock_khz = clock_khz;
    card.memory_gb_per_s = memory_gb_per_s;
    return verdicts(problem, card);
}

py::list kernel_rows() {
    py::list rows;
    for (const KernelDescription& kernel : kernels()) {
        py::dict row;
        row["family"] = kernel.family;
        row["name"] = kernel.name;
        row["tile"] = kernel.tile;
        row["architectures"] = kernel.architectures;
        row["dynamic_shared_bytes"] = kernel.dynamic_shared_bytes;
        rows.append(row);
    }
    return rows;
}

py::dict device_row(Device device) {
    const DeviceProperties& p = properties(device);
    py::dict row;
    row["ordinal"] = device.ordinal;
    row["name"] = p.name;
    row["compute_capability"] = py::make_tuple(p.cc_major, p.cc_minor);
    row["sm_count"] = p.sm_count;
    row["memory_bytes"] = p.total_memory;
    row["shared_memory_per_block_bytes"] = p.shared_memory_per_block;
    row["l2_bytes"] = p.l2_bytes;
    row["clock_khz"] = p.clock_khz;
    row["memory_gb_per_s"] = p.memory_gb_per_s;
    return row;
}

py::list device_rows() {
    py::list rows;
    about_to_use_cuda();
    for (int ordinal = 0; ordinal < cuda_device_count(); ++ordinal) {
        rows.append(device_row(Device::cuda(ordinal)));
    }
    return rows;
}

std::string unavailable_reason() {
    about_to_use_cuda();
    return cuda_unavailable_reason();
}

py::dict build_row() {
    const BuildInfo& build = build_info();
    py::dict row;
    row["version"] = build.version;
    row["cuda_version"] = build.cuda_version;
    row["compiler"] = build.compiler;
    row["build_type"] = build.build_type;
    row["architectures"] = build.architectures;
    row["commit"] = build.commit;
    return row;
}

void release_unused(std::optional<int> device) {
    about_to_use_cuda();
    const ReleasedGil no_gil;
    if (device) return release_unused_memory(Device::cuda(*device));
    for (int ordinal = 0; ordinal < cuda_device_count(); ++ordinal) {
        release_unused_memory(Device::cuda(ordinal));
    }
}

constexpr const char* kPlanDoc =
    R"(A checked product, bound to its arrays, with its kernel and workspace.

Made by :func:`tcgemm.plan`. ``str(plan)`` lists the decisions, one a line. Threads may share a
plan, each with an `out` of its own.)";

// Python can't make a plan, by copying or unpickling neither. And its garbage collector sees the
// arrays of one: they may hold the plan in turn.
void set_up_plan_type(PyHeapTypeObject* heap_type) {
    PyTypeObject& type = heap_type->ht_type;
    type.tp_new = [](PyTypeObject*, PyObject*, PyObject*) -> PyObject* {
        PyErr_SetString(
            PyExc_TypeError,
            "a Plan is made by tcgemm.plan(), which checks its arrays; call that instead");
        return nullptr;
    };
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        if (!py::detail::is_holder_constructed(self)) return 0;
        auto& plan = py::handle(self).cast<BoundPlan&>();
        for (const py::object& array : plan.arrays()) Py_VISIT(array.ptr());
        Py_VISIT(plan.stream().ptr());
        return 0;
    };
    type.tp_clear = [](PyObject* self) {
        if (!py::detail::is_holder_constructed(self)) return 0;
        auto& plan = py::handle(self).cast<BoundPlan&>();
        for (py::object& array : plan.arrays()) array = py::none();
        plan.stream() = py::none();
        return 0;
    };
}

void bind_plan(py::module_& module) {
    py::class_<BoundPlan> plan(module, "Plan", py::custom_type_setup(set_up_plan_type), kPlanDoc);
    bind_calls(module, plan);
    // Plan[numpy.ndarray] in annotations: what execute() returns.
    plan.attr("__class_getitem__") =
        py::module_::import("builtins")
            .attr("classmethod")(py::module_::import("types").attr("GenericAlias"));
    plan.def_property_readonly(
            "kernel", [](const BoundPlan& self) { return self.plan().kernel(); },
            "Name of the kernel (str); \"none\" if the result has no elements.")
        .def_property_readonly(
            "family", [](const BoundPlan& self) { return self.plan().family(); },
            "Name of the kernel's family (str); \"none\" if the result has no elements.")
        .def_property_readonly(
            "fallback", [](const BoundPlan& self) { return self.plan().fallback(); },
            "Name of the kernel that computes in place of `kernel` if the values of the operands "
            "do not "
            "fit that, as the GPU finds at run time (str); empty if all fit.")
        .def_property_readonly(
            "workspace_bytes", [](const BoundPlan& self) { return self.plan().workspace_bytes(); },
            "Bytes of GPU memory that the plan holds for packed operands and partial sums (int).")
        .def_property_readonly(
            "precision", [](const BoundPlan& self) { return name(self.plan().precision()); },
            "Format that the operands are rounded to (str), also where it was left to the default.")
        .def_property_readonly(
            "accumulate", [](const BoundPlan& self) { return name(self.plan().accumulate()); },
            "Format of the sums (str), also where it was left to the default.")
        .def_property_readonly(
            "epilogue", [](const BoundPlan& self) { return name(self.plan().epilogue()); },
            "What is done to a sum before it is stored (str): \"linear\" (alpha and beta), or "
            "\"scaled\" "
            "(scales, FP8 results and floating-point results of int8, too).")
        .def_property_readonly(
            "split_k", [](const BoundPlan& self) { return self.plan().split_k(); },
            "Number of parts that K is split into (int); 1 if it is not split.")
        .def_property_readonly(
            "out_dtype", [](const BoundPlan& self) { return name(self.out_dtype()); },
            "Name of the result's dtype (str).")
        .def_property_readonly(
            "device", [](const BoundPlan& self) { return text(self.plan().device()); },
            "Device that computes the product (str): \"cpu\", or \"cuda:N\".")
        .def("__str__", [](const BoundPlan& self) { return self.plan().describe(); })
        .def("__repr__", [](const BoundPlan& self) {
            return "<tcgemm.Plan " + self.plan().kernel() + " on " + text(self.plan().device()) +
                   ">";
        });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
    module.doc() = "The compiled part of tcgemm; use the functions of the package tcgemm.";
    register_errors();
    bind_plan(module);
    bind_probe(module);
    module.def("plan", &make_plan);
    module.def("explain", &explain_product);
    module.def("explain_example", &explain_example);
    module.def("kernels", &kernel_rows);
    module.def("devices", &device_rows);
    module.def(
        "device_for_host_arrays",
        [](const std::optional<std::string>& value) {
            return text(value ? device_for_host_arrays(*value) : device_for_host_arrays());
        },
        py::arg("value") = py::none());
    module.def("build_info", &build_row);
    module.def("cuda_unavailable_reason", &unavailable_reason);
    module.def("clear_plan_cache", &clear_plan_cache);
    module.def("release_unused_memory", &release_unused);
    module.attr("__version__") = build_info().version;
}

}  // namespace tcgemm::python
