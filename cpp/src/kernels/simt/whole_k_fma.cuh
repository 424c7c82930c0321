// The sums of a small tile on CUDA cores.
#pragma once

#include "kernels/device/vector.cuh"
#include "kernels/simt/policy.hpp"
#include "kernels/whole_k/kernel.cuh"
#include "kernels/whole_k/whole_k.hpp"

namespace tcgemm::simt {

// The lanes of a warp lie 8 x 4 on its part of the tile; each has every eighth row and four
// neighbours of every 16 columns.
template <int kTile>
struct WholeKFma {
    using Numbers = F32;
    using Element = float;
    using Acc = float;
    static constexpr const char* name = "simt whole_k_kernel";  // in errors
    static constexpr whole_k::Shape kShape = {
        kTile, kTile, sizeof(Element), sizeof(Acc), kTile < 32 ? 24 : 16, 5.2, 1, 128};
    static constexpr int kRows = kTile / 8, kVectors = kTile / 16;

    using Vector = device::Vector<float, 4>;
    Vector acc[kRows][kVectors] = {};

    __device__ __forceinline__ void multiply(const unsigned char* shared,
                                             const whole_k::ImageLayout& layout_a,
                                             const whole_k::ImageLayout& layout_b,
                                             const whole_k::Image& a, const whole_k::Image& b,
                                             int k) {
        constexpr int kStep = 4;  // of k
        const int row = threadIdx.x / 4, col = threadIdx.x % 4 * 4;
        const bool vectors_a = layout_a.along_k && layout_a.alignment == whole_k::kVectorBytes;
        const bool vectors_b = !layout_b.along_k && layout_b.alignment == whole_k::kVectorBytes;
        // What lies outside makes sums that are never stored.
        const unsigned char *of_a[kRows], *of_b[kVectors][4];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            of_a[i] = shared + a.data + min(row + 8 * i, a.outer - 1) * a.outer_step;
        }
#pragma unroll
        for (int j = 0; j < kVectors; ++j) {
            const int at = vectors_b ? min(col + 16 * j, (b.outer - 1) / 4 * 4) : col + 16 * j;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                of_b[j][e] = shared + b.data + min(at + e, b.outer - 1) * b.outer_step;
            }
        }
        const auto multiply_by = [&](const float (&its_a)[kRows], int step) {
            Vector its_b[kVectors];
#pragma unroll
            for (int j = 0; j < kVectors; ++j) {
                if (vectors_b) {
                    its_b[j] = *reinterpret_cast<const Vector*>(of_b[j][0] + step * b.k_step);
                } else {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        its_b[j].element[e] =
                            *reinterpret_cast<const float*>(of_b[j][e] + step * b.k_step);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
#pragma unroll
                for (int j = 0; j < kVectors; ++j) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        acc[i][j].element[e] =
                            fmaf(its_a[i], its_b[j].element[e], acc[i][j].element[e]);
                    }
                }
            }
        };
        int step = 0;
#pragma unroll 1
        for (; vectors_a && step + kStep <= k; step += kStep) {
            float its_a[kStep][kRows];
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                const Vector along_k =
                    *reinterpret_cast<const Vector*>(of_a[i] + step * sizeof(float));
#pragma unroll
                for (int e = 0; e < kStep; ++e) its_a[e][i] = along_k.element[e];
            }
#pragma unroll
            for (int e = 0; e < kStep; ++e) multiply_by(its_a[e], step + e);
        }
#pragma unroll 1
        for (; step < k; ++step) {
            float its_a[kRows];
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                its_a[i] = *reinterpret_cast<const float*>(of_a[i] + step * a.k_step);
            }
            multiply_by(its_a, step);
        }
    }

    template <int kLd>
    __device__ __forceinline__ void stage(Acc* staged) const {
        const int row = threadIdx.x / 4, col = threadIdx.x % 4 * 4;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int j = 0; j < kVectors; ++j) {
                *reinterpret_cast<Vector*>(staged + (row + 8 * i) * kLd + col + 16 * j) = acc[i][j];
            }
        }
    }
};

}  // namespace tcgemm::simt
