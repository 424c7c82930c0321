// The sums of many rows of few columns on CUDA cores: a lane has whole rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/device/vector.cuh"
#include "kernels/simt/loaded.cuh"
#include "kernels/simt/multiply_add.cuh"
#include "kernels/simt/policy.hpp"
#include "kernels/whole_k/kernel.cuh"
#include "kernels/whole_k/whole_k.hpp"

namespace tcgemm::simt {

template <class Numbers_>
struct WholeKRows {
    using Numbers = Numbers_;
    using Element = typename Numbers::Element;
    using Acc = typename Numbers::Acc;
    static constexpr const char* name = "simt whole_k_kernel";  // in errors
    static constexpr whole_k::Shape kShape = {
        sizeof(Acc) == 8 ? 64 : 128, 8, sizeof(Element), sizeof(Acc), 16, 0, 1, 128, true};

    template <class Output, class Place>
    __device__ __forceinline__ static void multiply_and_store(const whole_k::Params& params,
                                                              unsigned char* shared, int a_data,
                                                              int b_data, const Output& output,
                                                              const Place& place) {
        const auto a = whole_k::image_at<Element>(a_data, params.a, place.rows);
        const auto b = whole_k::image_at<Element>(b_data, params.b, place.cols);
        const int lane = threadIdx.x;
        auto* const staged_b = reinterpret_cast<ColumnsOfB*>(shared + 2 * params.stage_bytes);
        if (place.cols > 1) stage_columns(params, shared, b, staged_b);
#pragma unroll 1
        for (int col = 0; col < place.cols; col += kCols) {
            Acc acc[kRows][kCols] = {};
            const auto multiply_rows = [&](auto rows) {
                if (place.cols - col == 1) {
                    multiply<rows.value>(params, shared, a, k_of_column(shared, b, col), acc);
                } else {
                    multiply<rows.value>(params, shared, a, k_of_columns(staged_b, col), acc);
                }
            };
            if (params.rows == 32) {
                multiply_rows(std::integral_constant<int, 1>());
            } else if (params.rows == 64) {
                multiply_rows(std::integral_constant<int, 2>());
            } else if constexpr (kRows > 2) {
                multiply_rows(std::integral_constant<int, kRows>());
            }
            if (lane >= place.rows) continue;
            using Value = typename Output::Value;
            Value strip[kRows][kCols];
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
#pragma unroll
                for (int j = 0; j < kCols; ++j) strip[i][j] = epilogue::widen<Value>(acc[i][j]);
            }
            const auto store = [&](auto of_d) {
                output.template store_as<decltype(of_d)>(place.m + lane, 32, place.rows - lane,
                                                         place.n + col,
                                                         min(place.cols - col, kCols), strip);
            };
            // As the operands are, or as the sums.
            if constexpr (std::is_floating_point_v<Acc> && !std::is_same_v<Element, Acc>) {
                if (params.args.d.dtype == Numbers::kDType) {
                    store(Element());
                    continue;
                }
            }
            store(Acc());
        }
    }

   private:
    using Its = Loaded<Numbers>;
    static constexpr int kItem = sizeof(Element);
    static constexpr int kNeighbours = std::min(whole_k::kVectorBytes / kItem, 8);  // along k
    static constexpr int kRows = kShape.rows / 32;
    static constexpr int kCols = 4;  // that are multiplied and stored together
    using ColumnsOfB = device::Vector<Acc, kCols>;
    static constexpr int kGroups = kShape.cols / kCols;

    __device__ __forceinline__ static Acc value(const unsigned char* from) {
        return Its::value(Its::from(reinterpret_cast<const Element*>(from)));
    }

    // B as it is multiplied, columns side by side, so that a lane reads those of a k at once. What
    // lies outside makes sums that are never stored.
    __device__ __forceinline__ static void stage_columns(const whole_k::Params& params,
                                                         const unsigned char* shared,
                                                         const whole_k::Image& b,
                                                         ColumnsOfB* staged) {
        const auto k = static_cast<int>(params.args.k);
        const int col = static_cast<int>(threadIdx.x) % kShape.cols;
        const unsigned char* const column = shared + b.data + min(col, b.outer - 1) * b.outer_step;
        auto* const to = reinterpret_cast<Acc*>(staged) + col;
#pragma unroll 2
        for (int step = static_cast<int>(threadIdx.x) / kShape.cols; step < k;
             step += 32 / kShape.cols) {
            to[step * kShape.cols] = value(column + step * b.k_step);
        }
        __syncwarp();
    }
    // A k of a column, and of the columns from `col` on.
    __device__ __forceinline__ static auto k_of_column(const unsigned char* shared,
                                                       const whole_k::Image& b, int col) {
        return [column = shared + b.data + col * b.outer_step, step_bytes = b.k_step](int step) {
            return device::Vector<Acc, 1>{value(column + step * step_bytes)};
        };
    }
    __device__ __forceinline__ static auto k_of_columns(const ColumnsOfB* staged, int col) {
        return [columns = staged + col / kCols](int step) { return columns[step * kGroups]; };
    }

    // The first kItsRows of the lane's rows, 32 apart, by what `columns` gives of B for a k.
    template <int kItsRows, class Columns>
    __device__ __forceinline__ static void multiply(const whole_k::Params& params,
                                                    const unsigned char* shared,
                                                    const whole_k::Image& a, const Columns& columns,
                                                    Acc (&acc)[kRows][kCols]) {
        const whole_k::ImageLayout& layout = params.a;
        const unsigned char* of_a[kItsRows];
        int swizzle[kItsRows];
#pragma unroll
        for (int i = 0; i < kItsRows; ++i) {
            const int at = min(static_cast<int>(threadIdx.x) + 32 * i, a.outer - 1) * a.outer_step;
            of_a[i] = shared + a.data + at;
            swizzle[i] = layout.flipped(at / whole_k::kVectorBytes) * whole_k::kVectorBytes;
        }
        const auto multiply_by = [&](const Acc(&its_a)[kItsRows], int step) {
            const auto its_b = columns(step);
            constexpr int kCount = sizeof(its_b) / sizeof(Acc);
#pragma unroll
            for (int j = 0; j < kCount; ++j) {
#pragma unroll
                for (int i = 0; i < kItsRows; ++i) {
                    multiply_add(acc[i][j], its_a[i], its_b.element[j]);
                }
            }
        };
        const auto k = static_cast<int>(params.args.k);
        const bool vectors = layout.along_k && layout.alignment == whole_k::kVectorBytes;
        int step = 0;
#pragma unroll(8 / kNeighbours)
        for (; vectors && step + kNeighbours <= k; step += kNeighbours) {
            using Vector = device::Vector<Element, kNeighbours>;
            Vector along_k[kItsRows];
#pragma unroll
            for (int i = 0; i < kItsRows; ++i) {
                along_k[i] =
                    *reinterpret_cast<const Vector*>(of_a[i] + (step * kItem ^ swizzle[i]));
            }
#pragma unroll
            for (int e = 0; e < kNeighbours; ++e) {
                Acc its_a[kItsRows];
#pragma unroll
                for (int i = 0; i < kItsRows; ++i) {
                    its_a[i] = Its::value(Its::from(&along_k[i].element[e]));
                }
                multiply_by(its_a, step + e);
            }
        }
#pragma unroll 4
        for (; step < k; ++step) {
            Acc its_a[kItsRows];
#pragma unroll
            for (int i = 0; i < kItsRows; ++i) its_a[i] = value(of_a[i] + step * a.k_step);
            multiply_by(its_a, step);
        }
    }
};

}  // namespace tcgemm::simt
