// The main loop of FP64, whose elements ldmatrix does not know: a k-block is what one instruction
// takes, and fragments are loaded piece by piece while the ones before them are multiplied.
#pragma once

#include "kernels/sm80_mma/block_scales.cuh"
#include "kernels/sm80_mma/pipeline.cuh"

namespace tcgemm::sm80_mma {

// A warp's part of a k-block of A (or of B): where it lies, and how it comes into registers.
template <class Mma, class Tile, Major major>
class FragmentsF64 {
   public:
    // `mn`: the warp's first row of A or column of B within the block's tile, `first_k` its first
    // k.
    __device__ FragmentsF64(int mn, int first_k) {
        const int lane = threadIdx.x % 32, along = lane / 4, k = first_k + lane % 4;
        offset_ =
            ptx::opaque(major == Major::k ? Tile::offset(mn + along, k / 2) + k % 2 * 8
                                          : Tile::offset(k, (mn + along) / 2) + along % 2 * 8);
    }

    // 16 rows (columns), the i-th of the warp.
    __device__ __forceinline__ void load(std::uint32_t tile, int i,
                                         typename Mma::Fragment& fragment) const {
        const std::uint32_t base = tile + offset_;
#pragma unroll
        for (int quad = 0; quad < Mma::kK / 4; ++quad) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {  // 8 rows (columns)
                fragment[2 * quad + half] = ptx::load_shared_f64(
                    major == Major::k ? (base ^ quad * 32) + (i * 16 + half * 8) * Tile::kRowBytes
                                      : (base ^ half * 64) + i * 128 + quad * 4 * Tile::kRowBytes);
            }
        }
    }

   private:
    std::uint32_t offset_;
};

// Fragments of 16 k are long: beside the sums there are registers for all of B once and for two
// rows of A. Each is loaded as soon as the multiplications before have read its registers: of A a
// row ahead, of B during the last row for the next k-block; but the last pair, which that row needs
// to its end, when the next k-block has begun.
template <class Policy>
class MainloopF64 {
    using S = Shape<Policy>;
    using Mma = typename S::Mma;
    static constexpr int kMmasM = S::kMmasM, kMmasN = S::kMmasN, kPairsN = kMmasN / 2;
    // A stage is passed while fragments of it are still to be loaded, so that the one before is
    // overwritten next: copies are a ring less two stages ahead.
    static constexpr int kAhead = Policy::kStages - 2;
    static_assert(Policy::tile.block_k == Mma::kK * S::kWarpsK && kMmasM % 2 == 0 && kMmasN >= 4);

    // What a warp does beside its multiplications, by their number in a k-block. All copies are
    // started, two by two, before the stage is passed; the wait for the next k-block stands before
    // the last row, which loads its first fragments.
    static constexpr int kPassAt = kMmasM * kMmasN * 3 / 8, kWaitAt = (kMmasM - 1) * kMmasN;
    static_assert(kPassAt < kWaitAt);
    static constexpr int copy_at(int copy) { return copy / 2 * 2 * kPassAt / Ring::kVectors; }

   public:
    using Sums = typename S::Sums;
    // Sums leave few registers for addresses.
    using Ring = CopyRing<Policy, kAhead, false>;

    // The warp's part of the tile begins at row `warp_m`, column `warp_n`; it is the `warp_k`-th
    // of those that share its k.
    __device__ MainloopF64(const Ring& ring, int warp_m, int warp_n, int warp_k)
        : ring_(ring),
          fragments_a_(warp_m, warp_k * Mma::kK),
          fragments_b_(warp_n, warp_k * Mma::kK) {}

    __device__ __forceinline__ void run(Sums& sums, NoBlockScales) {
        const int blocks = ring_.blocks();
        if (blocks == 0) return;
        ring_.fill();
        int read = 0, write = Ring::kFirstWrite;
        load_a(read, 0);
#pragma unroll
        for (int pair = 0; pair < kPairsN - 1; ++pair) load_b(read, pair);
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            ring_.begin_copies(write, block + kAhead);
            bool is_next_here = false;
            int ahead = read;
#pragma unroll
            for (int i = 0; i < kMmasM; ++i) {
                const bool is_last = i == kMmasM - 1;
#pragma unroll
                for (int j = 0; j < kMmasN; ++j) {
                    const int number = i * kMmasN + j;
                    if (number == kWaitAt) {
                        ahead = Ring::next(read);
                        if (!is_next_here) ring_.wait_until_passed(block);
                    }
                    if (j == 1) load_a(is_last ? ahead : read, (i + 1) % kMmasM);
                    if (i == 0 && j == 1) load_b(read, kPairsN - 1);
                    // One multiplication behind the last by the pair: its registers are read.
                    if (is_last && j % 2 == 1 && j > 1) load_b(ahead, (j - 3) / 2);
#pragma unroll
                    for (int v = 0; v < Ring::kVectors; ++v) {
                        if (copy_at(v) == number) ring_.copy(write, v);
                    }
                    if (number == kPassAt) {
                        ring_.pass_stage();
                        write = Ring::next(write);
                    }
                    if (number == kWaitAt - 1) is_next_here = ring_.is_passed(block);
                    Mma::multiply(sums[i][j], a_[i % 2], b_[j / 2], j % 2);
                }
            }
            read = ahead;
        }
        ptx::wait_for_copies<0>();  // shared memory is used again
    }

   private:
    __device__ __forceinline__ void load_a(int stage, int i) {
        fragments_a_.load(ring_.a(stage), i, a_[i % 2]);
    }
    __device__ __forceinline__ void load_b(int stage, int pair) {
        fragments_b_.load(ring_.b(stage), pair, b_[pair]);
    }

    Ring ring_;
    FragmentsF64<Mma, typename S::TileA, Policy::a_major> fragments_a_;
    FragmentsF64<Mma, typename S::TileB, Policy::b_major> fragments_b_;
    typename Mma::Fragment a_[2], b_[kPairsN];
};

}  // namespace tcgemm::sm80_mma
