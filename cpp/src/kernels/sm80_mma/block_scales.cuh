// Scales of blocks of kScaleBlock k (epilogue/scaled.hpp): what the partial sums of a k-block,
// which is as long, are multiplied by when they are promoted.
#pragma once

#include "kernels/epilogue/scaled.hpp"

namespace tcgemm::sm80_mma {

// Of a lane's sums in its warp's part of a tile; S: the Shape.
template <class S>
class BlockScales {
   public:
    // `row`, `col`: of the warp's part, of which `rows` x `cols` exist; less than 1 where it lies
    // behind the matrix. All factors are 1 at first.
    __device__ BlockScales(const epilogue::ScaledBatch& scales, std::int64_t row, std::int64_t col,
                           int rows, int cols)
        : scales_(scales), row_(row), col_(col), last_row_(rows - 1), last_col_(cols - 1) {
#pragma unroll
        for (auto& of_row : of_rows_) of_row[0] = of_row[1] = 1.0f;
#pragma unroll
        for (auto& of_col : of_cols_) of_col[0] = of_col[1] = 1.0f;
    }

    // Those of rows and columns that do not exist are the last ones': nobody stores such sums.
    __device__ __forceinline__ void load(int k_block) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < S::kMmasM; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = min(i * S::Mma::kM + half * 8 + lane / 4, last_row_);
                of_rows_[i][half] = scales_.a_partial_factor(row_ + row, k_block);
            }
        }
#pragma unroll
        for (int j = 0; j < S::kMmasN; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int col = min(j * S::Mma::kN + lane % 4 * 2 + e, last_col_);
                of_cols_[j][e] = scales_.b_partial_factor(col_ + col, k_block);
            }
        }
    }

    // Of the e-th sum of instruction (i, j).
    __device__ __forceinline__ float factor(int i, int j, int e) const {
        return of_rows_[i][e / 2] * of_cols_[j][e % 2];
    }

   private:
    epilogue::ScaledBatch scales_;
    std::int64_t row_, col_;
    int last_row_, last_col_;
    float of_rows_[S::kMmasM][2], of_cols_[S::kMmasN][2];
};

// What a row without them has.
struct NoBlockScales {};

}  // namespace tcgemm::sm80_mma
