// Packing across the source: outer neighbours are neighbours there, at any address, so that the
// pass transposes. Threads read vectors of the source's lines and write words of the target's into
// shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/device/realign.cuh"
#include "kernels/device/vector.cuh"
#include "pack/args.hpp"
#include "pack/convert.cuh"
#include "pack/gather.cuh"

namespace tcgemm::pack {

// A block's tile. A warp reads 128 neighbouring bytes of each of 4 or more lines at once, a thread
// 16 bytes of as many lines as elements make a word of the target.
template <class From, class To>
struct AcrossTile {
    static constexpr int kReadBytes = 16;
    static constexpr int kElements = kReadBytes / static_cast<int>(sizeof(From));  // of a read
    static constexpr int kLines = sizeof(To) < 4 ? 4 / static_cast<int>(sizeof(To)) : 1;
    static constexpr int kBeside = 8;  // threads along a line
    static constexpr int kOuter = kBeside * kElements;
    static constexpr int kStep = kThreads / kBeside * kLines;  // lines that a block reads at once
    static constexpr int steps() {
        int steps = 4 / kLines;  // all in flight at once
        while (steps > 1 && kOuter * kStep * steps * static_cast<int>(sizeof(To)) > 32 << 10) {
            steps /= 2;
        }
        return steps;
    }
    static constexpr int kSteps = steps();
    static constexpr int kInner = kStep * kSteps;
    static constexpr int kWriteVector = 16 / static_cast<int>(sizeof(To));
    static constexpr int kSharedBytes = kOuter * kInner * static_cast<int>(sizeof(To));

    // Vectors of a row change places, so that what a warp writes spreads over the banks.
    static __device__ __forceinline__ int at(int outer, int inner) {
        const int swizzle = outer / kElements % kBeside * kWriteVector;
        return outer * kInner + (inner ^ swizzle);
    }
};

// Reads whole blocks of 16 aligned bytes that hold an element, and shifts them into place. Lines
// behind the last one stand for padding.
template <class From, class To, class Tile, bool kAligned>
__device__ __forceinline__ void read_across(const OperandArgs& args, const From* source,
                                            const TilePlace& place, To* tile) {
    constexpr int kBytes = Tile::kReadBytes, kReads = Tile::kSteps * Tile::kLines;
    using Read = device::Words<kBytes / 4>;
    using Word = device::Vector<To, Tile::kLines>;
    const int outer = threadIdx.x % Tile::kBeside * Tile::kElements;
    const int inner = threadIdx.x / Tile::kBeside * Tile::kLines;
    const int count = min(place.outer_left - outer, Tile::kElements);  // that are there
    if (count <= 0) return;
    source += place.inner0 * args.source_inner_stride + place.outer0 + outer;
    const auto line = [&](int step, int i) {
        const int its = min(inner + step * Tile::kStep + i, place.inner_left - 1);
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
#pragma unroll
        for (int e = 0; e < Tile::kElements; ++e) {
            Word word;
#pragma unroll
            for (int i = 0; i < Tile::kLines; ++i) word.element[i] = convert<To>(value[i][e]);
            *reinterpret_cast<Word*>(&tile[Tile::at(outer + e, inner + step * Tile::kStep)]) = word;
        }
    }
}

template <class From, class To>
__device__ __forceinline__ void pack_across(const OperandArgs& args, std::int64_t index,
                                            const From* source, To* target, void* shared) {
    using Tile = AcrossTile<From, To>;
    pack_tile<Tile>(args, index, target, shared, [&](const TilePlace& place, To* tile) {
        if (args.is_aligned) {
            read_across<From, To, Tile, true>(args, source, place, tile);
        } else {
            read_across<From, To, Tile, false>(args, source, place, tile);
        }
    });
}

}  // namespace tcgemm::pack
