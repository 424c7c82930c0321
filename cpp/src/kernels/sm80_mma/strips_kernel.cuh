// D = epilogue(A B) of 16-bit elements at any address: a block brings a step of K of its tile's A
// and B as they lie, and moves them to where ldmatrix can read them. Its warps then multiply strips
// of 16 rows, and behind the last step store them, while the next A and B are on their way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/device/fast_divisor.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/ptx/mma.cuh"
#include "kernels/device/ptx/shared.cuh"
#include "kernels/epilogue/linear.hpp"
#include "kernels/epilogue/staged_rows.cuh"
#include "kernels/sm80_mma/aligned_tile.cuh"
#include "kernels/sm80_mma/strips.hpp"
#include "kernels/split_k/tile_place.cuh"
#include "kernels/whole_k/operand_image.cuh"

namespace tcgemm::sm80_mma {

struct StripsParams {
    GemmArgs args;
    device::BasicTileScheduler<device::FastDivisor> tiles;
    StripsLayout layout;
    KRange split;
};

// Sums of 16 rows of a tile, of a warp.
template <class Element, int kTile>
class Strip {
    using Mma = device::ptx::Mma<Element, Element, float>;
    using Epilogue = epilogue::Linear<float>;
    static constexpr int kSixteens = kTile / kStripRows;
    static_assert(kStripRows == Mma::kM);

   public:
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (auto& sums : sums_) {
#pragma unroll
            for (float& sum : sums) sum = 0;
        }
    }

    __device__ __forceinline__ void multiply(const AlignedTile& a, const AlignedTile& b, int row,
                                             int cols, int k) {
        multiply_columns<kSixteens>(a, b, row, cols, k);
    }

    // To lines of D that are contiguous, wherever they begin: through an image of them. `layout`:
    // with k for columns of D.
    template <class T>
    __device__ __forceinline__ void store_lines(const Epilogue& epilogue, const ImageLayout& layout,
                                                std::uint32_t image, T* d, int rows,
                                                int cols) const {
        image += reinterpret_cast<std::uintptr_t>(d) % kVectorBytes;
        if (layout.along_k) {
            fill_image<T, true>(epilogue, layout, image, rows, cols);
        } else {
            fill_image<T, false>(epilogue, layout, image, rows, cols);
        }
        __syncwarp();
        constexpr int kItem = sizeof(T);
        const int all = layout.along_k ? rows : cols, elements = layout.along_k ? cols : rows;
        const int lines = layout.merged ? 1 : all;
        const int bytes = (layout.merged ? all : 1) * elements * kItem;
        // Lanes for a line: short ones are stored several at a time.
        const int lanes_log2 = layout.merged || bytes > 16 * kVectorBytes ? 5
                               : bytes > 4 * kVectorBytes                 ? 4
                                                                          : 2;
        const int lane = threadIdx.x % 32, its_lane = lane & ((1 << lanes_log2) - 1);
#pragma unroll 1
        for (int i = lane >> lanes_log2; i < lines; i += 32 >> lanes_log2) {
            auto* const line = reinterpret_cast<unsigned char*>(d) + i * layout.line_step;
            const std::uint32_t from = image + i * layout.pitch;
            // Whole vectors, then elements that lie before and behind them.
            const int before = min(static_cast<int>(-from % kVectorBytes), bytes);
            const int behind = before + (bytes - before) / kVectorBytes * kVectorBytes;
#pragma unroll 1
            for (int at = before + its_lane * kVectorBytes; at < behind;
                 at += kVectorBytes << lanes_log2) {
                *reinterpret_cast<uint4*>(line + at) = ptx::load_shared<uint4>(from + at);
            }
#pragma unroll 1
            for (int at = its_lane * kItem;; at += kItem << lanes_log2) {
                const int place = at < before ? at : at + behind - before;
                if (place >= bytes) break;
                *reinterpret_cast<T*>(line + place) = ptx::load_shared<T>(from + place);
            }
        }
    }

