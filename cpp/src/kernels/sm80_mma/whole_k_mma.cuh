// The sums of a small tile on tensor cores.
#pragma once

#include <type_traits>

#include "kernels/device/ptx/mma.cuh"
#include "kernels/whole_k/kernel.cuh"
#include "kernels/whole_k/whole_k.hpp"
#include "pack/convert.cuh"

namespace tcgemm::sm80_mma {

namespace ptx = device::ptx;

// Number: as it is multiplied.
template <class Number, class Accumulator, int kTile>
struct WholeKMma {
    using Mma = ptx::Mma<Number, Number, Accumulator>;
    static constexpr bool kRounds = std::is_same_v<Number, device::Tf32>;
    using Element = std::conditional_t<kRounds, float, Number>;
    using Acc = Accumulator;
    static constexpr const char* name = "sm80_mma whole_k_kernel";  // in errors
    static constexpr int kItem = sizeof(Element);
    // By the registers of a thread.
    static constexpr int kWarpsPerSm = kItem == 8 ? (kTile < 32 ? 16 : 8) : kTile < 32 ? 28 : 16;
    static constexpr double kStepCycles = kItem == 1   ? 21.5
                                          : kItem == 2 ? 10.4
                                          : kItem == 4 ? 6.5
                                                       : 18;
    static constexpr whole_k::Shape kShape = {kTile,       kTile,       kItem,   sizeof(Acc),
                                              kWarpsPerSm, kStepCycles, Mma::kK, 0};
    static constexpr int kMmas = kTile / Mma::kM, kMmasN = kTile / Mma::kN;

    typename Mma::Sums sums[kMmas][kMmasN] = {};

    __device__ __forceinline__ void multiply(const unsigned char* shared,
                                             const whole_k::ImageLayout& layout_a,
                                             const whole_k::ImageLayout& layout_b,
                                             const whole_k::Image& a, const whole_k::Image& b,
                                             int k) {
        const bool words_a = in_words(layout_a), words_b = in_words(layout_b);
        int step = 0;
        for (; step + Mma::kK <= k; step += Mma::kK) {
            multiply_step<true>(shared, a, words_a, b, words_b, step, k);
        }
        if (step < k) multiply_step<false>(shared, a, false, b, false, step, k);
    }

    template <int kLd>
    __device__ __forceinline__ void stage(Acc* staged) const {
        const int row = threadIdx.x / 4, col = threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < kMmas; ++i) {
#pragma unroll
            for (int j = 0; j < kMmasN; ++j) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const auto pair = Mma::pair(sums[i][j], half);
                    Acc* const to = staged + (16 * i + 8 * half + row) * kLd + 8 * j + col;
                    *reinterpret_cast<std::decay_t<decltype(pair)>*>(to) = pair;
                }
            }
        }
    }

   private:
    using Fragment = typename Mma::Fragment;
    static constexpr int kRegisters = sizeof(Fragment) / (kItem < 4 ? 4 : kItem);
    // Neighbours along k in a register, and how far along k the registers of a lane lie apart.
    static constexpr int kNeighbours = kItem < 4 ? 4 / kItem : 1;
    static constexpr int kStepK = 4 * kNeighbours;

    static __device__ __forceinline__ bool in_words(const whole_k::ImageLayout& layout) {
        return layout.along_k && layout.alignment % 4 == 0;
    }

    // Elements behind the end of K are zero; those of rows and columns that do not exist make sums
    // that are never stored.
    template <bool kIsWhole>
    __device__ __forceinline__ void multiply_step(const unsigned char* shared,
                                                  const whole_k::Image& a, bool words_a,
                                                  const whole_k::Image& b, bool words_b, int step,
                                                  int k) {
        Fragment of_b[kMmas];
#pragma unroll
        for (int j = 0; j < kMmas; ++j)
            load<kIsWhole, false>(shared, b, words_b, 16 * j, step, k, of_b[j]);
#pragma unroll
        for (int i = 0; i < kMmas; ++i) {
            Fragment of_a;
            load<kIsWhole, true>(shared, a, words_a, 16 * i, step, k, of_a);
#pragma unroll
            for (int j = 0; j < kMmasN; ++j) Mma::multiply(sums[i][j], of_a, of_b[j / 2], j % 2);
        }
    }

    // 16 rows of A or columns of B. Of A the registers go on to row 8 first, then along k; of B,
    // but for FP64, along k first.
    template <bool kIsWhole, bool kIsA>
    static __device__ __forceinline__ void load(const unsigned char* shared,
                                                const whole_k::Image& image, bool in_words,
                                                int outer, int step, int k, Fragment& fragment) {
        constexpr bool kOuterFirst = kIsA || kItem == 8;
        const int lane = threadIdx.x, its_k = step + lane % 4 * kNeighbours;
        const unsigned char* data[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            data[i] = shared + image.data +
                      min(outer + 8 * i + lane / 4, image.outer - 1) * image.outer_step +
                      its_k * image.k_step;
        }
        if (kIsWhole && kItem < 4 && in_words) {
#pragma unroll
            for (int r = 0; r < kRegisters; ++r) {
                const int i = kOuterFirst ? r % 2 : r / 2, far = kOuterFirst ? r / 2 : r % 2;
                fragment[r] =
                    *reinterpret_cast<const std::uint32_t*>(data[i] + far * kStepK * kItem);
            }
            return;
        }
#pragma unroll
        for (int r = 0; r < kRegisters; ++r) {
            const int i = kOuterFirst ? r % 2 : r / 2, far = kOuterFirst ? r / 2 : r % 2;
            fragment[r] = 0;
#pragma unroll
            for (int e = 0; e < kNeighbours; ++e) {
                const int further = far * kStepK + e;
                if (!kIsWhole && its_k + further >= k) continue;
                const unsigned char* const at = data[i] + further * image.k_step;
                if constexpr (kItem == 8) {
                    fragment[r] = *reinterpret_cast<const double*>(at);
                } else if constexpr (kItem == 4) {
                    fragment[r] =
                        __float_as_uint(pack::to_tf32(*reinterpret_cast<const float*>(at)).value);
                } else if constexpr (kItem == 2) {
                    fragment[r] |= std::uint32_t{*reinterpret_cast<const std::uint16_t*>(at)}
                                   << 16 * e;
                } else {
                    fragment[r] |= std::uint32_t{*at} << 8 * e;
                }
            }
        }
    }
};

}  // namespace tcgemm::sm80_mma
