// Scales of A and B (see epilogue/scaled.hpp): on partial sums, in the main loop, where they differ
// along K; otherwise on the sums of a tile.
#pragma once

#include "kernels/device/ptx/async_copy.cuh"
#include "kernels/epilogue/scaled.hpp"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// The scales of A or B of the work's batch; null: 1 everywhere, or none of this kind.
__device__ __forceinline__ const float* scales_of(const Params& params, const Work& work,
                                                  const ScaleView& view, bool along_k) {
    if (view.data == nullptr || view.along_k != along_k) return nullptr;
    return view.data + batch_offset(params.args.batch, view.batch_stride, work.batch_index);
}

static __device__ const float kOne = 1.0f;

// Whether B has a scale for each column of a block of k.
__device__ __forceinline__ bool has_columns(const ScaleView& scales_b) {
    return scales_b.along_k && scales_b.outer_block == 1;
}

// Scales of blocks of kScaleBlock k, which partial sums of FP8 operands are multiplied by, come
// with the k-block: behind the ring each stage has one for each row of A, and for each column of B
// or for the two blocks of columns that the tile lies in.
//
// The warp that brings them. Ordinary asynchronous copies: they may lie anywhere.
template <class Policy>
class ScaleWarp {
   public:
    __device__ ScaleWarp(const Params& params, SharedMemory<Policy> shared)
        : params_(params), shared_(shared) {}

    __device__ void run() {
        WorkList<Policy> list(params_);
        const ScaleArgs& scales = params_.scaled.scales;
        while (list.has_next()) {
            const Work work = list.decode(list.next());
            const int m_end = static_cast<int>(params_.args.m);
            Source<Policy::kBlockM> a(scales_of(params_, work, scales.a, true), scales.a, work);
            a.take(scales.a.outer_block != 1 ? work.m / kScaleBlock : work.m + lane(),
                   scales.a.outer_block != 1, m_end - work.m);
            Source<Policy::kBlockN> b(scales_of(params_, work, scales.b, true), scales.b, work);
            if (has_columns(scales.b)) {
                b.take(work.n + lane(), false, work.n_end - work.n);
            } else {
                b.take((lane() == 0 ? work.n : work.n_end - 1) / kScaleBlock, true, 2);
            }
            for (int block = 0; block < work.blocks; ++block, at_.advance(shared_)) {
                ptx::wait_for_phase(shared_.empty(at_.stage), at_.parity ^ 1);
                a.copy(shared_.scales_a(at_.stage) + lane() * 4);
                b.copy(shared_.scales_b(at_.stage) + lane() * 4);
                ptx::arrive_behind_copies(shared_.full(at_.stage));
            }
        }
        ptx::wait_for_all_copies();
    }

   private:
    __device__ static int lane() { return threadIdx.x % 32; }

    // Of one operand, for up to kCount rows or columns: this lane's, 32 from one to the next.
    template <int kCount>
    struct Source {
        const float* next;  // of the next k-block
        std::int64_t step, k_stride;
        int left;  // whose scales there are, from this lane's first on

        // Null: ones.
        __device__ Source(const float* scales, const ScaleView& view, const Work& work)
            : next(scales != nullptr ? scales + work.first_block * view.k_stride : &kOne),
              step(scales != nullptr ? view.outer_stride : 0),
              k_stride(scales != nullptr ? work.stage_step * view.k_stride : 0) {
            static_assert(Policy::kBlocksPerStage == 1);
        }

        // Its first is number `first`, the same for all of them or not.
        __device__ void take(int first, bool same, int count) {
            next += first * step;
            step = same ? 0 : 32 * step;
            left = count - lane();
        }
        __device__ __forceinline__ void copy(std::uint32_t shared) {
            const float* from = next;
#pragma unroll
            for (int i = 0; i < kCount; i += 32, from += step) {
                if (i < left) ptx::copy_async_4(shared + i * 4, from);
            }
            next += k_stride;
        }
    };

    const Params& params_;
    SharedMemory<Policy> shared_;
    RingPosition at_;
};

// What a consumer does with them. kOfColumns: B has a scale for each column.
template <class Policy, bool kOfColumns>
class BlockScales {
    using Place = ThreadPlace<Policy>;
    using Sums = typename Policy::Sums;
    static constexpr int kStep = scaled_step(Policy::kBlockN), kEightsOfStep = kStep / 8;
    static constexpr int kWidest = widest(Policy::kBlockN, true);
    static constexpr int kFactors = kOfColumns ? 1 : kWidest / kStep;
    static_assert(kWidest <= kScaleBlock + kStep && kScaleBlock % kStep == 0,
                  "a tile's columns lie in two blocks at most, which end at multiples of kStep");

   public:
    // `row`: the warpgroup's first, within the tile.
    __device__ BlockScales(const Params& params, const Work& work, SharedMemory<Policy> shared,
                           int row)
        : shared_(shared),
          row_((row + thread_in_warpgroup() / 32 * 16 + thread_in_warpgroup() % 32 / 4) * 4),
          col_(thread_in_warpgroup() % 4 * 8),
          last_block_((work.n_end - 1) / kScaleBlock * kScaleBlock - work.n) {}

    // Whether the stage is needed until add() is done: scales of columns are read there.
    static constexpr bool kReadsOn = kOfColumns;

    // From a stage that is full.
    __device__ __forceinline__ void load(int stage) {
        const std::uint32_t rows = shared_.scales_a(stage) + row_;
        cols_ = shared_.scales_b(stage) + (kOfColumns ? col_ : 0);
#pragma unroll
        for (int i = 0; i < Place::kRows; ++i) {
            rows_[i] = ptx::load_shared<float>(rows + (i / 2 * kMmaM + i % 2 * 8) * 4);
        }
        if (!kOfColumns) blocks_ = ptx::load_shared<float2>(cols_);
    }

