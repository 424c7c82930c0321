// The statement of a product: names to modes, arrays to a GemmProblem, and the checks that only the
// user's own arrays allow.
#include <string>
#include <vector>

#include "elements.hpp"
#include "errors.hpp"
#include "problem/scales.hpp"
#include "product.hpp"
#include "scales.hpp"
#include "staging.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {
namespace {

// `first`: 1 where the value 0 is `automatic`, which Python spells None.
template <class Enum, class Names>
Enum from_name(const py::object& value, const Names& names, std::size_t first, const char* what) {
    if (first == 1 && value.is_none()) return static_cast<Enum>(0);
    std::string known;
    for (std::size_t i = first; i < names.size(); ++i) {
        if (PyUnicode_Check(value.ptr()) &&
            PyUnicode_CompareWithASCIIString(value.ptr(), names[i]) == 0) {
            return static_cast<Enum>(i);
        }
        known += (known.empty() ? "" : ", ") + std::string(names[i]);
    }
    throw InvalidArgument(std::string(what) + " is " + shown(py::repr(value)) +
                          "; it must be one of " + known +
                          (first > 0 ? ", or None for the default" : ""));
}

// Default of the result: the dtype that holds the values of A and of B (float16 those of FP8 and of
// int8); int32 for int8, float32 for FP8 and for int8 with scales.
DType default_out_dtype(DType a, DType b, Precision precision, bool scaled) {
    if ((is_fp8(a) && is_fp8(b)) || (scaled && is_integer(a) && is_integer(b))) return DType::f32;
    if (is_fp8(a) || is_fp8(b)) {
        const DType other = is_fp8(a) ? b : a;
        return is_integer(other) ? DType::f16 : other;
    }
    if (is_integer(a) && is_integer(b)) {
        const bool integer = precision == Precision::automatic || precision == Precision::int8;
        return integer ? DType::i32 : precision == Precision::fp64 ? DType::f64 : DType::f32;
    }
    if (is_integer(a)) return b;
    if (is_integer(b) || a == b) return a;
    return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
}

DType out_dtype_of(const Operands& operands, const Modes& modes, Precision precision) {
    if (modes.out_dtype.is_none()) {
        const bool scaled = modes.scales.any() || operands.has(kScaleA) || operands.has(kScaleB) ||
                            operands.has(kScaleD);
        return default_out_dtype(operands.view(kA).dtype, operands.view(kB).dtype, precision,
                                 scaled);
    }
    const auto wanted = shown(modes.out_dtype);
    if (const std::optional<DType> known = dtype_named(wanted)) return *known;
    throw DTypeError("out_dtype is " + wanted +
                     "; results are float16, bfloat16, float32, float64, int32, float8_e4m3fn or "
                     "float8_e5m2: pass one of them and convert the result");
}

bool is_fp8_product(const Operands& operands, Precision precision) {
    return is_fp8(operands.view(kA).dtype) && is_fp8(operands.view(kB).dtype) &&
           (precision == Precision::automatic || is_fp8(precision));
}

bool is_int8_product(const Operands& operands, Precision precision) {
    return is_integer(operands.view(kA).dtype) && is_integer(operands.view(kB).dtype) &&
           (precision == Precision::automatic || precision == Precision::int8);
}

// Scales that are numbers go with the products that scales in memory go with; the library, which
// sees alpha and beta only, cannot tell.
void check_number_scales(const Operands& operands, const NumberScales& scales, Precision precision,
                         DType out) {
    if (!scales.any()) return;
    const DType a = operands.view(kA).dtype, b = operands.view(kB).dtype;
    const bool int8 = is_int8_product(operands, precision);
    const char* const which = scales.a ? "scale_a" : scales.b ? "scale_b" : "scale_d";
    if (!int8 && !is_fp8_product(operands, precision)) {
        const bool is_default = precision == Precision::automatic;
        const bool of_result = which == std::string_view("scale_d");
        throw InvalidArgument(std::string(which) + " is given, but a is " + name(a) + ", b is " +
                              name(b) + " and precision is " +
                              (is_default ? "None (the default)" : name(precision)) +
                              instead_of_scale(a, b, of_result ? "alpha and beta" : "alpha"));
    }
    if (int8 && is_integer(out)) {
        throw InvalidArgument(std::string(which) +
                              " is given, but the result is int32, which is exact and unscaled; "
                              "name float16, bfloat16 or float32 as out_dtype");
    }
}

// Arguments that give the product a result of this dtype; empty: none do. (int32 is the result of
// int8 operands alone, and their default.)
std::string asking_for(DType dtype, const char* operand, const Operands& operands,
                       Precision precision) {
    const bool int8 = is_int8_product(operands, precision);
    const bool fp8 = is_fp8_product(operands, precision);
    if (is_integer(dtype) || (is_fp8(dtype) && !fp8) || (dtype == DType::f64 && fp8)) return {};
    std::string arguments = std::string("out_dtype=\"") + name(dtype) + "\"";
    if (dtype != DType::f64) return arguments;
    if (int8) return arguments + " with precision=\"fp64\"";
    const bool is_out = operand == std::string_view("out");
    return is_out ? arguments : arguments + " (with precision=\"fp64\" for sums of float64)";
}

void check_dtype(const ArrayView& view, DType wanted, const char* operand, const Operands& operands,
                 Precision precision) {
    if (view.dtype == wanted) return;
    const bool is_out = operand == std::string_view("out");
    const std::string other = is_out ? std::string("an out of ") + name(wanted)
                                     : std::string(operand) + " converted to " + name(wanted);
    const std::string arguments = asking_for(view.dtype, operand, operands, precision);
    throw DTypeError(std::string(operand) + " is " + name(view.dtype) + ", but the result is " +
                     name(wanted) + "; pass " + other +
                     (arguments.empty() ? "" : ", or " + arguments));
}

}  // namespace

