// The pass of packing: reads one or two operands of any strides, rounds them and writes them with
// neighbouring elements in vectors. Memory bound: each element is read and written once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/l2.hpp"
#include "core/math.hpp"
#include "kernels/device/launch.cuh"
#include "pack/across.cuh"
#include "pack/args.hpp"
#include "pack/gather.cuh"
#include "pack/pack.hpp"
#include "pack/rows.cuh"
#include "tcgemm/device.hpp"

namespace tcgemm::pack {

// Blocks of an SM: enough that their reads fill the memory's latency.
inline constexpr int kBlocksPerSm = 4;

template <class From, class To>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    pack_kernel(const __grid_constant__ KernelArgs args) {
    extern __shared__ __align__(16) unsigned char shared[];
    // So early: blocks wait before they access memory, and the successor for the end of them all.
    device::release_successor();
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
        // Where the first tile lies is worked out while the predecessor still runs.
        const auto wait = [&] {
            if (tile == blockIdx.x) device::wait_for_predecessor();
        };
        if (operand.path == Path::gather) {
            wait();
            pack_gathered(operand, index, source, target, shared);
        } else if (operand.path == Path::across) {
            wait();
            pack_across(operand, index, source, target, shared);
        } else if constexpr (RowsUnit<From, To>::kUsable) {
            const RowsTile<From, To> rows(operand, static_cast<unsigned>(index), source, target);
            wait();
            if (operand.path == Path::aligned_rows) {
                rows.template pack<true>();
            } else {
                rows.template pack<false>();
            }
        }
    }
}

// Of those that go through shared memory.
template <class Tile>
void count_tiles(OperandArgs& args, const Tile& tile) {
    args.tiles_inner = divide_up(args.inner, tile.inner());
    args.tiles = args.tiles_inner * divide_up(args.outer, tile.outer());
}

// Chooses how an operand is packed.
template <class From, class To>
void choose_path(OperandArgs& args) {
    using Unit = RowsUnit<From, To>;
    if (args.batch.count == 0 || args.outer == 0 || args.inner == 0) return;
    // Memory takes a sector of which a part is not written for a read and a write: rows end with
    // one, where there is room.
    const std::int64_t whole_sectors =
        round_up(args.inner * static_cast<int>(sizeof(To)), kSectorBytes) /
        static_cast<int>(sizeof(To));
    const std::int64_t with_elements = divide_up(args.inner, Unit::kElements);
    const std::int64_t units = std::max(
        with_elements, std::min(whole_sectors, args.target_outer_stride) / Unit::kElements);
    // From behind a row's last unit to the next row, where there is one.
    const auto skip = [&](std::int64_t stride, std::size_t size) {
        const std::int64_t elements = stride - units * Unit::kElements;
        return args.outer > 1 ? elements * static_cast<int>(size) : 0;
    };
    const std::int64_t source_skip = skip(args.source_outer_stride, sizeof(From));
    const std::int64_t target_skip = skip(args.target_outer_stride, sizeof(To));
    // Whether what is read, so many bytes at once, begins at multiples of them in all lines, which
    // lie `stride` bytes apart, and in all matrices.
    const auto reads_aligned = [&](int bytes, std::int64_t stride) {
        bool aligned =
            reinterpret_cast<std::uintptr_t>(args.source) % bytes == 0 && stride % bytes == 0;
        for (int dim = 0; dim < args.batch.rank; ++dim) {
            const std::int64_t matrix =
                args.source_batch_stride[dim] * static_cast<int>(sizeof(From));
            aligned = aligned && matrix % bytes == 0;
        }
        return aligned;
    };
    const auto fits = [](std::int64_t number) { return number == static_cast<int>(number); };
    if (Unit::kUsable && (args.source_inner_stride == 1 || args.inner == 1) && fits(args.outer) &&
        fits(units) && fits(source_skip) && fits(target_skip)) {
        const bool aligned = reads_aligned(Unit::kReadBytes, source_skip);
        args.path = aligned ? Path::aligned_rows : Path::rows;
        args.units = static_cast<int>(units);
        args.padding_units = static_cast<int>(units - with_elements);
        args.source_skip = static_cast<int>(source_skip);
        args.target_skip = static_cast<int>(target_skip);
        args.last_bytes = static_cast<int>(args.inner - (with_elements - 1) * Unit::kElements) *
                          static_cast<int>(sizeof(From));
        args.by_units = device::FastDivisor(units);
        args.units_inverse = static_cast<std::uint32_t>(divide_up(std::int64_t{1} << 31, units));
    } else if (args.source_outer_stride == 1) {
        using Tile = AcrossTile<From, To>;
        args.path = Path::across;
        const std::int64_t stride = args.source_inner_stride * static_cast<int>(sizeof(From));
        args.is_aligned = reads_aligned(Tile::kReadBytes, stride);
        args.log_beside = std::max(Tile::kLeastLogBeside,
                                   log_beside(args.outer * static_cast<int>(sizeof(From))));
        count_tiles(args, Tile{args.log_beside});
    } else {
        using Tile = GatherTile<From, To>;
        args.path = Path::gather;
        count_tiles(args, Tile());
        args.along_outer = std::abs(args.source_outer_stride) < std::abs(args.source_inner_stride);
        args.step = args.along_outer ? kThreads / Tile::kOuter * args.source_inner_stride
                                     : kThreads / Tile::kInner * args.source_outer_stride;
    }
}

