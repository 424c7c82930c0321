// Sums of products of halves: the powers of two that their rows and columns were divided by.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"
#include "kernels/halves.hpp"

namespace tcgemm::device {

struct Exponents {
    const int *of_a, *of_b;  // of the batch; null: A and B are not read, the sums are 0
    std::int64_t last_row, last_col;

    // `batch`: what batch_offset() takes.
    template <class Index>
    __device__ Exponents(const GemmArgs& args, const Index& batch)
        : of_a(args.exponents_a),
          of_b(args.exponents_b),
          last_row(args.m - 1),
          last_col(args.n - 1) {
        if (of_a == nullptr) return;
        of_a += batch_offset(args.batch, args.a.batch_stride, batch) / args.a.row_stride;
        of_b += batch_offset(args.batch, args.b.batch_stride, batch) / args.b.col_stride;
    }
    // Of neighbours in a row; those behind the matrix are never stored.
    __device__ float2 apply(float2 sums, std::int64_t row, std::int64_t col) const {
        if (of_a == nullptr) return sums;
        const int its = of_a[min(row, last_row)];
        return {halves::times_power_of_two(sums.x, its + of_b[min(col, last_col)]),
                halves::times_power_of_two(sums.y, its + of_b[min(col + 1, last_col)])};
    }
};

}  // namespace tcgemm::device
