// Scales of A and B (see epilogue/scaled.hpp): on partial sums, in the main loop, where they differ
// along K; otherwise on the sums of a tile.
#pragma once

#include "kernels/epilogue/scaled.hpp"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// The scales of A or B of the work's batch; null: 1 everywhere, or none of this kind.
__device__ __forceinline__ const float* scales_of(const Params& params, const Work& work,
                                                  const ScaleView& view, bool along_k) {
    if (view.data == nullptr || view.along_k != along_k) return nullptr;
    return view.data + batch_offset(params.args.batch, view.batch_stride, work.batch);
}

// Scales of blocks of kScaleBlock k, which partial sums of FP8 operands are multiplied by.
template <class Policy>
class BlockScales {
    using Place = ThreadPlace<Policy>;
    using Sums = typename Policy::Sums;
    static_assert(Policy::kBlockN <= kScaleBlock, "a tile's columns lie in two blocks at most");

   public:
    __device__ BlockScales(const Params& params, const Work& work, int row)
        : views_(params.scaled.scales),
          at_(params, work, row),
          a_(scales_of(params, work, views_.a, true)),
          b_(scales_of(params, work, views_.b, true)),
          last_block_(at_.last_col / kScaleBlock * kScaleBlock) {}

    // Before the block is multiplied: nothing waits for the loads here. Scales of single columns
    // are too many for registers.
    __device__ __forceinline__ void load(int k_block) {
        k_block_ = k_block;
#pragma unroll
        for (int i = 0; i < Place::kRows; ++i) {
            rows_[i] = a_ != nullptr ? a_[place(views_.a, at_.row_at(i), k_block)] : 1.0f;
        }
        const bool of_blocks = b_ != nullptr && views_.b.outer_block != 1;
        first_cols_ = of_blocks ? b_[place(views_.b, at_.col_at(0, 0), k_block)] : 1.0f;
        last_cols_ = of_blocks ? b_[place(views_.b, at_.last_col, k_block)] : 1.0f;
    }

    __device__ __forceinline__ void add(Sums& sums, const Sums& partial) const {
        if (b_ == nullptr || views_.b.outer_block != 1) {
            add_eights(sums, partial, [&](int eight, int e) {
                return at_.col + eight * 8 + e < last_block_ ? first_cols_ : last_cols_;
            });
        } else {
            const float* const first = b_ + place(views_.b, at_.col, k_block_);
            add_eights(sums, partial, [&](int eight, int e) {
                const int beside = eight * 8 + e;
                return at_.col + beside <= at_.last_col ? first[beside * views_.b.outer_stride]
                                                        : 0.0f;
            });
        }
    }

   private:
    template <class OfColumn>
    __device__ __forceinline__ void add_eights(Sums& sums, const Sums& partial,
                                               const OfColumn& of_column) const {
#pragma unroll
        for (int eight = 0; eight < Place::kEights; ++eight) {
            const float cols[2] = {of_column(eight, 0), of_column(eight, 1)};
#pragma unroll
            for (int i = 0; i < 4 * Policy::kSubtiles; ++i) {
                float& sum = sums[i / 4][eight * 4 + i % 4];
                sum += partial[i / 4][eight * 4 + i % 4] * (rows_[i / 2] * cols[i % 2]);
            }
        }
    }
    __device__ static std::int64_t place(const ScaleView& view, int outer, int k_block) {
        const int number = view.outer_block != 1 ? outer / kScaleBlock : outer;
        return number * view.outer_stride + k_block * view.k_stride;
    }

    const ScaleArgs& views_;
    Place at_;
    const float *a_, *b_;
    int last_block_;  // its first column
    int k_block_ = 0;
    float rows_[Place::kRows], first_cols_ = 1.0f, last_cols_ = 1.0f;
};

static __device__ const float kOne = 1.0f;

// scaled = sums, of whole numbers or FP8, with alpha and those scales of A and B applied that are
// the same along K; the rest is Rescaled's. `where()` tells the place of the tile.
template <class Policy, class Where>
__device__ __forceinline__ void apply_scales(const Params& params, const Where& where, int row,
                                             const typename Policy::Sums& sums,
                                             float (&scaled)[Policy::kSubtiles][Policy::kSums]) {
    using Place = ThreadPlace<Policy>;
    const ScaleArgs& scales = params.scaled.scales;
    const float alpha = params.scaled.alpha;
    const auto has_any = [](const ScaleView& view) {
        return view.data != nullptr && !view.along_k;
    };
    if (!has_any(scales.a) && !has_any(scales.b)) {
#pragma unroll
        for (int s = 0; s < Policy::kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < Policy::kSums; ++i) {
                scaled[s][i] = alpha * static_cast<float>(sums[s][i]);
            }
        }
        return;
    }
    const Work work = where();
    const Place at(params, work, row);
    // Where only one operand has scales, the other's are 1.
    const float* const of_a = has_any(scales.a) ? scales_of(params, work, scales.a, false) : &kOne;
    const float* const of_b = has_any(scales.b) ? scales_of(params, work, scales.b, false) : &kOne;
    const std::int64_t step_a = has_any(scales.a) ? scales.a.outer_stride : 0;
    const std::int64_t step_b = has_any(scales.b) ? scales.b.outer_stride : 0;
    float scale_a[Place::kRows];
#pragma unroll
    for (int i = 0; i < Place::kRows; ++i) scale_a[i] = of_a[at.row_at(i) * step_a];
    const float* of_cols = of_b + at.col * step_b;
    const int left = at.last_col - at.col;
#pragma unroll
    for (int eight = 0; eight < Place::kEights; ++eight) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const float scale_b = eight * 8 + e <= left ? of_cols[e * step_b] : 0.0f;
#pragma unroll
            for (int i = 0; i < Place::kRows; ++i) {
                const int sum = eight * 4 + i % 2 * 2 + e;
                scaled[i / 2][sum] =
                    alpha * static_cast<float>(sums[i / 2][sum]) * (scale_a[i] * scale_b);
            }
        }
        // One after the other: there are no registers for the addresses of all.
        of_cols = ptx::opaque(of_cols + 8 * step_b);
    }
}

}  // namespace tcgemm::sm90_wgmma
