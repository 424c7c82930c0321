// Packing across the source: outer neighbours are neighbours there, at any address, so that the
// pass transposes. Threads read vectors of the source's lines and write words of the target's into
// shared memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/device/realign.cuh"
#include "kernels/device/vector.cuh"
#include "pack/args.hpp"
#include "pack/convert.cuh"
#include "pack/gather.cuh"
#include "pack/pack.hpp"

namespace tcgemm::pack {

// A block's tile. A thread reads 16 bytes of as many lines as elements make a word of the target;
// up to 8 lie beside each other, so that a warp reads 128 neighbouring bytes of each of 4 or more
// lines at once. There are no more than a line has elements for.
template <class From, class To, class LogBeside = int>
struct AcrossTile {
    static constexpr int kReadBytes = kTransposedVector;
    static constexpr int kElements = kReadBytes / static_cast<int>(sizeof(From));  // of a read
    static constexpr int kLines = sizeof(To) < 4 ? 4 / static_cast<int>(sizeof(To)) : 1;
    static constexpr int steps() {
        int steps = 4 / kLines;  // all in flight at once
        while (steps > 1 && steps * kThreads * kElements * kLines * sizeof(To) > 32 << 10) {
            steps /= 2;
        }
        return steps;
    }
    static constexpr int kSteps = steps();
    static constexpr int kVectorElements = kThreads * kElements * kLines * kSteps;
    static constexpr int kWriteVector = 16 / static_cast<int>(sizeof(To));
    static constexpr int kSharedBytes = kVectorElements * static_cast<int>(sizeof(To));

    // So that a row has no more vectors than there are threads.
    static constexpr int kLeastLogBeside = kLines * kSteps > kWriteVector ? 1 : 0;

    LogBeside log_beside;  // narrow tiles: an int, and what is aligned read as any

    __host__ __device__ int outer() const { return kElements << log_beside; }
    // Lines that a block reads at once, and of the tile.
    __host__ __device__ int step() const { return kThreads * kLines >> log_beside; }
    __host__ __device__ int inner() const { return step() * kSteps; }
    // Vectors of a row change places, so that what a warp writes spreads over the banks.
    __device__ __forceinline__ int at(int outer, int inner) const {
        const int beside = outer / kElements & ((1 << log_beside) - 1);
        const int swizzle = beside * (kWriteVector << kLogMostBeside) >> log_beside;
        return outer * this->inner() + (inner ^ swizzle);
    }
};

// Reads whole blocks of 16 aligned bytes that hold an element, and shifts them into place. Lines
// behind the last one stand for padding.
template <class From, class To, class Tile, bool kAligned>
__device__ __forceinline__ void read_across(const OperandArgs& args, const From* source,
                                            const Tile& tile, const TilePlace& place, To* shared) {
    constexpr int kBytes = Tile::kReadBytes, kReads = Tile::kSteps * Tile::kLines;
    using Read = device::Words<kBytes / 4>;
    using Word = device::Vector<To, Tile::kLines>;
    const int beside = 1 << tile.log_beside;
    const int outer = (threadIdx.x & (beside - 1)) * Tile::kElements;
    const int inner = (threadIdx.x >> tile.log_beside) * Tile::kLines;
    const int count = min(place.outer_left - outer, Tile::kElements);  // that are there
    if (count <= 0) return;
    source += place.inner0 * args.source_inner_stride + place.outer0 + outer;
    const auto line = [&](int step, int i) {
        const int its = min(inner + step * tile.step() + i, place.inner_left - 1);
        return reinterpret_cast<const char*>(source + its * args.source_inner_stride);
    };
    const auto shift_of = [](const char* address) {
        return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(address) % kBytes);
    };
    Read low[kReads], high[kAligned ? 1 : kReads];
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
        const char* const its = line(i / Tile::kLines, i % Tile::kLines);
        const unsigned shift = kAligned ? 0 : shift_of(its);
        const auto* const words = reinterpret_cast<const Read*>(its - shift);
        low[i] = words[0];
        if constexpr (!kAligned) {
            const bool ends = shift + count * static_cast<int>(sizeof(From)) <= kBytes;
            high[i] = words[ends ? 0 : 1];
        }
    }
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
        From value[Tile::kLines][Tile::kElements];
#pragma unroll
        for (int i = 0; i < Tile::kLines; ++i) {
            Read& its = low[step * Tile::kLines + i];
            if constexpr (!kAligned) {
                its = device::realign<sizeof(From)>(its, high[step * Tile::kLines + i],
                                                    shift_of(line(step, i)));
            }
            memcpy(value[i], &its, sizeof(its));
        }
        To* const to = &shared[tile.at(outer, inner + step * tile.step())];
#pragma unroll
        for (int e = 0; e < Tile::kElements; ++e) {
            Word word;
#pragma unroll
            for (int i = 0; i < Tile::kLines; ++i) word.element[i] = convert<To>(value[i][e]);
            *reinterpret_cast<Word*>(to + e * tile.inner()) = word;
        }
    }
}

template <class From, class To>
__device__ __forceinline__ void pack_across(const OperandArgs& args, std::int64_t index,
                                            const From* source, To* target, void* shared) {
    const auto pack = [&](auto log_beside) {
        using Tile = AcrossTile<From, To, decltype(log_beside)>;
        constexpr bool kMayBeAligned = !std::is_same_v<decltype(log_beside), int>;
        const Tile tile = {log_beside};
        pack_tile(args, tile, index, target, shared, [&](const TilePlace& place, To* its) {
            if (kMayBeAligned && args.is_aligned) {
                read_across<From, To, Tile, kMayBeAligned>(args, source, tile, place, its);
            } else {
                read_across<From, To, Tile, false>(args, source, tile, place, its);
            }
        });
    };
    if (args.log_beside < kLogMostBeside) {
        pack(args.log_beside);
    } else {
        pack(std::integral_constant<int, kLogMostBeside>());
    }
}

}  // namespace tcgemm::pack
