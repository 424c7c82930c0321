// Packing where inner neighbours are neighbours in the source too, at any address: rows of odd
// length begin anywhere. A thread reads the aligned words around its elements and shifts them into
// place in registers; neighbours in a warp read and write neighbouring memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/device/ptx/opaque.cuh"
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

// A tile of whole rows or a part of one: up to kInFlight units of each thread, counted from the
// tile's first, all rows on end.
template <class From, class To>
class RowsTile {
    using Unit = RowsUnit<From, To>;
    using Read = device::Words<Unit::kWords>;
    using Write = device::Vector<To, Unit::kElements>;

   public:
    // Tile `index` of a batch, whose matrices begin at `source` and `target`.
    __device__ __forceinline__ RowsTile(const OperandArgs& args, unsigned index, const From* source,
                                        To* target)
        : args_(args), count_(index + 1 < args.tiles ? args.tile_units : args.last_units) {
        const std::uint64_t first = std::uint64_t{index} * args.tile_units;
        // A division of 64 bits takes as long as a unit.
        const auto first_row =
            static_cast<int>(first >> 31 == 0 ? args.by_units.divide(static_cast<unsigned>(first))
                                              : first / static_cast<unsigned>(args.units));
        in_first_row_ = static_cast<int>((first_row + 1u) * args.units - first);
        from_ = reinterpret_cast<const char*>(source) + first * Unit::kReadBytes +
                std::int64_t{first_row} * args.source_skip;
        to_ = reinterpret_cast<char*>(target) + first * sizeof(Write) +
              std::int64_t{first_row} * args.target_skip;
    }

    template <bool kAligned>
    __device__ __forceinline__ void pack() const {
        constexpr int kMost = kAligned ? Unit::kInFlight : Unit::kInFlightUnaligned;
        pack<kAligned, kMost>();
    }

   private:
    // kInFlight or fewer units of a thread: in half as many instructions where half is enough.
    template <bool kAligned, int kInFlight>
    __device__ __forceinline__ void pack() const {
        if constexpr (kInFlight > 1) {
            if (args_.tile_units <= kInFlight / 2 * kThreads) {
                pack<kAligned, kInFlight / 2>();
                return;
            }
        }
        int thread = threadIdx.x;
        Read low[kInFlight], high[kAligned ? 1 : kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
            // Threads behind the end read the last unit again and write nothing.
            const int i = min(j * kThreads + thread, count_ - 1), its_row = row(i);
            const int behind_last =
                i + 1 + args_.padding_units - (in_first_row_ + its_row * args_.units);
            const char* const unit = source(i - max(behind_last, 0), its_row);
            if constexpr (kAligned) {
                low[j] = *reinterpret_cast<const Read*>(unit);
            } else {
                const unsigned shift = reinterpret_cast<std::uintptr_t>(unit) % Unit::kReadBytes;
                const Read* const words = reinterpret_cast<const Read*>(unit - shift);
                low[j] = *words;
                // Only blocks that hold an element of the row are read.
                const bool ends = behind_last >= 0 && shift + args_.last_bytes <= Unit::kReadBytes;
                high[j] = *(ends ? words : words + 1);
            }
        }
        // Where the units lie is computed again: kept, it would cost registers.
        thread = device::ptx::opaque(thread);
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
            const int i = j * kThreads + thread, its_row = row(i);
            if (i >= count_) break;
            if constexpr (!kAligned) {
                const unsigned shift =
                    static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from_)) +
                    static_cast<unsigned>(its_row) * static_cast<unsigned>(args_.source_skip);
                low[j] = device::realign<sizeof(From)>(low[j], high[j], shift % Unit::kReadBytes);
            }
            From value[Unit::kElements];
            static_assert(sizeof(value) == sizeof(low[j]));
            memcpy(value, &low[j], sizeof(value));
            Write rounded;
#pragma unroll
            for (int k = 0; k < Unit::kElements; ++k) rounded.element[k] = convert<To>(value[k]);
            *reinterpret_cast<Write*>(to_ + i * static_cast<int>(sizeof(Write)) +
                                      std::int64_t{its_row} * args_.target_skip) = rounded;
        }
    }

    // Where unit i is, in this row.
    __device__ __forceinline__ const char* source(int i, int row) const {
        return from_ + i * Unit::kReadBytes + std::int64_t{row} * args_.source_skip;
    }
    // Rows between the first unit and unit i. No division: i is below 2^11, so that the product
    // with the inverse errs by less than 2^-20 of a row.
    __device__ __forceinline__ int row(int i) const {
        const unsigned behind = static_cast<unsigned>(i - in_first_row_);
        return i < in_first_row_ ? 0
                                 : 1 + static_cast<int>(__umulhi(2 * behind, args_.units_inverse));
    }

    const OperandArgs& args_;
    int count_;
    int in_first_row_;  // units from the first to the end of its row
    // Unit i lies i units and row(i) skips behind these.
    const char* from_;
    char* to_;
};

}  // namespace tcgemm::pack