    // To any D, through sums side by side.
    template <int kRowsOfC, class Output>
    __device__ __forceinline__ void store(const Output& output, float* staged, std::int64_t row,
                                          std::int64_t col, int rows, int cols) const {
        constexpr int kLd = staged_ld(kTile);
        float* const place = staged + threadIdx.x % 32 / 4 * kLd + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < kTile / 8; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float2*>(place + 8 * half * kLd + 8 * i) =
                    Mma::pair(sums_[i], half);
            }
        }
        __syncwarp();
        epilogue::store_staged<kStripRows, kTile, kLd, 2, kRowsOfC>(output, staged, row, col, rows,
                                                                    cols);
    }

   private:
    // Of D as T, from the image's first element on.
    template <class T, bool kRows>
    __device__ __forceinline__ void fill_image(const Epilogue& epilogue, const ImageLayout& layout,
                                               std::uint32_t image, int rows, int cols) const {
        constexpr int kItem = sizeof(T);
        const int row = threadIdx.x % 32 / 4, col = threadIdx.x % 4 * 2, left = cols - col;
        const int row_step = kRows ? layout.pitch : kItem, col_step = kRows ? kItem : layout.pitch;
        const std::uint32_t place = image + row * row_step + col * col_step;
        const bool in_pairs = kItem == 2 && kRows && (image | layout.pitch) % 4 == 0;
#pragma unroll
        for (int i = 0; i < kTile / 8; ++i) {
            if (8 * i >= cols) break;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float2 sums = Mma::pair(sums_[i], half);
                const std::uint32_t at = place + 8 * half * row_step + 8 * i * col_step;
                // Rows that do not exist have lines of their own, but no places in others.
                const int its_left = kRows || row + 8 * half < rows ? left : 0;
                alignas(4) const T pair[2] = {epilogue::round_to<T>(epilogue(sums.x)),
                                              epilogue::round_to<T>(epilogue(sums.y))};
                if (in_pairs) {
                    if (8 * i < its_left) {
                        ptx::store_shared(at, reinterpret_cast<const std::uint32_t&>(pair));
                    }
                } else {
                    if (8 * i < its_left) ptx::store_shared(at, pair[0]);
                    if (8 * i + 1 < its_left) ptx::store_shared(at + col_step, pair[1]);
                }
            }
        }
    }

    // No more columns than there are, by 16.
    template <int kCount>
    __device__ __forceinline__ void multiply_columns(const AlignedTile& a, const AlignedTile& b,
                                                     int row, int cols, int k) {
        if constexpr (kCount > 1) {
            if (cols <= 16 * (kCount - 1)) {
                multiply_columns<kCount - 1>(a, b, row, cols, k);
                return;
            }
        }
        AlignedFragments<true> of_a(a, row);
        AlignedFragments<false> of_b(b, 0);
#pragma unroll 1
        for (; k > 0; k -= Mma::kK) {
            constexpr int kAtOnce = 4;
            typename Mma::Fragment its_a, its_b[kAtOnce];
            of_a.load(0, its_a);
#pragma unroll
            for (int first = 0; first < kCount; first += kAtOnce) {
#pragma unroll
                for (int j = 0; j < kAtOnce && first + j < kCount; ++j) {
                    of_b.load(first + j, its_b[j]);
                }
#pragma unroll
                for (int j = 0; j < kAtOnce && first + j < kCount; ++j) {
                    Mma::multiply(sums_[2 * (first + j)], its_a, its_b[j], 0);
                    Mma::multiply(sums_[2 * (first + j) + 1], its_a, its_b[j], 1);
                }
            }
            of_a.advance();
            of_b.advance();
        }
    }

    typename Mma::Sums sums_[kTile / 8] = {};
};