    // What add() multiplies by, of what load() read.
    __device__ __forceinline__ void combine() {
#pragma unroll
        for (int i = 0; i < Place::kRows; ++i) {
            const float first = rows_[i] * blocks_.x, last = rows_[i] * blocks_.y;
#pragma unroll
            for (int step = 0; step < kFactors; ++step) {
                factors_[i][step] = kOfColumns || step * kStep < last_block_ ? first : last;
            }
        }
    }

    // The partial sums of the first columns, as many as there are.
    template <int kSize>
    __device__ __forceinline__ void add(Sums& sums,
                                        const float (&partial)[Policy::kSubtiles][kSize]) const {
        add_eights(sums, partial, [&](int i, int eight, int e) {
            if constexpr (kOfColumns) {
                const float2 cols = ptx::load_shared<float2>(cols_ + eight * 32);
                return factors_[i][0] * (e == 0 ? cols.x : cols.y);
            } else {
                return factors_[i][eight / kEightsOfStep];
            }
        });
    }

   private:
    // `factor(i, eight, e)`: of the i-th row and element e of the pair in eight columns `eight`.
    template <int kSize, class Factor>
    __device__ __forceinline__ static void add_eights(
        Sums& sums, const float (&partial)[Policy::kSubtiles][kSize], const Factor& factor) {
#pragma unroll
        for (int eight = 0; eight < kSize / 4; ++eight) {
#pragma unroll
            for (int i = 0; i < Place::kRows; ++i) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int sum = eight * 4 + i % 2 * 2 + e;
                    sums[i / 2][sum] =
                        fmaf(partial[i / 2][sum], factor(i, eight, e), sums[i / 2][sum]);
                }
            }
        }
    }

    SharedMemory<Policy> shared_;
    std::uint32_t row_, col_;  // bytes from the first row's or column's
    int last_block_;           // its first column, within the tile
    std::uint32_t cols_ = 0;
    float rows_[Place::kRows];
    float2 blocks_ = {1.0f, 1.0f};           // of columns: the first and the last
    float factors_[Place::kRows][kFactors];  // of a row and, but for kOfColumns, kStep columns
};

// Whether sums of tiles have scales: those of A or B that are the same along K.
__device__ __forceinline__ bool are_of_tiles(const ScaleView& view) {
    return view.data != nullptr && !view.along_k;
}
__device__ __forceinline__ bool has_tile_scales(const Params& params) {
    return are_of_tiles(params.scaled.scales.a) || are_of_tiles(params.scaled.scales.b);
}
// Of the tile's matrix: the first. Where only one operand has scales, the other's are 1.
__device__ __forceinline__ const float* tile_scales(const Params& params, const Work& work,
                                                    const ScaleView& view) {
    return are_of_tiles(view) ? scales_of(params, work, view, false) : &kOne;
}

// Whether factors may be multiplied with each other before a sum is: their product is neither too
// large for a float nor too small for all of its bits.
__device__ __forceinline__ bool is_normal(float product) {
    constexpr float kLeast = 0x1p-126f, kMost = 0x1.fffffep127f;
    return fabsf(product) >= kLeast && fabsf(product) <= kMost;
}

// scaled = factor sums, of whole numbers or FP8.
template <class Sum, int kSubtiles, int kSums>
__device__ __forceinline__ void multiply_by(float factor, const Sum (&sums)[kSubtiles][kSums],
                                            float (&scaled)[kSubtiles][kSums]) {
#pragma unroll
    for (int s = 0; s < kSubtiles; ++s) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
            scaled[s][i] = factor * static_cast<float>(sums[s][i]);
        }
    }
}

// Sums by alpha and the scales of tiles; what is left is Rescaled's. `where()` tells the place of
// the tile.
template <class Policy, class Where>
__device__ __forceinline__ void apply_scales(const Params& params, const Where& where, int row,
                                             const typename Policy::Sums& sums,
                                             float (&scaled)[Policy::kSubtiles][Policy::kSums]) {
    using Place = ThreadPlace<Policy>;
    const ScaleArgs& scales = params.scaled.scales;
    const float alpha = params.scaled.alpha;
    if (!params.has_line_scales) {
        float factor = alpha;
        if (has_tile_scales(params)) {
            const Work work = params.args.batch.rank > 0 ? where() : Work();
            factor *= *tile_scales(params, work, scales.a) * *tile_scales(params, work, scales.b);
        }
        if (is_normal(factor)) return multiply_by(factor, sums, scaled);
    }
    const Work work = where();
    const Place at(params, work, row);
    const float* const of_a = tile_scales(params, work, scales.a);
    const std::int64_t step_a = are_of_tiles(scales.a) ? scales.a.outer_stride : 0;
    float scale_a[Place::kRows];
#pragma unroll
    for (int i = 0; i < Place::kRows; ++i) scale_a[i] = of_a[at.row_at(i) * step_a];
    // There are no registers for both operands' addresses at once,
    __syncwarp();
    const float* const of_b = tile_scales(params, work, scales.b);
    const std::int64_t step_b = are_of_tiles(scales.b) ? scales.b.outer_stride : 0;
    const float* of_cols = of_b + at.col * step_b;
    const int left = at.last_col - at.col;
#pragma unroll
    for (int eight = 0; eight < Place::kEights; ++eight) {
        // nor to load all columns' scales,
        if (eight > 0 && eight % 8 == 0) __syncwarp();
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
        // nor for the addresses of all.
        of_cols = ptx::opaque(of_cols + 8 * step_b);
    }
}

}  // namespace tcgemm::sm90_wgmma
