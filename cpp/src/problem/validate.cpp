// The only validation: what it lets through, every later step trusts.
#include <string>
#include <tuple>
#include <utility>

#include "problem/canonical.hpp"
#include "problem/scales.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm {
namespace {

using std::int64_t;

std::string str(int64_t value) { return std::to_string(value); }

std::string shape(int64_t rows, int64_t cols) { return str(rows) + " x " + str(cols); }

const char* text(const char* name) { return name; }
const char* text(const DTypeInfo& dtype) { return dtype.name; }

// Enumerations may come from C or from a cast: out of range they would index past the tables.
template <class Enum, class Names>
void check_enum(Enum value, const Names& names, const char* what) {
    if (static_cast<std::size_t>(value) < names.size()) return;
    std::string known;
    for (const auto& one : names) known += (known.empty() ? "" : ", ") + std::string(text(one));
    throw InvalidArgument(std::string(what) + " has the value " + str(static_cast<int>(value)) +
                          "; it must be 0 to " + str(static_cast<int64_t>(names.size()) - 1) +
                          ", for " + known);
}

// Of one matrix and of all batches. No memory holds as many, but strides of 0 name them; rows that
// are packed, with up to 128 elements for one and 8 bytes each, are counted in 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 52;

int64_t multiply(int64_t x, int64_t y, const std::string& what) {
    int64_t product = 0;
    if (__builtin_mul_overflow(x, y, &product) || product > kMaxElements) {
        throw ShapeError(what + " is " + str(x) + " x " + str(y) + "; it must be at most 2^52");
    }
    return product;
}

void check_sizes(const GemmProblem& p) {
    const std::pair<const char*, int64_t> sizes[] = {{"m", p.m}, {"n", p.n}, {"k", p.k}};
    for (const auto& [name, value] : sizes) {
        if (value < 0)
            throw ShapeError(std::string(name) + " is " + str(value) + "; it must be >= 0");
    }
    if (p.batch_rank < 0 || p.batch_rank > kMaxBatchDims) {
        throw ShapeError("batch_rank is " + str(p.batch_rank) + "; it must be 0 to " +
                         str(kMaxBatchDims) + "; merge batch dimensions (a contiguous copy does)");
    }
    for (int dim = 0; dim < p.batch_rank; ++dim) {
        if (p.batch_shape[dim] < 0) {
            throw ShapeError("batch_shape[" + str(dim) + "] is " + str(p.batch_shape[dim]) +
                             "; it must be >= 0");
        }
    }
}

void check_dtype(DType dtype, const char* operand) {
    check_enum(dtype, kDTypes, (std::string("dtype of operand ") + operand).c_str());
}

// The dtype that holds the values of both without loss.
DType promote(DType a, DType b) {
    if (a == b) return a;
    if (a == DType::i8 || b == DType::i8) {
        const char* const precision = is_fp8(a) || is_fp8(b) ? "precision fp16" : "a precision";
        throw DTypeError(std::string("operands A (") + name(a) + ") and B (" + name(b) +
                         ") mix an integer with a float; cast one of them, or name " + precision);
    }
    if (is_fp8(a) && is_fp8(b)) return DType::f16;
    if (is_fp8(a) || is_fp8(b)) {
        const DType other = is_fp8(a) ? b : a;
        if (other == DType::f16) return other;
        throw DTypeError(
            std::string("operands A (") + name(a) + ") and B (" + name(b) + ") mix FP8 with " +
            name(other) +
            "; FP8 goes with FP8 and float16: cast one of them, or name precision fp16");
    }
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    return DType::f32;  // of two different ones among float16, bfloat16 and float32
}

// Wider operands are not rounded to FP8: without a scale of their own, little would be left.
void check_fp8_operands(const GemmProblem& p) {
    for (const auto& [operand, dtype] : {std::pair{"A", p.a.dtype}, std::pair{"B", p.b.dtype}}) {
        const bool fits = p.precision == Precision::fp8_e4m3   ? dtype == DType::e4m3
                          : p.precision == Precision::fp8_e5m2 ? dtype == DType::e5m2
                                                               : is_fp8(dtype);
        if (fits) continue;
        throw DTypeError(std::string("precision ") + name(p.precision) + " takes operands of " +
                         (p.precision == Precision::fp8_e4m3   ? name(DType::e4m3)
                          : p.precision == Precision::fp8_e5m2 ? name(DType::e5m2)
                                                               : "FP8") +
                         ", but operand " + operand + " is " + name(dtype) +
                         (is_fp8(dtype) ? ": name precision fp8, which takes each format"
                                        : ": scale it to the range of FP8 and cast it first"));
    }
}

DType resolve_compute_dtype(GemmProblem& p) {
    for (const auto& [operand, dtype] : {std::pair{"A", p.a.dtype}, std::pair{"B", p.b.dtype}}) {
        if (dtype == DType::i32) {
            throw DTypeError(std::string("operand ") + operand +
                             " is int32; A and B are float16, " +
                             "bfloat16, float32, float64, int8 or FP8: cast it");
        }
        const bool keeps_fp8 = is_fp8(p.precision) || p.precision == Precision::automatic ||
                               p.precision == Precision::fp16;
        if (is_fp8(dtype) && !keeps_fp8) {
            const bool both = is_fp8(p.a.dtype) && is_fp8(p.b.dtype);
            throw DTypeError(std::string("operand ") + operand + " is " + name(dtype) +
                             ", which precision " + name(p.precision) + " does not take; name " +
                             (both ? "an FP8 precision or " : "") + "fp16, or cast it");
        }
    }
    switch (p.precision) {
        case Precision::automatic: break;
        case Precision::fp16: return DType::f16;
        case Precision::bf16: return DType::bf16;
        case Precision::tf32:
        case Precision::fp32:
        case Precision::fp32_simt: return DType::f32;
        case Precision::fp64: return DType::f64;
        case Precision::int8:
            if (p.a.dtype != DType::i8 || p.b.dtype != DType::i8) {
                throw DTypeError(std::string("precision int8 takes int8 operands; A is ") +
                                 name(p.a.dtype) + " and B is " + name(p.b.dtype) +
                                 ": quantise them to int8 first");
            }
            return DType::i8;
        case Precision::fp8_e4m3:
        case Precision::fp8_e5m2:
        case Precision::fp8: check_fp8_operands(p); break;
    }
    if (is_fp8(p.a.dtype) && is_fp8(p.b.dtype)) {
        p.precision = p.a.dtype != p.b.dtype     ? Precision::fp8
                      : p.a.dtype == DType::e4m3 ? Precision::fp8_e4m3
                                                 : Precision::fp8_e5m2;
        return DType::f16;
    }
    const DType compute = promote(p.a.dtype, p.b.dtype);
    switch (compute) {
        case DType::f16: p.precision = Precision::fp16; break;
        case DType::bf16: p.precision = Precision::bf16; break;
        case DType::f32: p.precision = Precision::fp32; break;
        case DType::f64: p.precision = Precision::fp64; break;
        default: p.precision = Precision::int8; break;
    }
    return compute;
}

Accumulate resolve_accumulate(Accumulate asked, Precision precision) {
    Accumulate natural = Accumulate::fp32;
    if (precision == Precision::fp64) natural = Accumulate::fp64;
    if (precision == Precision::int8) natural = Accumulate::int32;
    if (is_fp8(precision)) natural = Accumulate::promoted;
    if (asked == Accumulate::automatic || asked == natural) return natural;
    if (asked == Accumulate::fp16 && precision == Precision::fp16) return asked;
    if (asked == Accumulate::promoted && natural == Accumulate::fp32) return asked;
    if (asked == Accumulate::fast && is_fp8(precision)) return asked;
    throw InvalidArgument(std::string("accumulate ") + name(asked) +
                          " does not go with precision " + name(precision) + "; it takes " +
                          name(natural) + (natural == Accumulate::fp32 ? " or promoted" : "") +
                          (precision == Precision::fp16 ? " or fp16" : "") +
                          (is_fp8(precision) ? " or fast" : ""));
}

void check_output_dtype(const GemmProblem& p, DType compute) {
    const bool int8 = compute == DType::i8, fp8 = is_fp8(p.precision);
    const DType d = p.d.dtype;
    const bool fits = int8  ? d == DType::i32 || (!is_integer(d) && !is_fp8(d) && d != DType::f64)
                      : fp8 ? !is_integer(d) && d != DType::f64
                            : !is_integer(d) && !is_fp8(d);
    if (!fits) {
        throw DTypeError(
            std::string("D is ") + name(d) + "; a product of precision " + name(p.precision) +
            " goes to " +
            (int8  ? "int32, float16, bfloat16 or float32"
             : fp8 ? "float16, bfloat16, float32, float8_e4m3fn or float8_e5m2"
                   : "float16, bfloat16, float32 or float64") +
            ": name one of them as D's dtype (out_dtype in Python) and convert the result");
    }
    if (p.c.dtype != p.d.dtype) {
        throw DTypeError(
            std::string("C is ") + name(p.c.dtype) + " but D is " + name(p.d.dtype) +
            "; they must be equal: cast C, or ask for that D (without a C, describe it as D)");
    }
}

void check_alignment(const Operand& operand, const char* operand_name) {
    const int a = operand.alignment;
    if (a < 1 || a > 16 || (a & (a - 1)) != 0) {
        throw InvalidArgument(std::string("operand ") + operand_name + ": alignment is " + str(a) +
                              "; it must be 1, 2, 4, 8 or 16 bytes");
    }
    if (a % size_of(operand.dtype) != 0) {
        throw LayoutError(std::string("operand ") + operand_name +
                          ": its address is only aligned to " + str(a) +
                          " bytes, but an element of " + name(operand.dtype) + " has " +
                          str(size_of(operand.dtype)) + "; copy it to aligned memory");
    }
}

// Columns first, as they are contiguous most often.
Axes axes(const GemmProblem& problem, const Operand& operand, int64_t rows, int64_t cols) {
    Axes axes;
    axes.add(cols, operand.col_stride);
    axes.add(rows, operand.row_stride);
    for (int dim = 0; dim < problem.batch_rank; ++dim) {
        axes.add(problem.batch_shape[dim], operand.batch_stride[dim]);
    }
    return axes;
}

std::string layout(const GemmProblem& problem, const Operand& operand, int64_t rows, int64_t cols) {
    std::string text = "(" + shape(rows, cols) + ", row stride " + str(operand.row_stride) +
                       ", column stride " + str(operand.col_stride);
    for (int dim = 0; dim < problem.batch_rank; ++dim) {
        text += (dim == 0 ? ", batch strides " : " ") + str(operand.batch_stride[dim]);
    }
    return text + ")";
}

void check_no_self_overlap(const GemmProblem& p) {
    if (const auto found = find_self_overlap(axes(p, p.d, p.m, p.n))) {
        throw LayoutError("D " + layout(p, p.d, p.m, p.n) +
                          " has elements that share an address; a stride of " + str(found->stride) +
                          " must be more than " + str(found->reach) +
                          " there: give D memory of its own");
    }
}

}  // namespace

