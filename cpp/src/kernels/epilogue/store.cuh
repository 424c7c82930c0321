// How every epilogue reaches memory: D (and C) of any dtype and strides, in vectors where it can
// be.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/dtype_of.cuh"
#include "kernels/device/vector.cuh"
#include "kernels/gemm_args.hpp"

namespace tcgemm::epilogue {

using device::Vector;

// Rounds to nearest even once, Inf on overflow. From integers: wraps around.
template <class T, class Value>
__device__ __forceinline__ T round_to(Value value) {
    if constexpr (std::is_same_v<T, __half>) {
        if constexpr (std::is_same_v<Value, double>)
            return __double2half(value);
        else
            return __float2half_rn(value);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        if constexpr (std::is_same_v<Value, double>)
            return __double2bfloat16(value);
        else
            return __float2bfloat16_rn(value);
    } else {
        return static_cast<T>(value);
    }
}

// Neighbours, also to FP8, of which `epilogue` knows what lies beyond its range. (A result that is
// returned would be taken to bytes and put together again.)
template <class T, class Epilogue, class Value, int N>
__device__ __forceinline__ void round_by(const Epilogue& epilogue, const Value (&value)[N],
                                         Vector<T, N>& rounded) {
    if constexpr (device::kIsFp8<T> && N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            reinterpret_cast<std::uint16_t&>(rounded.element[i]) =
                T::round_pair(value[i], value[i + 1], epilogue.saturates);
        }
    } else if constexpr (device::kIsFp8<T>) {
        static_assert(N == 1);
        rounded.element[0] = T::round(value[0], epilogue.saturates);
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) rounded.element[i] = round_to<T>(value[i]);
    }
}

template <class Value, class T>
__device__ __forceinline__ Value widen(T value) {
    if constexpr (std::is_same_v<T, __half>)
        return __half2float(value);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __bfloat162float(value);
    else if constexpr (device::kIsFp8<T>)
        return __half2float(value.half());
    else if constexpr (std::is_same_v<T, std::int32_t>)
        return static_cast<Value>(std::int64_t{value});
    else
        return static_cast<Value>(value);
}

// D and C of one batch. Epilogue: Linear<float>, Scaled, ...
template <class Epilogue>
class Output {
   public:
    using Value = typename Epilogue::Value;

    // `batch`: what batch_offset() takes. `d_offset`: elements, on top of the batch's.
    template <class Index>
    __device__ Output(const Epilogue& epilogue, const GemmArgs& args, const Index& batch,
                      std::int64_t d_offset = 0)
        : epilogue_(epilogue.in_batch(args.batch, batch)),
          d_(static_cast<char*>(args.d.data) +
             (batch_offset(args.batch, args.d.batch_stride, batch) + d_offset) *
                 bytes(args.d.dtype)),
          d_row_(args.d.row_stride),
          d_col_(args.d.col_stride),
          dtype_(args.d.dtype) {
        if (epilogue_.reads_c()) {
            c_ = static_cast<const char*>(args.c.data) +
                 batch_offset(args.batch, args.c.batch_stride, batch) * bytes(dtype_);
            c_row_ = args.c.row_stride;
            c_col_ = args.c.col_stride;
        }
    }

    // Whether store<N> writes a vector at every column that N divides. Otherwise it writes single
    // elements, and a warp does better with store<1> on neighbouring columns.
    template <int N>
    __device__ bool vectorizable() const {
        return d_col_ == 1 && aligned<N>(d_) && (d_row_ * bytes(dtype_)) % vector_bytes<N>() == 0;
    }