// kAnyK: K comes in steps of kMaxK, or a part of it does, and sums are kept from step to step.
// Otherwise it is one step.
template <class Element, int kTile, bool kAnyK>
__global__ void __launch_bounds__(strip_threads(kTile), strip_blocks_on_sm(kTile, kAnyK))
    strips_kernel(const __grid_constant__ StripsParams params,
                  const __grid_constant__ epilogue::Linear<float> epilogue) {
    using Place = device::TilePlace<kTile, kTile>;
    constexpr int kThreads = strip_threads(kTile);
    extern __shared__ __align__(16) unsigned char shared[];
    const GemmArgs& args = params.args;
    const StripsLayout& layout = params.layout;
    const int warp = threadIdx.x / 32, row = warp * kStripRows;  // row: of a tile
    const std::uint32_t base = ptx::shared_address(shared);
    const int image_b = layout.a.bytes(), tile_a = layout.image_bytes();
    const int tile_b = tile_a + layout.aligned_a.bytes();
    const int strip_place = tile_a + warp * layout.strip_bytes;

    const auto count = static_cast<unsigned>(params.tiles.count());
    const auto place_of = [&](unsigned tile) {
        return Place(params.tiles.tile(tile), args, params.split);
    };
    // The tile whose steps are coming: where they are from, and what is kept of each.
    const Element *from_a, *from_b;
    std::int64_t k_left;
    struct Step {
        int rows, cols, k;  // that exist
        int a, b;           // element (0, 0), in shared memory
        std::int64_t d;     // and in global memory
        bool ends;          // it is the tile's last
    };
    Step next;
    const auto begin_tile = [&](unsigned tile) {
        const Place place = place_of(tile);
        const std::int64_t first_k = kAnyK ? place.part * params.split.k_per_split : 0;
        k_left = kAnyK ? min(params.split.k_per_split, args.k - first_k) : args.k;
        from_a = static_cast<const Element*>(args.a.data) +
                 element_offset(args.batch, args.a, place.batch, place.m, first_k);
        from_b = static_cast<const Element*>(args.b.data) +
                 element_offset(args.batch, args.b, place.batch, first_k, place.n);
        next.rows = place.rows;
        next.cols = place.cols;
        next.d = element_offset(args.batch, args.d, place.batch, place.m, place.n) +
                 place.part * params.split.d_stride;
    };
    const auto bring_step = [&] {
        constexpr int kMost = whole_k::kMaxK;
        next.ends = !kAnyK || k_left <= kMost;
        next.k = next.ends ? static_cast<int>(k_left) : kMost;
        next.a =
            whole_k::bring_image<kThreads>(layout.a, shared, from_a, next.rows, next.k, 0).data;
        next.b =
            whole_k::bring_image<kThreads>(layout.b, shared, from_b, next.cols, next.k, image_b)
                .data;
        if constexpr (kAnyK) {
            from_a += kMost * args.a.col_stride;
            from_b += kMost * args.b.row_stride;
            k_left -= kMost;
        }
    };
    Strip<Element, kTile> strip;
    const auto store = [&](const Step& here, unsigned its_tile, int rows) {
        if (layout.has_lines) {
            const auto store_as = [&](auto* d) {
                strip.store_lines(epilogue, layout.d, base + strip_place,
                                  d + here.d + row * args.d.row_stride, rows, here.cols);
            };
            switch (args.d.dtype) {
                case DType::f16: store_as(static_cast<__half*>(args.d.data)); break;
                case DType::bf16: store_as(static_cast<__nv_bfloat16*>(args.d.data)); break;
                default: store_as(static_cast<float*>(args.d.data)); break;
            }
        } else {
            const Place place = place_of(its_tile);
            const epilogue::Output<epilogue::Linear<float>> output(
                epilogue, args, place.batch, place.part * params.split.d_stride);
            // Many blocks of 64 x 64 on an SM leave few registers.
            constexpr int kRowsOfC = kTile > 64 ? 8 : 0;
            strip.template store<kRowsOfC>(output, reinterpret_cast<float*>(shared + strip_place),
                                           place.m + row, place.n, rows, here.cols);
        }
    };
    unsigned tile = blockIdx.x;
    begin_tile(tile);  // while the predecessor still runs
    device::wait_for_predecessor();
    bring_step();
#pragma unroll 1
    while (true) {
        // 1. A and B are moved to where they can be read, ...
        const Step here = next;
        whole_k::wait_for_all_images();
        __syncthreads();
        const AlignedTile a = align_image<kThreads>(layout.aligned_a, layout.a, base + here.a,
                                                    base + tile_a, here.rows, here.k);
        const AlignedTile b = align_image<kThreads>(layout.aligned_b, layout.b, base + here.b,
                                                    base + tile_b, here.cols, here.k);
        __syncthreads();

        // 2. ... the next ones set out, ...
        const unsigned its_tile = tile;
        if (here.ends) tile += gridDim.x;
        const bool goes_on = tile < count;
        if (goes_on) {
            if (here.ends) begin_tile(tile);
            bring_step();
        } else {
            device::release_successor();
        }

        // 3. ... these are multiplied by the warps that have rows, and stored in their place.
        const int rows = min(here.rows - row, kStripRows);
        if (rows <= 0) {
            if (here.ends) __syncthreads();
        } else {
            if (!kAnyK) strip.clear();
            strip.multiply(a, b, row, here.cols, here.k);
            if (here.ends) {
                __syncthreads();
                store(here, its_tile, rows);
                if (kAnyK) strip.clear();
            }
        }
        if (!goes_on) break;
    }
}

}  // namespace tcgemm::sm80_mma
