// Host entry points between the translation units of this family.
#pragma once

#include "kernels/kernel_info.hpp"
#include "kernels/sm90_wgmma/params.hpp"
#include "kernels/sm90_wgmma/policy.hpp"

namespace tcgemm::sm90_wgmma {

// Launches Row's kernel for one pair of layouts. Instantiated in layout_*.cu.
template <class Row, Major A, Major B>
void launch_layout(const Params& params, unsigned blocks, StreamView stream);

// How the tiles of a product are dealt out; a pure function of what is given.
struct Arrangement {
    std::int64_t tiles_m, tiles_n, k_blocks;
    int cluster;                                                 // blocks along M that share B
    std::int64_t slots(std::int64_t batches, int parts) const {  // of partial sums, in tiles
        return tiles_m * tiles_n * batches * parts;
    }
};
Arrangement arrange(const TileConfig& tile, std::int64_t m, std::int64_t n, std::int64_t k,
                    int split_k);

// The workspace of a split product: flags, then partial sums.
std::size_t split_workspace_bytes(const TileConfig& tile, const Arrangement& arrangement,
                                  std::int64_t batches, int split_k);

struct Prepared {
    Params params;
    unsigned blocks;
};
// All that a kernel needs but its code. `sm_count`: of the current device.
Prepared prepare(const TileConfig& tile, const GemmArgs& args, const Schedule& schedule,
                 Major a_major, Major b_major, int sm_count);

}  // namespace tcgemm::sm90_wgmma
