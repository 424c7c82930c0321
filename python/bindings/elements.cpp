#include "elements.hpp"

#include <array>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {

using std::int64_t;

namespace {

std::string cast_call(const TypeInfo& type, const char* operand, const char* dtype) {
    switch (type.framework) {
        case Framework::torch: return std::string(operand) + ".to(torch." + dtype + ")";
        case Framework::jax: return std::string(operand) + ".astype(jax.numpy." + dtype + ")";
        case Framework::cupy: return std::string(operand) + ".astype(cupy." + dtype + ")";
        default: return std::string(operand) + ".astype(numpy." + dtype + ")";
    }
}

std::string dlpack_dtype_name(DLDataType dtype) {
    const std::string bits = std::to_string(dtype.bits);
    switch (dtype.code) {
        case kDLInt: return "int" + bits;
        case kDLUInt: return "uint" + bits;
        case kDLFloat: return "float" + bits;
        case kDLBfloat: return "bfloat" + bits;
        case kDLComplex: return "complex" + bits;
        case kDLBool: return "bool";
        case kDLFloat8_e3m4: return "float8_e3m4";
        case kDLFloat8_e4m3: return "float8_e4m3";
        case kDLFloat8_e4m3b11fnuz: return "float8_e4m3b11fnuz";
        case kDLFloat8_e4m3fn: return "float8_e4m3fn";
        case kDLFloat8_e4m3fnuz: return "float8_e4m3fnuz";
        case kDLFloat8_e5m2: return "float8_e5m2";
        case kDLFloat8_e5m2fnuz: return "float8_e5m2fnuz";
        case kDLFloat8_e8m0fnu: return "float8_e8m0fnu";
        default:
            return "dtype of DLPack code " + std::to_string(dtype.code) + ", " + bits + " bits";
    }
}

bool is_result(const char* operand) {
    return operand == std::string_view("out") || operand == std::string_view("c");
}

bool is_scale(const char* operand) { return std::string_view(operand).substr(0, 6) == "scale_"; }

std::string result_of_its_dtype(const char* operand) {  // a cast of out is lost
    return operand == std::string_view("c") ? "c converted to the result's dtype"
                                            : "an out of the result's dtype";
}

// Which argument names the dtype of an operand's bytes.
std::string dtype_argument(const char* operand) {
    return is_result(operand) ? "out_dtype" : std::string(operand) + "_dtype";
}

bool ends_with(const std::string& dtype, std::string_view end) {
    return dtype.size() >= end.size() &&
           dtype.compare(dtype.size() - end.size(), end.size(), end) == 0;
}
bool fits_int8(const std::string& dtype) {
    return dtype == "bool" || ends_with(dtype, "int4") || ends_with(dtype, "int2");
}
bool fits_float32(const std::string& dtype) {
    return ends_with(dtype, "int8") || ends_with(dtype, "int16") || dtype.rfind("float8", 0) == 0 ||
           dtype.rfind("float6", 0) == 0 || dtype.rfind("float4", 0) == 0;
}

[[noreturn]] void refuse_dtype(const std::string& dtype, const TypeInfo& type, const char* operand,
                               bool of_numbers = true) {
    const std::string is = std::string(operand) + " is " + dtype;
    if (is_result(operand)) {
        throw DTypeError(is +
                         "; results are float16, bfloat16, float32, float64, int32 or FP8: pass " +
                         result_of_its_dtype(operand));
    }
    if (is_scale(operand)) {
        throw DTypeError(is + "; scales are float32: pass " +
                         (of_numbers ? cast_call(type, operand, "float32") : "numbers"));
    }
    const std::string known =
        "; operands are float16, bfloat16, float32, float64, int8, float8_e4m3fn or float8_e5m2: ";
    if (!of_numbers) throw DTypeError(is + known + "pass numbers");
    if (dtype.rfind("complex", 0) == 0) {
        const std::string real = type.framework == Framework::torch ? ".resolve_conj()" : "";
        throw DTypeError(is + known + "multiply the real and imaginary parts apart (" + operand +
                         real + ".real, " + operand + real + ".imag)");
    }
    std::string pass = "pass " + cast_call(type, operand, "float32");
    if (fits_int8(dtype)) {
        pass += ", or " + cast_call(type, operand, "int8") + " for an int32 result";
    } else if (!fits_float32(dtype)) {
        pass += ", or " + cast_call(type, operand, "float64") + " for values of more than 24 bits";
    }
    throw DTypeError(is + known + pass);
}

void set_bytes(ArrayView& view) {
    view.dtype = DType::i8;  // has the size
    view.is_bytes = true;
}

}  // namespace

std::optional<DType> dtype_named(const std::string& name) {
    for (const DTypeInfo& known : kDTypes) {
        if (name == known.name) return known.id;
    }
    return std::nullopt;
}

void settle_dtype(ArrayView& view, std::optional<DType> named, const TypeInfo& type,
                  const char* operand) {
    if (!view.is_bytes) {
        const bool fits = is_scale(operand) ? view.dtype == DType::f32
                                            : view.dtype != DType::i32 || is_result(operand);
        if (!fits) refuse_dtype(name(view.dtype), type, operand);
        if (!named || *named == view.dtype) return;
        throw DTypeError(std::string(operand) + " is " + name(view.dtype) + ", but " +
                         dtype_argument(operand) + " is " + name(*named) +
                         "; leave it out, or pass the bytes of such an array as uint8");
    }
    if (!named) {
        if (is_scale(operand)) refuse_dtype("uint8", type, operand);
        throw DTypeError(
            std::string(operand) + " is uint8; pass " + (is_result(operand) ? "" : "gemm() ") +
            dtype_argument(operand) +
            "=\"float8_e4m3fn\" or \"float8_e5m2\" where it holds the bytes of one, or " +
            (is_result(operand) ? result_of_its_dtype(operand)
                                : cast_call(type, operand, "float32")));
    }
    view.dtype = *named;
    view.is_bytes = false;
}

