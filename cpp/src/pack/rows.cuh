// Packing where inner neighbours are neighbours in the source too, at any address: rows of odd
// length begin anywhere. A thread reads the aligned words around its elements and shifts them into
// place in registers; neighbours in a warp read and write neighbouring memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/device/realign.cuh"
#include "kernels/device/vector.cuh"
#include "pack/args.hpp"
#include "pack/convert.cuh"

namespace tcgemm::pack {

// What a thread moves at once, a unit: up to 16 bytes on both sides.
template <class From, class To>
struct RowsUnit {
    static constexpr int kWidest = sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To);
    static constexpr int kElements = 16 / kWidest;
    static constexpr int kReadBytes = kElements * static_cast<int>(sizeof(From));
    static constexpr int kWords = kReadBytes / 4;
    static constexpr bool kUsable = kReadBytes % 4 == 0;  // not int8 to double: gathered
    // Units of a thread. All are in flight at once: 128 bytes of registers.
    static constexpr int kInFlight = 8;
    static constexpr int kInFlightUnaligned = 4;  // each reads two
};

// Where a thread's units lie. They are counted from the tile's first, all rows on end.
struct RowsPlace {
    int in_first_row;  // units from the first to the end of its row; more than a tile: any number
    std::uint32_t units, units_inverse;

    // Rows between the first unit and unit i. No division: i is below 2^11, so that the product
    // with the inverse errs by less than 2^-20 of a row.
    __device__ __forceinline__ int row(int i) const {
        const unsigned behind = static_cast<unsigned>(i - in_first_row);
        return i < in_first_row ? 0 : 1 + static_cast<int>(__umulhi(2 * behind, units_inverse));
    }
    __device__ __forceinline__ bool is_last(int i, int row) const {
        return i + 1 == in_first_row + row * static_cast<int>(units);
    }
};

// Tile `index` of a batch, whose matrices begin at `source` and `target`: up to kInFlight units of
// each thread.
template <class From, class To, bool kAligned, int kInFlight>
__device__ __forceinline__ void pack_rows(const OperandArgs& args, std::int64_t index,
                                          const From* source, To* target) {
    using Unit = RowsUnit<From, To>;
    using Read = device::Words<Unit::kWords>;
    using Write = device::Vector<To, Unit::kElements>;

    const std::int64_t first = index * args.tile_units;
    const std::int64_t first_row = first / args.units;
    const int count = static_cast<int>(
        min(args.outer * args.units - first, static_cast<std::int64_t>(args.tile_units)));
    const RowsPlace place{
        static_cast<int>(min((first_row + 1) * args.units - first, std::int64_t{1} << 30)),
        static_cast<std::uint32_t>(args.units), args.units_inverse};
    // Unit i lies i units and row(i) skips behind these.
    const char* const from = reinterpret_cast<const char*>(source) + first_row * args.source_skip +
                             first * Unit::kReadBytes;
    char* const to = reinterpret_cast<char*>(target) + first_row * args.target_skip +
                     first * static_cast<int>(sizeof(Write));

    int thread = threadIdx.x;
    Read low[kInFlight], high[kAligned ? 1 : kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
        // Threads behind the end read the last unit again and write nothing.
        const int i = min(j * kThreads + thread, count - 1), row = place.row(i);
        const char* const unit = from + i * Unit::kReadBytes + row * args.source_skip;
        if constexpr (kAligned) {
            low[j] = *reinterpret_cast<const Read*>(unit);
        } else {
            const unsigned shift = reinterpret_cast<std::uintptr_t>(unit) % Unit::kReadBytes;
            const Read* const words = reinterpret_cast<const Read*>(unit - shift);
            low[j] = *words;
            // Only blocks that hold an element of the row are read.
            const bool ends = place.is_last(i, row) && shift + args.last_bytes <= Unit::kReadBytes;
            high[j] = *(ends ? words : words + 1);
        }
    }
    // Where the units lie is computed again: kept, it would cost registers.
    asm volatile("" : "+r"(thread));
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
        const int i = j * kThreads + thread, row = place.row(i);
        if (i >= count) break;
        if constexpr (!kAligned) {
            const unsigned shift =
                static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from)) +
                static_cast<unsigned>(row) * static_cast<unsigned>(args.source_skip);
            low[j] = device::realign<sizeof(From)>(low[j], high[j], shift % Unit::kReadBytes);
        }
        From value[Unit::kElements];
        static_assert(sizeof(value) == sizeof(low[j]));
        memcpy(value, &low[j], sizeof(value));
        Write rounded;
#pragma unroll
        for (int k = 0; k < Unit::kElements; ++k) rounded.element[k] = convert<To>(value[k]);
        *reinterpret_cast<Write*>(to + i * static_cast<int>(sizeof(Write)) +
                                  row * args.target_skip) = rounded;
    }
}

}  // namespace tcgemm::pack