Footprint footprint(const GemmProblem& problem, const Operand& operand, int64_t rows, int64_t cols,
                    const char* operand_name) {
    const auto found = footprint(axes(problem, operand, rows, cols), size_of(operand.dtype));
    if (found) return *found;
    throw ShapeError(std::string("operand ") + operand_name + " " +
                     layout(problem, operand, rows, cols) +
                     " spans more than 2^62 bytes, and no memory does; correct its strides");
}

ValidProblem ValidProblem::check(const GemmProblem& problem) {
    check_sizes(problem);
    check_enum(problem.precision, kPrecisionNames, "precision");
    check_enum(problem.accumulate, kAccumulateNames, "accumulate");
    check_enum(problem.determinism, kDeterminismNames, "determinism");
    check_enum(problem.overflow, kOverflowNames, "overflow");
    check_enum(problem.scale_a.kind, kScaleKindNames, "kind of scale_a");
    check_enum(problem.scale_b.kind, kScaleKindNames, "kind of scale_b");
    check_dtype(problem.a.dtype, "A");
    check_dtype(problem.b.dtype, "B");
    check_dtype(problem.c.dtype, "C");
    check_dtype(problem.d.dtype, "D");

    ValidProblem valid;
    valid.given_ = problem;
    valid.problem_ = problem;
    GemmProblem& p = valid.problem_;
    valid.compute_dtype_ = resolve_compute_dtype(p);
    p.accumulate = resolve_accumulate(p.accumulate, p.precision);
    check_output_dtype(p, valid.compute_dtype_);
    valid.epilogue_ = resolve_scales(p);
    check_alignment(p.a, "A");
    check_alignment(p.b, "B");
    check_alignment(p.c, "C");
    check_alignment(p.d, "D");

    bool empty_batch = false;
    for (int dim = 0; dim < p.batch_rank; ++dim) empty_batch |= p.batch_shape[dim] == 0;
    valid.batch_count_ = empty_batch ? 0 : 1;
    if (valid.empty()) return valid;
    for (int dim = 0; dim < p.batch_rank; ++dim) {
        valid.batch_count_ = multiply(valid.batch_count_, p.batch_shape[dim], "number of batches");
    }
    for (const auto& [rows, cols, what] : {std::tuple{p.m, p.k, "m x k, the elements of A,"},
                                           {p.k, p.n, "k x n, the elements of B,"},
                                           {p.m, p.n, "m x n, the elements of D,"}}) {
        multiply(multiply(rows, cols, what), valid.batch_count_, "elements in all batches");
    }
    footprint(p, p.a, p.m, p.k, "A");
    footprint(p, p.b, p.k, p.n, "B");
    footprint(p, p.c, p.m, p.n, "C");
    footprint(p, p.d, p.m, p.n, "D");
    for (const auto& [what, matrix] : {std::pair{"scale_a", scale_matrix(p.scale_a, p.m, p.k)},
                                       std::pair{"scale_b", scale_matrix(p.scale_b, p.n, p.k)}}) {
        footprint(p, matrix.operand, matrix.rows, matrix.cols, what);
    }
    check_no_self_overlap(p);

    valid.transposed_ = canonical::bring_into_form(p);
    valid.batch_count_ = canonical::count_batches(p);
    return valid;
}

ValidProblem ValidProblem::as_transposed() const {
    ValidProblem other = *this;
    canonical::transpose(other.problem_);
    if (ungathered_) canonical::transpose(*other.ungathered_);
    other.transposed_ = !transposed_;
    return other;
}

std::optional<ValidProblem> ValidProblem::gathered() const {
    if (empty()) return std::nullopt;
    ValidProblem other = *this;
    GemmProblem lies = problem_;
    const std::optional<GemmProblem> gathered = canonical::gather_rows(lies);
    if (!gathered) return std::nullopt;
    other.problem_ = *gathered;
    other.ungathered_ = lies;
    other.batch_count_ = canonical::count_batches(other.problem_);
    return other;
}

}  // namespace tcgemm
