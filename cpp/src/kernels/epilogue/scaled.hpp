// scaled: D = scale_d * (alpha * scale_a * scale_b * acc + beta * C), in FP32.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.hpp"
#include "kernels/gemm_args.hpp"

namespace tcgemm::epilogue {

// The scales of A or B of one batch: a ScaleView without what a kernel has done with.
struct ScaleSlice {
    const float* data;
    std::int64_t outer_stride, k_stride;
    bool by_blocks;  // of kScaleBlock rows or columns
    bool along_k;

    TCGEMM_HOST_DEVICE float at(std::int64_t outer, std::int64_t k_block) const {
        if (data == nullptr) return 1.0f;
        const std::int64_t number = by_blocks ? outer / kScaleBlock : outer;
        return data[number * outer_stride + k_block * k_stride];
    }
};

// What is done to the accumulators of one batch, in FP32 or INT32 and rounded to FP32. Scales that
// differ along K act on the sum of their k-block, in the main loop: *_partial_factor(). All others
// act here.
struct ScaledBatch {
    float alpha, beta, scale_d;
    bool saturates;  // values beyond the range of an FP8 D
    ScaleSlice a, b;

    TCGEMM_HOST_DEVICE bool reads_c() const { return beta != 0; }

    // What a partial sum over k-block `k_block` of an element is multiplied by.
    TCGEMM_HOST_DEVICE float a_partial_factor(std::int64_t row, std::int64_t k_block) const {
        return a.along_k ? a.at(row, k_block) : 1.0f;
    }
    TCGEMM_HOST_DEVICE float b_partial_factor(std::int64_t col, std::int64_t k_block) const {
        return b.along_k ? b.at(col, k_block) : 1.0f;
    }

    // The product of these two is what the whole sum of an element is multiplied by: `factor`.
    TCGEMM_HOST_DEVICE float row_factor(std::int64_t row) const {
        return a.along_k ? 1.0f : a.at(row, 0);
    }
    TCGEMM_HOST_DEVICE float col_factor(std::int64_t col) const {
        return b.along_k ? 1.0f : b.at(col, 0);
    }

    TCGEMM_HOST_DEVICE float scaled(float acc, float factor) const {
        return alpha * acc * factor * scale_d;
    }
    TCGEMM_HOST_DEVICE float scaled(float acc, float factor, float c) const {
        return std::fma(beta, c, alpha * acc * factor) * scale_d;
    }
};

// What a launch hands to the kernel; a __grid_constant__ there, so that its arrays stay in constant
// memory.
struct Scaled {
    using Value = float;
    using InBatch = ScaledBatch;
    static constexpr bool kScaled = true;

    float alpha, beta;
    ScaleArgs scales;

    explicit Scaled(const GemmArgs& args)
        : alpha(static_cast<float>(args.alpha)),
          beta(static_cast<float>(args.beta)),
          scales(args.scales != nullptr ? *args.scales : ScaleArgs()) {}

    // Reads scale_d: in the kernel only.
    template <class Index>
    TCGEMM_HOST_DEVICE ScaledBatch in_batch(const BatchShape& batch, const Index& index) const {
        return {alpha,
                beta,
                scales.d == nullptr ? 1.0f : *scales.d,
                scales.overflow == Overflow::saturate,
                slice(scales.a, batch, index),
                slice(scales.b, batch, index)};
    }

   private:
    template <class Index>
    TCGEMM_HOST_DEVICE static ScaleSlice slice(const ScaleView& view, const BatchShape& batch,
                                               const Index& index) {
        const float* data = view.data;
        if (data != nullptr) data += batch_offset(batch, view.batch_stride, index);
        return {data, view.outer_stride, view.k_stride, view.outer_block != 1, view.along_k};
    }
};

// The rest of it, of values that alpha and the scales of A and B have been applied to.
struct Rescaled {
    using Value = float;
    using InBatch = Rescaled;
    static constexpr bool kScaled = true;

    float beta, scale_d;
    bool saturates;

    template <class Index>
    TCGEMM_HOST_DEVICE Rescaled in_batch(const BatchShape&, const Index&) const {
        return *this;
    }
    TCGEMM_HOST_DEVICE bool reads_c() const { return beta != 0; }
    // As of Linear.
    TCGEMM_HOST_DEVICE Rescaled behind_c() const {
        Rescaled rest = *this;
        if (reads_c()) rest.beta = 0, rest.scale_d = 1;
        return rest;
    }
    TCGEMM_HOST_DEVICE float operator()(float value) const { return value * scale_d; }
    TCGEMM_HOST_DEVICE float operator()(float value, float c) const {
        return std::fma(beta, c, value) * scale_d;
    }
    // As of ScaledBatch.
    TCGEMM_HOST_DEVICE float row_factor(std::int64_t) const { return 1.0f; }
    TCGEMM_HOST_DEVICE float col_factor(std::int64_t) const { return 1.0f; }
    template <class... C>
    TCGEMM_HOST_DEVICE float scaled(float value, float, C... c) const {
        return (*this)(value, c...);
    }
};

}  // namespace tcgemm::epilogue
