// D = epilogue(A B) with a short K: a block brings all of K that its tile needs, while it
// multiplies and stores the tile before. Batches of small matrices, and long thin ones, are many
// such tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/device/fast_divisor.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/epilogue/staged_rows.cuh"
#include "kernels/halves.hpp"
#include "kernels/split_k/tile_place.cuh"
#include "kernels/whole_k/operand_image.cuh"
#include "kernels/whole_k/whole_k.hpp"

namespace tcgemm::whole_k {

struct Params {
    GemmArgs args;
    device::BasicTileScheduler<device::FastDivisor> tiles;
    ImageLayout a, b;
    int rows;         // of a tile
    int stage_bytes;  // of shared memory; there are two
};

#if defined(__CUDA_ARCH__)
inline constexpr int kMostBlocksOnSm = most_blocks_on_sm(__CUDA_ARCH__ / 10);
#else
inline constexpr int kMostBlocksOnSm = most_blocks_on_sm(0);
#endif

// Math: the sums of the tile, as they are spread over the lanes of its warp.
template <class Math, class Epilogue>
__global__ void __launch_bounds__(32, std::min(Math::kShape.blocks_per_sm, kMostBlocksOnSm))
    whole_k_kernel(const __grid_constant__ Params params,
                   const __grid_constant__ Epilogue epilogue) {
    using Element = typename Math::Element;
    constexpr int kRows = Math::kShape.rows, kCols = Math::kShape.cols;
    using Place = device::TilePlace<kRows, kCols>;
    extern __shared__ __align__(16) unsigned char shared[];
    const GemmArgs& args = params.args;
    const int k = static_cast<int>(args.k);
    const auto count = static_cast<unsigned>(params.tiles.count());
    int coming = 0, here = params.stage_bytes;  // in shared memory
    Place place, next;
    const Element *from_a, *from_b;  // of the next tile
    const auto find_next = [&](unsigned tile) {
        const device::Tile its = params.tiles.tile(tile);
        next = Place(its, args, KRange{});
        if constexpr (Math::kShape.lanes_have_rows) {
            next.m = static_cast<std::int64_t>(its.m) * params.rows;
            next.rows = static_cast<int>(min(args.m - next.m, std::int64_t{params.rows}));
        }
        from_a = static_cast<const Element*>(args.a.data) +
                 element_offset(args.batch, args.a, next.batch, next.m, 0);
        from_b = static_cast<const Element*>(args.b.data) +
                 element_offset(args.batch, args.b, next.batch, 0, next.n);
    };
    find_next(blockIdx.x);  // a block has one at least; found while the predecessor still runs
    device::wait_for_predecessor();
    if (!halves::wanted(args.run_if)) return;
    Image a, b;
#pragma unroll 1
    for (unsigned tile = blockIdx.x;; tile += gridDim.x) {
        // 1. The next tile's A and B are on their way, ...
        Image next_a, next_b;
        if (tile < count) {
            if (tile != blockIdx.x) find_next(tile);
            next_a = bring_image<32, Math::kShape.lanes_have_rows>(params.a, shared, from_a,
                                                                   next.rows, k, coming);
            next_b =
                bring_image<32>(params.b, shared, from_b, next.cols, k, coming + params.a.bytes());
        } else {
            device::release_successor();
        }
        end_image_group();

        // 2. ... when this one is multiplied ...
        if (tile != blockIdx.x) {
            wait_for_images();
            __syncwarp();
            if constexpr (Math::kShape.lanes_have_rows) {
                const epilogue::Output<Epilogue> output(epilogue, args, place.batch);
                Math::multiply_and_store(params, shared, a.data, b.data, output, place);
            } else {
                Math math;
                math.multiply(shared, params.a, params.b, a, b, k);
                __syncwarp();

                // 3. ... and stored.
                constexpr int kLd = kCols + 4;  // rows of lanes lie in different banks
                auto* const staged = reinterpret_cast<typename Math::Acc*>(shared + here);
                math.template stage<kLd>(staged);
                __syncwarp();
                const epilogue::Output<Epilogue> output(epilogue, args, place.batch);
                epilogue::store_staged<kRows, kCols, kLd, 2>(output, staged, place.m, place.n,
                                                             place.rows, place.cols);
            }
            __syncwarp();
        }
        if (tile >= count) break;
        place = next;
        a = next_a, b = next_b;
        here = coming;
        coming = params.stage_bytes - coming;
    }
}

}  // namespace tcgemm::whole_k
