// Matrices with guards around their elements, for the tests of the host family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "kernels/gemm_args.hpp"
#include "kernels/host/convert.hpp"

namespace host_test {

using namespace tcgemm;
using namespace tcgemm::host;
using std::int64_t;

// A matrix inside memory of its own, with guards before, after and in the gaps between its
// elements.
struct Matrix {
    DType dtype = DType::f32;
    int64_t rows = 0, cols = 0, batches = 1;
    int64_t row_stride = 0, col_stride = 0, batch_stride = 0;
    int64_t origin = 0;
    std::vector<std::byte> memory;

    // `row` and `col`: strides. Negative ones walk down from the end of the memory.
    Matrix(DType type, int64_t m, int64_t n, int64_t row, int64_t col, int64_t count = 1,
           int64_t batch = 0)
        : dtype(type),
          rows(m),
          cols(n),
          batches(count),
          row_stride(row),
          col_stride(col),
          batch_stride(batch) {
        int64_t low = 0, high = 0;
        for (const auto& [extent, stride] :
             {std::pair{m, row}, std::pair{n, col}, std::pair{count, batch}}) {
            (stride < 0 ? low : high) += (extent - 1) * stride;
        }
        origin = 17 - low;
        memory.resize(static_cast<std::size_t>((high - low + 1 + 2 * 17) * size_of(type)),
                      std::byte{0xff});
    }
    int64_t at(int64_t batch, int64_t i, int64_t j) const {
        return origin + batch * batch_stride + i * row_stride + j * col_stride;
    }
    template <class T>
    T* as() {
        return reinterpret_cast<T*>(memory.data());
    }
    template <class T>
    const T* as() const {
        return reinterpret_cast<const T*>(memory.data());
    }
    double get(int64_t batch, int64_t i, int64_t j) const {
        const int64_t e = at(batch, i, j);
        switch (dtype) {
            case DType::f16: return to_float(as<Half>()[e]);
            case DType::bf16: return to_float(as<BFloat16>()[e]);
            case DType::f32: return as<float>()[e];
            case DType::f64: return as<double>()[e];
            case DType::i8: return as<std::int8_t>()[e];
            default: return as<std::int32_t>()[e];
        }
    }
    void set(int64_t batch, int64_t i, int64_t j, double value) {
        const int64_t e = at(batch, i, j);
        switch (dtype) {
            case DType::f16: as<Half>()[e] = to_half(value); break;
            case DType::bf16: as<BFloat16>()[e] = to_bfloat16(value); break;
            case DType::f32: as<float>()[e] = static_cast<float>(value); break;
            case DType::f64: as<double>()[e] = value; break;
            case DType::i8: as<std::int8_t>()[e] = static_cast<std::int8_t>(value); break;
            default: as<std::int32_t>()[e] = static_cast<std::int32_t>(value);
        }
    }
    void fill(unsigned seed, double low, double high) {
        std::mt19937_64 random(seed);
        std::uniform_real_distribution<double> uniform(low, high);
        const double scale = dtype == DType::i8 ? 127 : dtype == DType::i32 ? 1e6 : 1;
        for (int64_t b = 0; b < batches; ++b)
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t j = 0; j < cols; ++j) set(b, i, j, scale * uniform(random));
    }
    MatrixView view() {
        MatrixView view;
        view.data = memory.data() + origin * size_of(dtype);
        view.row_stride = row_stride;
        view.col_stride = col_stride;
        view.batch_stride[0] = batch_stride;
        view.dtype = dtype;
        return view;
    }
};

inline Matrix row_major(DType dtype, int64_t rows, int64_t cols, int64_t batches = 1) {
    return Matrix(dtype, rows, cols, cols, 1, batches, rows * cols);
}

// Everything but the elements of `d` still holds the guard.
inline bool guards_intact(const Matrix& d) {
    std::vector<bool> owned(d.memory.size() / size_of(d.dtype));
    for (int64_t b = 0; b < d.batches; ++b)
        for (int64_t i = 0; i < d.rows; ++i)
            for (int64_t j = 0; j < d.cols; ++j) owned[d.at(b, i, j)] = true;
    for (std::size_t e = 0; e < d.memory.size(); ++e) {
        if (!owned[e / size_of(d.dtype)] && d.memory[e] != std::byte{0xff}) return false;
    }
    return true;
}

}  // namespace host_test