    __device__ bool reads_c() const { return epilogue_.reads_c(); }
    // From here on D is what the sums are: C has been added to them, where that is to be.
    __device__ void leave_c() { epilogue_ = epilogue_.behind_c(); }
    // D's values, not rounded, in the place of R sums of a column: `step` apart, of the rows
    // row .. row + R, of which `rows` exist. All of C is read before the first is written.
    template <int R, class Sum>
    __device__ __forceinline__ void add_c(std::int64_t row, int rows, std::int64_t col, Sum* sums,
                                          int step) const {
        const std::int64_t place = row * c_row_ + col * c_col_;
        const auto add = [&](int r, Value addend) {
            Sum& sum = sums[r * step];
            sum = static_cast<Sum>(epilogue_(widen<Value>(sum), addend));
        };
        Value addends[R];
        const auto read_as = [&](const auto* c) {
            std::decay_t<decltype(*c)> elements[R] = {};
            c += place;
#pragma unroll
            for (int r = 0; r < R; ++r, c += c_row_) {
                if (r < rows) elements[r] = *c;
            }
#pragma unroll
            for (int r = 0; r < R; ++r) addends[r] = widen<Value>(elements[r]);
        };
        // float64 and narrower sums, or the other way round, are rare, and take too many registers.
        const auto add_each = [&](const auto* c) {
            c += place;
#pragma unroll 1
            for (int r = 0; r < min(rows, R); ++r, c += c_row_) add(r, widen<Value>(*c));
            rows = 0;
        };
        if constexpr (std::is_integral_v<Value>) {
            read_as(reinterpret_cast<const std::int32_t*>(c_));
        } else if constexpr (std::is_same_v<Value, double>) {
            switch (dtype_) {
                case DType::f16: add_each(reinterpret_cast<const __half*>(c_)); break;
                case DType::bf16: add_each(reinterpret_cast<const __nv_bfloat16*>(c_)); break;
                case DType::f32: add_each(reinterpret_cast<const float*>(c_)); break;
                default: read_as(reinterpret_cast<const double*>(c_)); break;
            }
        } else {
            switch (dtype_) {
                case DType::f16: read_as(reinterpret_cast<const __half*>(c_)); break;
                case DType::bf16: read_as(reinterpret_cast<const __nv_bfloat16*>(c_)); break;
                case DType::f32: read_as(reinterpret_cast<const float*>(c_)); break;
                default: add_each(reinterpret_cast<const double*>(c_)); break;
            }
        }
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (r < rows) add(r, addends[r]);
        }
    }

    // A thread's strip of D from accumulators: vectors of N neighbouring columns from `col` on, of
    // which `count` exist, in the rows row, row + row_step, .. (R of them, below row + rows). C is
    // read for all of them before the first is written: the two may be the same memory, so the
    // compiler keeps their order. Integer accumulators come sign-extended (widen<Value>).
    // kReadsC: false behind leave_c(). Spelled out: behind device::with_dtype() main loops on CUDA
    // cores have registers of the same bank more often.
    template <bool kReadsC = true, int R, int N>
    __device__ __forceinline__ void store(std::int64_t row, int row_step, int rows,
                                          std::int64_t col, int count,
                                          const Value (&acc)[R][N]) const {
        if constexpr (std::is_integral_v<Value>) {
            store_as<std::int32_t, kReadsC>(row, row_step, rows, col, count, acc);
        } else if constexpr (Epilogue::kScaled) {
            switch (dtype_) {
                case DType::f16:
                    return store_as<__half, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::bf16:
                    return store_as<__nv_bfloat16, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::f32:
                    return store_as<float, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::e4m3:
                    return store_as<device::E4M3, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::e5m2:
                    return store_as<device::E5M2, kReadsC>(row, row_step, rows, col, count, acc);
                default: __trap();  // validation lets no other dtype through
            }
        } else {
            switch (dtype_) {
                case DType::f16:
                    return store_as<__half, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::bf16:
                    return store_as<__nv_bfloat16, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::f32:
                    return store_as<float, kReadsC>(row, row_step, rows, col, count, acc);
                case DType::f64:
                    return store_as<double, kReadsC>(row, row_step, rows, col, count, acc);
                default: __trap();  // validation lets no other dtype through
            }
        }
    }

    // The same for one row: D(row, col .. col + count).
    template <int N>
    __device__ __forceinline__ void store(std::int64_t row, std::int64_t col, const Value (&acc)[N],
                                          int count) const {
        Value strip[1][N];
#pragma unroll
        for (int i = 0; i < N; ++i) strip[0][i] = acc[i];
        store(row, 1, 1, col, count, strip);
    }

    // The same where D is known to have elements of T.
    template <class T, bool kReadsC = true, int R, int N>
    __device__ __forceinline__ void store_as(std::int64_t row, int row_step, int rows,
                                             std::int64_t col, int count,
                                             const Value (&acc)[R][N]) const {
        T* d = reinterpret_cast<T*>(d_) + row * d_row_ + col * d_col_;
        float of_row[R], of_col[N];
        if constexpr (Epilogue::kScaled) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                of_row[r] = epilogue_.row_factor(row + place(r * row_step, rows));
            }
