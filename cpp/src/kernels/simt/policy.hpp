// What the one CUDA-core kernel is compiled for: the numbers it computes with and its tile.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/kernel_info.hpp"

namespace tcgemm::simt {

// Element: A and B in global memory. Stage: in shared memory, what is multiplied. Acc: the sum.
// Result: the accumulator as the epilogue takes it. kFmaPerCycle: of an SM of sm_90.
struct F32 {
    static constexpr DType kDType = DType::f32;
    static constexpr Accumulate kAccumulate = Accumulate::fp32;
    using Element = float;
    using Stage = float;
    using Acc = float;
    using Result = float;
    static constexpr double kFmaPerCycle = 128;
};
// The same, rounded to TF32 where it is multiplied.
struct TF32 : F32 {};
struct F16 {
    static constexpr DType kDType = DType::f16;
    static constexpr Accumulate kAccumulate = Accumulate::fp32;
    using Element = __half;
    using Stage = float;
    using Acc = float;
    using Result = float;
    static constexpr double kFmaPerCycle = 128;
};
struct F16AccF16 {
    static constexpr DType kDType = DType::f16;
    static constexpr Accumulate kAccumulate = Accumulate::fp16;
    using Element = __half;
    using Stage = __half;
    using Acc = __half;
    using Result = float;
    static constexpr double kFmaPerCycle = 128;
};
struct BF16 {
    static constexpr DType kDType = DType::bf16;
    static constexpr Accumulate kAccumulate = Accumulate::fp32;
    using Element = __nv_bfloat16;
    using Stage = float;
    using Acc = float;
    using Result = float;
    static constexpr double kFmaPerCycle = 128;
};
// The same with a second accumulator, to which sums of kPromotedK products are added.
template <class Numbers>
struct Promoted : Numbers {
    static constexpr Accumulate kAccumulate = Accumulate::promoted;
};
// The same with the epilogue `scaled`.
template <class Numbers>
struct Scaled : Numbers {};
template <class Numbers>
inline constexpr bool kIsScaled = false;
template <class Numbers>
inline constexpr bool kIsScaled<Scaled<Numbers>> = true;
struct F64 {
    static constexpr DType kDType = DType::f64;
    static constexpr Accumulate kAccumulate = Accumulate::fp64;
    using Element = double;
    using Stage = double;
    using Acc = double;
    using Result = double;
    static constexpr double kFmaPerCycle = 64;
};
struct I8 {
    static constexpr DType kDType = DType::i8;
    static constexpr Accumulate kAccumulate = Accumulate::int32;
    using Element = std::int8_t;
    using Stage = std::int32_t;
    using Acc = std::int32_t;
    using Result = std::int32_t;
    static constexpr double kFmaPerCycle = 64;
};

// A block computes kBlockM x kBlockN outputs, a thread kThreadM x kThreadN of them. kBlocksPerSm is
// what the registers are limited for (__launch_bounds__), and what the cost model reckons with.
template <class Numbers_, int kBlockM_, int kBlockN_, int kBlockK_, int kThreadM_, int kThreadN_,
          int kBlocksPerSm_, int kSlices_ = 1>
struct Policy {
    using Numbers = Numbers_;
    static constexpr int kBlockM = kBlockM_, kBlockN = kBlockN_, kBlockK = kBlockK_;
    static constexpr int kThreadM = kThreadM_, kThreadN = kThreadN_;
    // Sliced K: so many times the warps, each of which has its part of the k of every k-tile. Where
    // a block is alone on its SM, a scheduler then has two warps to issue from.
    static constexpr int kSlices = kSlices_, kSliceK = kBlockK / kSlices;
    static constexpr int kSliceThreads = kBlockM / kThreadM * (kBlockN / kThreadN);
    static constexpr int kThreads = kSlices * kSliceThreads;
    static constexpr int kBlocksPerSm = kBlocksPerSm_;
    // Values of k whose multiply-adds are one piece of code: more would be fetched anew all the
    // time.
    static constexpr int kUnrolledK = std::min(kSliceK, 1024 / (kThreadM * kThreadN));
    // What parts of K hold whole. Promoted sums are over the same k whatever the split: scales of
    // k-blocks act on them.
    static constexpr int kStepK =
        Numbers::kAccumulate == Accumulate::promoted ? kPromotedK : kBlockK;
    // The threads of a warp, as they share its outputs.
    static constexpr int kLanesM = 4, kLanesN = 8;
    static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
    static constexpr TileConfig tile{kBlockM, kBlockN, kBlockK, kWarpM, kWarpN, kThreads};
    static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "warps tile the block");
    static_assert(kSliceK % kUnrolledK == 0 && kUnrolledK % 2 == 0, "fragments come by turns");
};

template <class Numbers>
inline constexpr bool kIsDouble = sizeof(typename Numbers::Acc) == 8;
template <class Numbers>
inline constexpr bool kIsFloat = std::is_same_v<Numbers, F32>;
template <class Numbers>
using Large = std::conditional_t<kIsDouble<Numbers>, Policy<Numbers, 64, 128, 8, 8, 8, 2>,
                                 Policy<Numbers, 128, 128, kIsFloat<Numbers> ? 16 : 8, 16, 8, 2>>;
template <class Numbers>
using Wide = Policy<Numbers, 64, 128, 16, 8, 8, 3>;
template <class Numbers>
using Medium = Policy<Numbers, 64, 64, kIsFloat<Numbers> ? 16 : 8, 8, 4,
                      kIsDouble<Numbers> || kIsScaled<Numbers> ? 3 : 4>;
template <class Numbers>
using Narrow = Policy<Numbers, 32, 128, 16, 4, 8, 4>;
template <class Numbers>
using Tall = Policy<Numbers, 128, 32, 16, 8, 4, 4>;
template <class Numbers>
using Small = Policy<Numbers, 32, 32, kIsFloat<Numbers> ? 16 : 8, 4, 4,
                     kIsFloat<Numbers>    ? 9
                     : kIsDouble<Numbers> ? 8
                                          : 12>;
// For one block an SM, or few.
template <class Numbers>
using WideSliced = Policy<Numbers, 64, 128, 16, 8, 8, 1, 2>;
template <class Numbers>
using SmallSliced = Policy<Numbers, 32, 32, 32, 4, 4, 4, 2>;

// Defined in launch.cuh, instantiated in the file of each compute dtype.
template <class Policy>
void launch(const GemmArgs& args, const Schedule& schedule, StreamView stream);

}  // namespace tcgemm::simt
