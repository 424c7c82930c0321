// Which tile of D a block computes. Blocks that run at the same time get tiles that share rows of A
// and columns of B, so that L2 serves most of their loads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.hpp"
#include "kernels/device/divisor.hpp"

namespace tcgemm::device {

struct Tile {
    int m, n;            // in tiles
    std::int64_t slice;  // index of the matrix: a batch, or a batch of a K split
};

// tiles_m x tiles_n tiles in each of `slices` matrices, walked in bands of `band` tile rows, column
// by column: W blocks at work together touch about `band` rows and W / band columns of tiles.
// Divisor: one of device/divisor.hpp or device/fast_divisor.hpp.
template <class Divisor>
class BasicTileScheduler {
   public:
    BasicTileScheduler() = default;
    BasicTileScheduler(std::int64_t tiles_m, std::int64_t tiles_n, std::int64_t slices,
                       std::int64_t band)
        : tiles_m_(static_cast<int>(tiles_m)),
          tiles_n_(static_cast<int>(tiles_n)),
          slices_(slices),
          band_(static_cast<int>(std::min(band, tiles_m))),
          by_slice_(tiles_m * tiles_n),
          by_band_(band_ * tiles_n),
          by_rows_(band_),
          by_last_rows_(tiles_m % band_ > 0 ? tiles_m % band_ : band_) {}

    TCGEMM_HOST_DEVICE std::int64_t count() const {
        return slices_ * (static_cast<std::int64_t>(tiles_m_) * tiles_n_);
    }
    TCGEMM_HOST_DEVICE unsigned per_slice() const {
        return static_cast<unsigned>(tiles_m_) * static_cast<unsigned>(tiles_n_);
    }
    TCGEMM_HOST_DEVICE unsigned slice_of(unsigned index) const { return by_slice_.divide(index); }

    // Index: unsigned where count() fits 31 bits, else std::int64_t, which takes a long division.
    template <class Index>
    TCGEMM_HOST_DEVICE Tile tile(Index index) const {
        constexpr bool kShort = sizeof(Index) == 4;
        const Index tiles = static_cast<Index>(tiles_m_) * static_cast<Index>(tiles_n_);
        Index slice = 0;
        if (slices_ > 1) slice = kShort ? slice_of(static_cast<unsigned>(index)) : index / tiles;
        const auto in_slice = static_cast<unsigned>(index - slice * (kShort ? per_slice() : tiles));
        const unsigned first_row = by_band_.divide(in_slice) * band_;
        const unsigned in_band = in_slice - first_row * tiles_n_;
        const unsigned rows_left = tiles_m_ - first_row;
        const bool whole = rows_left >= static_cast<unsigned>(band_);
        const unsigned rows = whole ? band_ : rows_left;
        const unsigned n = (whole ? by_rows_ : by_last_rows_).divide(in_band);
        return {static_cast<int>(first_row + in_band - n * rows), static_cast<int>(n), slice};
    }

   private:
    int tiles_m_ = 0, tiles_n_ = 0;  // their product fits 31 bits
    std::int64_t slices_ = 0;
    int band_ = 1;  // rows of tiles
    Divisor by_slice_, by_band_, by_rows_, by_last_rows_;
};
using TileScheduler = BasicTileScheduler<Divisor>;

}  // namespace tcgemm::device
