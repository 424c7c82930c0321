// scaled: D = scale_d * (alpha * scale_a * scale_b * acc + beta * C), in FP32.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/gemm_args.hpp"

namespace tcgemm::epilogue {

// The scale of a row of A or a column of B in a k-block, of the batch that `scales` is in.
TCGEMM_HOST_DEVICE float scale_at(const ScaleView& scales, std::int64_t outer,
                                  std::int64_t k_block) {
    if (scales.data == nullptr) return 1.0f;
    const std::int64_t number = scales.outer_block == 1 ? outer : outer / kScaleBlock;
    return scales.data[number * scales.outer_stride + k_block * scales.k_stride];
}

// Scales that differ along K act on the sum of their k-block, in the main loop: partial_factor().
// All others act here. For accumulators in FP32 or INT32, rounded to FP32.
struct Scaled {
    using Value = float;
    static constexpr bool kScaled = true;

    float alpha, beta;
    ScaleArgs scales;
    float scale_d = 1.0f;  // once in_batch() has read it

    explicit Scaled(const GemmArgs& args)
        : alpha(static_cast<float>(args.alpha)),
          beta(static_cast<float>(args.beta)),
          scales(*args.scales) {}

    // The same for one batch. Reads memory: in the kernel only.
    TCGEMM_HOST_DEVICE Scaled in_batch(const BatchShape& batch, std::int64_t index) const {
        Scaled moved = *this;
        for (ScaleView* view : {&moved.scales.a, &moved.scales.b}) {
            if (view->data != nullptr) view->data += batch_offset(batch, view->batch_stride, index);
        }
        if (scales.d != nullptr) moved.scale_d = *scales.d;
        return moved;
    }

    TCGEMM_HOST_DEVICE bool reads_c() const { return beta != 0; }
    TCGEMM_HOST_DEVICE bool saturates() const { return scales.overflow == Overflow::saturate; }

    // What a partial sum over k-block `k_block` of an element is multiplied by.
    TCGEMM_HOST_DEVICE float a_partial_factor(std::int64_t row, std::int64_t k_block) const {
        return scales.a.along_k ? scale_at(scales.a, row, k_block) : 1.0f;
    }
    TCGEMM_HOST_DEVICE float b_partial_factor(std::int64_t col, std::int64_t k_block) const {
        return scales.b.along_k ? scale_at(scales.b, col, k_block) : 1.0f;
    }

    // What the whole sum of an element is multiplied by.
    TCGEMM_HOST_DEVICE float factor(std::int64_t row, std::int64_t col) const {
        const float a = scales.a.along_k ? 1.0f : scale_at(scales.a, row, 0);
        return a * (scales.b.along_k ? 1.0f : scale_at(scales.b, col, 0));
    }

    TCGEMM_HOST_DEVICE float operator()(float acc, std::int64_t row, std::int64_t col) const {
        return alpha * acc * factor(row, col) * scale_d;
    }
    TCGEMM_HOST_DEVICE float operator()(float acc, float c, std::int64_t row,
                                        std::int64_t col) const {
        return std::fma(beta, c, alpha * acc * factor(row, col)) * scale_d;
    }
};

}  // namespace tcgemm::epilogue
