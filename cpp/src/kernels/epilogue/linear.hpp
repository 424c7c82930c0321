// linear: D = alpha * acc + beta * C, at accumulator precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/host_device.hpp"
#include "kernels/gemm_args.hpp"

namespace tcgemm::epilogue {

// Acc: float, double or std::int32_t. Integers wrap around, so they are computed unsigned.
template <class Acc>
struct Linear {
    using Value = std::conditional_t<std::is_integral_v<Acc>, std::uint64_t, Acc>;
    using InBatch = Linear;                 // the same in every batch
    static constexpr bool kScaled = false;  // takes no place of an element, stores no FP8

    Value alpha, beta;

    explicit Linear(const GemmArgs& args) : alpha(from(args.alpha)), beta(from(args.beta)) {}

    template <class Index>
    TCGEMM_HOST_DEVICE const Linear& in_batch(const BatchShape&, const Index&) const {
        return *this;
    }

    // C must not be read where this is false: it may hold NaN or be null.
    TCGEMM_HOST_DEVICE bool reads_c() const { return beta != 0; }

    // What is left to do where C has been added.
    TCGEMM_HOST_DEVICE Linear behind_c() const {
        Linear rest = *this;
        if (reads_c()) rest.alpha = 1, rest.beta = 0;
        return rest;
    }

    TCGEMM_HOST_DEVICE Value operator()(Value acc) const { return alpha * acc; }

    // One fused multiply-add on top of the rounded product: every family gives the same bits.
    TCGEMM_HOST_DEVICE Value operator()(Value acc, Value c) const {
        if constexpr (std::is_integral_v<Acc>) {
            return alpha * acc + beta * c;
        } else {
            return std::fma(beta, c, alpha * acc);
        }
    }

   private:
    static Value from(double scalar) {
        if constexpr (std::is_integral_v<Acc>) {
            return static_cast<Value>(static_cast<std::int64_t>(scalar));
        } else {
            return static_cast<Value>(scalar);
        }
    }
};

}  // namespace tcgemm::epilogue