// Gives the threads as few units each as lets all blocks run at once, and the most where that is
// not enough; no more than there are in a batch.
template <class From, class To>
void spread_rows(KernelArgs& args) {
    using Unit = RowsUnit<From, To>;
    const int sm_count = properties(Device::cuda(runtime::current_device())).sm_count;
    const std::int64_t threads = std::int64_t{sm_count} * kBlocksPerSm * kThreads;
    std::int64_t units = 0;
    for (const OperandArgs& o : args.operand) units += o.units * o.outer * o.batch.count;
    int of_a_thread = 1;
    while (of_a_thread < Unit::kInFlight && units > threads * of_a_thread) of_a_thread *= 2;
    for (OperandArgs& o : args.operand) {
        if (o.units == 0) continue;
        const std::int64_t in_batch = o.units * o.outer;
        const int most = o.path == Path::aligned_rows ? Unit::kInFlight : Unit::kInFlightUnaligned;
        o.tile_units = kThreads * static_cast<int>(std::min<std::int64_t>(
                                      std::min(of_a_thread, most), divide_up(in_batch, kThreads)));
        o.tiles = divide_up(in_batch, o.tile_units);
        o.last_units = static_cast<int>(in_batch - (o.tiles - 1) * o.tile_units);
    }
}

template <class From, class To>
void launch_pack(KernelArgs args, StreamView stream) {
    for (OperandArgs& operand : args.operand) choose_path<From, To>(operand);
    spread_rows<From, To>(args);
    std::size_t shared_bytes = 0;
    for (const OperandArgs& o : args.operand) {
        if (o.tiles == 0) continue;
        const int its_bytes = o.path == Path::gather   ? GatherTile<From, To>::kSharedBytes
                              : o.path == Path::across ? AcrossTile<From, To>::kSharedBytes
                                                       : 0;
        shared_bytes = std::max(shared_bytes, static_cast<std::size_t>(its_bytes));
    }
    const auto tiles = [](const OperandArgs& o) { return o.tiles * o.batch.count; };
    args.first_tiles = tiles(args.operand[0]);
    args.all_tiles = args.first_tiles + tiles(args.operand[1]);
    if (args.all_tiles == 0) return;
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(std::min(args.all_tiles, device::kMaxGrid));
    config.threads = kThreads;
    config.shared_bytes = shared_bytes;
    config.stream = stream;
    config.overlaps_predecessor = true;
    device::launch("pack", pack_kernel<From, To>, config, args);
}

}  // namespace tcgemm::pack
