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

    // C(row, col .. col + count), count <= N; nothing where beta = 0. Apart from store(), so that a
    // kernel can have several of these on their way: C and D may be the same memory, so the compiler
    // keeps reads and writes in order.
    template <int N>
    __device__ void read_c(std::int64_t row, std::int64_t col, int count, Value (&c)[N]) const {
        if (!policy_.reads_c()) return;
        for_dtype([&](auto element) {
            using T = decltype(element);
            const T* source = reinterpret_cast<const T*>(c_) + row * c_row_ + col * c_col_;
            Vector<T, N> value;
            if (count == N && c_col_ == 1 && aligned<N>(source)) {
                value = *reinterpret_cast<const Vector<T, N>*>(source);
            } else {
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    value.element[i] = i < count ? source[i * c_col_] : T(0);
                }
            }
#pragma unroll
            for (int i = 0; i < N; ++i) c[i] = widen<Value>(value.element[i]);
        });
    }

    // D(row, col .. col + count) from accumulators and what read_c() gave. Integer accumulators come
    // sign-extended (widen<Value>).
    template <int N>
    __device__ void store(std::int64_t row, std::int64_t col, int count, const Value (&acc)[N],
                          const Value (&c)[N]) const {
        for_dtype([&](auto element) {
            using T = decltype(element);
            T* target = reinterpret_cast<T*>(d_) + row * d_row_ + col * d_col_;
            Vector<T, N> value;
#pragma unroll
            for (int i = 0; i < N; ++i) {
                value.element[i] =
                    round_to<T>(policy_.reads_c() ? policy_(acc[i], c[i]) : policy_(acc[i]));
            }
            if (count == N && d_col_ == 1 && aligned<N>(target)) {
                *reinterpret_cast<Vector<T, N>*>(target) = value;
            } else {
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    if (i < count) target[i * d_col_] = value.element[i];
                }
            }
        });
    }

    template <int N>
    __device__ void store(std::int64_t row, std::int64_t col, const Value (&acc)[N],
                          int count) const {
        Value c[N] = {};
        read_c(row, col, count, c);
        store(row, col, count, acc, c);
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

    // Calls `action` with a value of D's element type: one uniform branch.
    template <class Action>
    __device__ __forceinline__ void for_dtype(const Action& action) const {
        if constexpr (std::is_integral_v<Value>) {
            action(std::int32_t{});
        } else {
            switch (dtype_) {
                case DType::f16: return action(__half{});
                case DType::bf16: return action(__nv_bfloat16{});
                case DType::f32: return action(float{});
                case DType::f64: return action(double{});
                default: __trap();  // validation lets no other dtype through
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