NamedDTypes named_dtypes(const Modes& modes) {
    NamedDTypes named;
    const auto read = [](const py::object& value, const char* what) {
        const auto wanted = shown(value);
        const std::optional<DType> known = dtype_named(wanted);
        if (known && is_fp8(*known)) return *known;
        throw DTypeError(std::string(what) + " is " + wanted +
                         "; it must be float8_e4m3fn or float8_e5m2, for operands of FP8: leave it "
                         "out for others");
    };
    if (!modes.a_dtype.is_none()) named[kA] = read(modes.a_dtype, "a_dtype");
    if (!modes.b_dtype.is_none()) named[kB] = read(modes.b_dtype, "b_dtype");
    if (!modes.out_dtype.is_none()) {
        const std::optional<DType> out = dtype_named(shown(modes.out_dtype));
        if (out && is_fp8(*out)) named[kC] = named[kOut] = out;
    }
    return named;
}

void check_out_layout(const ArrayView& out, const ProductShape& shape) {
    if (out.ndim != shape.out_ndim ||
        !std::equal(out.shape.begin(), out.shape.begin() + out.ndim, shape.out.begin())) {
        throw ShapeError("out has shape " + text(out.ndim, out.shape) + "; the result has shape " +
                         text(shape.out_ndim, shape.out) + ", and out must have exactly that");
    }
    if (may_overlap_itself(out)) {
        throw LayoutError(
            "out of shape " + text(out.ndim, out.shape) + " and strides " +
            text(out.ndim, out.stride) +
            " has elements that share an address, or strides that do not tell; pass an array "
            "whose elements lie row behind row or column behind column");
    }
}

void check_out_memory(const Operands& operands, bool reads_c) {
    const ArrayView& out = operands.view(kOut);
    const Footprint span = footprint(out);
    const auto shares_memory = [&](Slot slot) {
        const ArrayView& view = operands.view(slot);
        return overlaps(view.data, footprint(view), out.data, span);
    };
    for (const Slot slot : {kA, kB, kScaleA, kScaleB, kScaleD}) {
        if (operands.has(slot) && shares_memory(slot)) {
            throw LayoutError(
                std::string("out may share memory with ") + kSlotNames[slot] +
                ", which is read while out is written; pass another out, or a copy of " +
                kSlotNames[slot]);
        }
    }
    if (reads_c && shares_memory(kC) && !same_elements(operands.view(kC), out)) {
        throw LayoutError(
            "out may share memory with c but is not c itself; pass out=c to compute in "
            "place, or a copy of c");
    }
}

Statement state(const Operands& operands, const Modes& modes, const GemmScalars& scalars) {
    Statement statement;
    GemmProblem& problem = statement.problem;
    problem.precision = from_name<Precision>(modes.precision, kPrecisionNames, 1, "precision");
    problem.accumulate = from_name<Accumulate>(modes.accumulate, kAccumulateNames, 1, "accumulate");
    problem.overflow = from_name<Overflow>(modes.overflow, kOverflowNames, 0, "overflow");
    problem.determinism =
        from_name<Determinism>(modes.determinism, kDeterminismNames, 0, "determinism");

    const ProductShape shape =
        product_shape(operands.view(kA), operands.view(kB), modes.trans_a, modes.trans_b);
    statement.shape = shape;
    statement.out_dtype = out_dtype_of(operands, modes, problem.precision);
    check_number_scales(operands, modes.scales, problem.precision, statement.out_dtype);
    statement.has_c = operands.has(kC);
    if (scalars.beta != 0 && !statement.has_c) {
        throw InvalidArgument("beta is " + shown(py::repr(py::float_(scalars.beta))) +
                              ", but there is no c; pass c, or beta=0");
    }
    if (statement.has_c) {
        operand_out(operands.view(kC), shape, "c");
        check_dtype(operands.view(kC), statement.out_dtype, "c", operands, problem.precision);
    }
    if (operands.has(kOut)) {
        check_dtype(operands.view(kOut), statement.out_dtype, "out", operands, problem.precision);
        check_out_layout(operands.view(kOut), shape);
        check_out_memory(operands, statement.has_c && scalars.beta != 0);
    }

    std::array<const ArrayView*, kSlots> seen;
    for (int i = 0; i < kSlots; ++i) seen[i] = &operands.view(static_cast<Slot>(i));
    ArrayView new_out;
    if (!operands.has(kOut)) {
        new_out = packed(statement.out_dtype, shape.out_ndim, shape.out, operands.memory_device());
        seen[kOut] = &new_out;
    }
    std::vector<ArrayView> staged;
    if (operands.staged()) {
        for (const ArrayView* view : seen) {
            staged.push_back(staged_layout(*view, operands.compute_device()));
        }
        for (int i = 0; i < kSlots; ++i) seen[i] = &staged[i];
    }
    problem.m = shape.m;
    problem.n = shape.n;
    problem.k = shape.k;
    problem.batch_rank = shape.batch_rank;
    problem.batch_shape = shape.batch;
    problem.a = operand_a(*seen[kA], shape, modes.trans_a);
    problem.b = operand_b(*seen[kB], shape, modes.trans_b);
    problem.d = operand_out(*seen[kOut], shape, "out");
    problem.scale_a = scale_a_of(operands, *seen[kScaleA], shape, modes.trans_a);
    problem.scale_b = scale_b_of(operands, *seen[kScaleB], shape, modes.trans_b);
    problem.scale_d = has_scale_d(operands);
    problem.c = statement.has_c ? operand_out(*seen[kC], shape, "c") : problem.d;
    return statement;
}

}  // namespace tcgemm::python