void set_dtype(ArrayView& view, DLDataType dtype, uint64_t flags, const TypeInfo& type,
               const char* operand) {
    if (dtype.lanes != 1) {
        throw DTypeError(std::string(operand) + " has a vector dtype (" + dlpack_dtype_name(dtype) +
                         " x " + std::to_string(dtype.lanes) +
                         " lanes); view it as scalars with one more dimension");
    }
    if (dtype.bits < 8) {
        const std::string advice = is_result(operand)  ? "pass " + result_of_its_dtype(operand)
                                   : is_scale(operand) ? "scales are float32: cast it to float32"
                                                       : "cast it to int8 or float16";
        throw DTypeError(
            std::string(operand) + " has elements of " + std::to_string(dtype.bits) + " bits (" +
            (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED ? "padded" : "packed") + "); " +
            advice);
    }
    for (const DTypeInfo& known : kDTypes) {
        if (known.dlpack_code != dtype.code || known.bits != dtype.bits) continue;
        view.dtype = known.id;
        return;
    }
    if (dtype.code == kDLUInt && dtype.bits == 8) return set_bytes(view);
    refuse_dtype(dlpack_dtype_name(dtype), type, operand);
}

void check_rank(int64_t ndim, const char* operand) {
    if (ndim <= kMaxDims) return;
    throw ShapeError(std::string(operand) + " has " + std::to_string(ndim) +
                     " dimensions; at most " + std::to_string(kMaxDims) +
                     " are taken: merge batch dimensions with reshape");
}

// Once the address is known with its offset: an element must not straddle its own size. That of an
// array without elements says nothing.
void settle_address(ArrayView& view, const char* operand) {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) == 0;
    if (is_aligned && view.data != nullptr) return;
    if (view.element_count() == 0) {
        view.data = nullptr;
        return;
    }
    if (view.data == nullptr) {
        throw LayoutError(std::string(operand) + " has " + std::to_string(view.element_count()) +
                          " elements, but no memory (its address is NULL)" +
                          instead(operand, "an array with memory, not a fake one", "with memory"));
    }
    throw LayoutError(std::string(operand) + " is " + name(view.dtype) +
                      " at an address that is no multiple of " +
                      std::to_string(size_of(view.dtype)) + " bytes" +
                      instead(operand, "a copy of it", "at a multiple"));
}

void set_stride(ArrayView& view, int dim, int64_t bytes, const TypeInfo& type,
                const char* operand) {
    const int64_t size = size_of(view.dtype);
    view.stride[dim] = bytes / size;
    if (bytes % size == 0 || view.shape[dim] == 1) return;
    const std::string copy = type.framework == Framework::numpy  ? "numpy.ascontiguousarray"
                             : type.framework == Framework::cupy ? "cupy.ascontiguousarray"
                                                                 : "a contiguous copy of ";
    throw LayoutError(std::string(operand) + " has a stride of " + std::to_string(bytes) +
                      " bytes in dimension " + std::to_string(dim) +
                      ", no multiple of its element's " + std::to_string(size) +
                      instead(operand, copy + "(" + operand + ")", "whose strides are multiples"));
}

void set_dtype(ArrayView& view, const py::dtype& dtype, const TypeInfo& type, const char* operand) {
    static const std::string native = "=|<";  // little-endian hosts only
    if (native.find(dtype.byteorder()) == std::string::npos) {
        throw DTypeError(
            std::string(operand) + " has swapped bytes (" + shown(dtype) + ")" +
            instead(operand,
                    std::string(operand) + ".astype(" + operand + ".dtype.newbyteorder('='))",
                    "in the machine's byte order"));
    }
    if (dtype.has_fields()) {
        const py::object first = py::list(dtype.attr("names"))[0];
        throw DTypeError(std::string(operand) + " is structured (" + shown(dtype) + ")" +
                         instead(operand,
                                 std::string("one of its fields, such as ") + operand + "[" +
                                     shown(py::repr(first)) + "]",
                                 "of the result's dtype"));
    }
    const auto bits = static_cast<int>(8 * dtype.itemsize());
    const char kind = dtype.kind();
    for (const DTypeInfo& known : kDTypes) {
        const char known_kind = known.dlpack_code == kDLFloat ? 'f'
                                : known.dlpack_code == kDLInt ? 'i'
                                                              : 0;
        if (known_kind != kind || known.bits != bits) continue;
        view.dtype = known.id;
        return;
    }
    if (kind == 'u' && bits == 8) return set_bytes(view);
    // ml_dtypes registers its own. The objects that had their names last are kept, to know them
    // again.
    static std::array<PyObject*, kDTypes.size()> registered{};
    for (std::size_t i = 0; i < registered.size(); ++i) {
        if (dtype.ptr() != registered[i]) continue;
        view.dtype = kDTypes[i].id;
        return;
    }
    const std::optional<DType> known = dtype_named(shown(dtype.attr("name")));
    if (!known) {  // by str(): in the names of strings are their bits, as in "str32"
        // Numbers of ml_dtypes are of kind V, as what is void.
        const bool is_void = dtype.attr("type").is(py::module_::import("numpy").attr("void"));
        const bool of_numbers = !is_void && std::string("SUMm").find(kind) == std::string::npos;
        refuse_dtype(shown(dtype), type, operand, of_numbers);
    }
    Py_XSETREF(registered[static_cast<std::size_t>(*known)], py::object(dtype).release().ptr());
    view.dtype = *known;
}

}  // namespace tcgemm::python