#pragma unroll
            for (int i = 0; i < N; ++i) of_col[i] = epilogue_.col_factor(col + place(i, count));
        }
        const auto factor = [&](int r, int i) {
            if constexpr (Epilogue::kScaled) {
                return of_row[r] * of_col[i];
            } else {
                return 1.0f;
            }
        };
        Vector<T, N> value[R];
        if (kReadsC && epilogue_.reads_c()) {
            const T* c = reinterpret_cast<const T*>(c_) + row * c_row_ + col * c_col_;
            const std::int64_t step = row_step * c_row_;
            const bool whole = count == N && c_col_ == 1 && aligned<N>(c) &&
                               (R == 1 || step * sizeof(T) % sizeof(value[0]) == 0);
#pragma unroll
            for (int r = 0; r < R; ++r, c += step) {
                value[r] = {};
                if (r * row_step < rows) {
                    if (whole) {
                        value[r] = *reinterpret_cast<const Vector<T, N>*>(c);
                    } else {
#pragma unroll
                        for (int i = 0; i < N; ++i) {
                            if (i < count) value[r].element[i] = c[i * c_col_];
                        }
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    const Value addend = widen<Value>(value[r].element[i]);
                    value[r].element[i] = result<T>(factor(r, i), acc[r][i], addend);
                }
            }
        } else {
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    value[r].element[i] = result<T>(factor(r, i), acc[r][i]);
                }
            }
        }
        const std::int64_t step = row_step * d_row_;
        const bool whole = count == N && d_col_ == 1 && aligned<N>(d) &&
                           (R == 1 || step * sizeof(T) % sizeof(value[0]) == 0);
#pragma unroll
        for (int r = 0; r < R; ++r, d += step) {
            if (r * row_step < rows) {
                if (whole) {
                    *reinterpret_cast<Vector<T, N>*>(d) = value[r];
                } else {
#pragma unroll
                    for (int i = 0; i < N; ++i) {
                        if (i < count) d[i * d_col_] = value[r].element[i];
                    }
                }
            }
        }
    }

   private:
    // Of elements that do not exist none is stored, but their scales must not be read: the strip's
    // first row or column then stands for theirs.
    static __device__ __forceinline__ int place(int i, int end) { return i < end ? i : 0; }
    // D's value of an element, rounded; `factor`: of its row and column, `c`: nothing, or C's.
    template <class T, class... C>
    __device__ __forceinline__ T result(float factor, Value acc, C... c) const {
        if constexpr (Epilogue::kScaled) {
            const Value value[] = {epilogue_.scaled(acc, factor, c...)};
            Vector<T, 1> rounded;
            round_by(epilogue_, value, rounded);
            return rounded.element[0];
        } else {
            return round_to<T>(epilogue_(acc, c...));
        }
    }
    static __device__ int bytes(DType dtype) {
        if (Epilogue::kScaled && is_fp8(dtype)) return 1;
        return dtype == DType::f64 ? 8 : dtype == DType::f32 || dtype == DType::i32 ? 4 : 2;
    }
    template <int N>
    __device__ int vector_bytes() const {
        return N * bytes(dtype_) < 16 ? N * bytes(dtype_) : 16;
    }
    template <int N>
    __device__ bool aligned(const void* address) const {
        return reinterpret_cast<std::uintptr_t>(address) % vector_bytes<N>() == 0;
    }

    typename Epilogue::InBatch epilogue_;
    char* d_;
    const char* c_ = nullptr;
    std::int64_t d_row_, d_col_, c_row_ = 0, c_col_ = 0;
    DType dtype_;
};

}  // namespace tcgemm::epilogue
