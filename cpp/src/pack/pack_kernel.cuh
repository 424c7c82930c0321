// The pass of packing: reads one or two operands of any strides, rounds them and writes them with
// neighbouring elements in vectors. Memory bound: each element is read and written once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "kernels/device/launch.cuh"
#include "pack/args.hpp"
#include "pack/gather.cuh"
#include "pack/rows.cuh"

namespace tcgemm::pack {

// Blocks of an SM: enough that their reads fill the memory's latency.
inline constexpr int kBlocksPerSm = 4;

template <class From, class To>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    pack_kernel(const __grid_constant__ KernelArgs args) {
    extern __shared__ __align__(16) unsigned char shared[];
    device::release_successor();
    device::wait_for_predecessor();
    for (std::int64_t tile = blockIdx.x; tile < args.all_tiles; tile += gridDim.x) {
        const bool second = tile >= args.first_tiles;
        const OperandArgs& operand = args.operand[second];
        std::int64_t index = second ? tile - args.first_tiles : tile;  // in its batch
        const From* source = static_cast<const From*>(operand.source);
        To* target = static_cast<To*>(operand.target);
        if (operand.batch.count > 1) {
            const std::int64_t batch = index / operand.tiles;
            index -= batch * operand.tiles;
            source += batch_offset(operand.batch, operand.source_batch_stride, batch);
            target += batch_offset(operand.batch, operand.target_batch_stride, batch);
        }
        if (operand.path == Path::gather) {
            pack_gathered(operand, index, source, target, shared);
        } else if constexpr (RowsUnit<From, To>::kUsable) {
            if (operand.path == Path::aligned_rows) {
                pack_rows<From, To, true>(operand, index, source, target);
            } else {
                pack_rows<From, To, false>(operand, index, source, target);
            }
        }
    }
}

// Chooses how an operand is packed, and how many tiles that takes.
template <class From, class To>
void plan_tiles(OperandArgs& args) {
    using Unit = RowsUnit<From, To>;
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    if (args.batch.count == 0 || args.outer == 0 || args.inner == 0) return;
    if (Unit::kUsable && (args.source_inner_stride == 1 || args.inner == 1)) {
        if (args.outer == 1) args.source_outer_stride = args.target_outer_stride = 0;
        bool aligned = reinterpret_cast<std::uintptr_t>(args.source) % Unit::kReadBytes == 0 &&
                       args.source_outer_stride % Unit::kElements == 0;
        for (int dim = 0; dim < args.batch.rank; ++dim) {
            aligned = aligned && args.source_batch_stride[dim] % Unit::kElements == 0;
        }
        args.path = aligned ? Path::aligned_rows : Path::rows;
        args.units = ceil_div(args.inner, Unit::kElements);
        args.source_skip = args.source_outer_stride * static_cast<int>(sizeof(From)) -
                           args.units * Unit::kReadBytes;
        args.target_skip = (args.target_outer_stride - args.units * Unit::kElements) *
                           static_cast<int>(sizeof(To));
        args.last_bytes = static_cast<int>(args.inner - (args.units - 1) * Unit::kElements) *
                          static_cast<int>(sizeof(From));
        args.units_inverse =
            static_cast<std::uint32_t>(ceil_div(std::int64_t{1} << 31, args.units));
        // Small operands spread over all SMs instead of many units to a thread.
        constexpr std::int64_t kManyTiles = 264;
        int in_flight = aligned ? Unit::kInFlight : Unit::kInFlightUnaligned;
        const std::int64_t all = args.units * args.outer * args.batch.count;
        while (in_flight > 1 && all < kManyTiles * in_flight * kThreads) in_flight /= 2;
        args.tile_units = in_flight * kThreads;
        args.tiles = ceil_div(args.units * args.outer, args.tile_units);
    } else {
        using Tile = GatherTile<From, To>;
        args.path = Path::gather;
        args.tiles_inner = ceil_div(args.inner, Tile::kInner);
        args.tiles = args.tiles_inner * ceil_div(args.outer, Tile::kOuter);
        args.along_outer = std::abs(args.source_outer_stride) < std::abs(args.source_inner_stride);
        args.step = args.along_outer ? kThreads / Tile::kOuter * args.source_inner_stride
                                     : kThreads / Tile::kInner * args.source_outer_stride;
    }
}

template <class From, class To>
void launch_pack(KernelArgs args, StreamView stream) {
    std::size_t shared_bytes = 0;
    for (OperandArgs& operand : args.operand) {
        plan_tiles<From, To>(operand);
        if (operand.path == Path::gather && operand.tiles > 0) {
            shared_bytes = GatherTile<From, To>::kSharedBytes;
        }
    }
    const auto tiles = [](const OperandArgs& o) { return o.tiles * o.batch.count; };
    args.first_tiles = tiles(args.operand[0]);
    args.all_tiles = args.first_tiles + tiles(args.operand[1]);
    if (args.all_tiles == 0) return;
    constexpr std::int64_t kMaxGrid = (std::int64_t{1} << 31) - 1;
    const device::LaunchConfig config{
        dim3(static_cast<unsigned>(std::min(args.all_tiles, kMaxGrid))),
        kThreads,
        shared_bytes,
        stream,
        1,
        true};
    device::launch("pack", pack_kernel<From, To>, config, args);
}

}  // namespace tcgemm::pack
