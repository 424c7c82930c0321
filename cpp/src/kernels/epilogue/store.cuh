// How every epilogue reaches memory: D (and C) of any dtype and strides, in vectors where it can be.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/gemm_args.hpp"

namespace tcgemm::epilogue {

// Rounds to nearest even once, Inf on overflow. From integers: wraps around.
template <class T, class Value>
__device__ __forceinline__ T round_to(Value value) {
    if constexpr (std::is_same_v<T, __half>) {
        if constexpr (std::is_same_v<Value, double>) return __double2half(value);
        else return __float2half_rn(value);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        if constexpr (std::is_same_v<Value, double>) return __double2bfloat16(value);
        else return __float2bfloat16_rn(value);
    } else {
        return static_cast<T>(value);
    }
}

template <class Value, class T>
__device__ __forceinline__ Value widen(T value) {
    if constexpr (std::is_same_v<T, __half>) return __half2float(value);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>) return __bfloat162float(value);
    else if constexpr (std::is_same_v<T, std::int32_t>) return static_cast<Value>(std::int64_t{value});
    else return static_cast<Value>(value);
}

// D and C of one batch. `Policy` is one of the epilogues: Linear<float>, Linear<double>, ...
template <class Policy>
class Output {
   public:
    using Value = typename Policy::Value;

    // `d_offset`: elements, on top of the batch's.
    __device__ Output(const Policy& policy, const GemmArgs& args, std::int64_t batch,
                      std::int64_t d_offset = 0)
        : policy_(policy),
          d_(static_cast<char*>(args.d.data) +
             (batch_offset(args.batch, args.d.batch_stride, batch) + d_offset) *
                 bytes(args.d.dtype)),
          d_row_(args.d.row_stride),
          d_col_(args.d.col_stride),
          dtype_(args.d.dtype) {
        if (policy.reads_c()) {
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

    // D(row, col .. col + count) from accumulators, count <= N. Integer accumulators come
    // sign-extended (widen<Value>).
    template <int N>
    __device__ void store(std::int64_t row, std::int64_t col, const Value (&acc)[N],
                          int count) const {
        if constexpr (std::is_integral_v<Value>) {
            store_as<std::int32_t, N>(row, col, acc, count);
        } else {
            switch (dtype_) {
                case DType::f16: return store_as<__half, N>(row, col, acc, count);
                case DType::bf16: return store_as<__nv_bfloat16, N>(row, col, acc, count);
                case DType::f32: return store_as<float, N>(row, col, acc, count);
                case DType::f64: return store_as<double, N>(row, col, acc, count);
                default: __trap();  // validation lets no other dtype through
            }
        }
    }

   private:
    // One machine access moves at most 16 bytes.
    template <class T, int N>
    struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector {
        T element[N];
    };

    static __device__ int bytes(DType dtype) {
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

    template <class T, int N>
    __device__ __forceinline__ void store_as(std::int64_t row, std::int64_t col,
                                             const Value (&acc)[N], int count) const {
        T* d = reinterpret_cast<T*>(d_) + row * d_row_ + col * d_col_;
        const T* c = reinterpret_cast<const T*>(c_) + row * c_row_ + col * c_col_;
        const bool whole = count == N && d_col_ == 1 && aligned<N>(d);
        Vector<T, N> value;
        if (policy_.reads_c()) {
            Vector<T, N> addend;
            if (whole && c_col_ == 1 && aligned<N>(c)) {
                addend = *reinterpret_cast<const Vector<T, N>*>(c);
            } else {
#pragma unroll
                for (int i = 0; i < N; ++i) addend.element[i] = i < count ? c[i * c_col_] : T(0);
            }
#pragma unroll
            for (int i = 0; i < N; ++i) {
                value.element[i] =
                    round_to<T>(policy_(acc[i], widen<Value>(addend.element[i])));
            }
        } else {
#pragma unroll
            for (int i = 0; i < N; ++i) value.element[i] = round_to<T>(policy_(acc[i]));
        }
        if (whole) {
            *reinterpret_cast<Vector<T, N>*>(d) = value;
        } else {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (i < count) d[i * d_col_] = value.element[i];
            }
        }
    }

    Policy policy_;
    char* d_;
    const char* c_ = nullptr;
    std::int64_t d_row_, d_col_, c_row_ = 0, c_col_ = 0;
    DType dtype_;
};

}  // namespace tcgemm::epilogue
