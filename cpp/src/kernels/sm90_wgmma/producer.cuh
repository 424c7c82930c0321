// The thread that keeps the ring of stages full: boxes of A and B, as stages become empty.
#pragma once

#include "kernels/device/launch.cuh"
#include "kernels/device/ptx/tma.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

template <class Policy>
class Producer {
   public:
    __device__ Producer(const Params& params, SharedMemory<Policy> shared)
        : params_(params), shared_(shared) {}

    // By a warp, of which one lane does the work. Before meet(), where the block's warps meet, it
    // finds out where its first tile lies; false: there is nothing to do.
    template <class Meet>
    __device__ __forceinline__ void run(const Meet& meet) {
        if (ptx::elect_one()) {
            ptx::prefetch_tensor_map(&params_.a);
            ptx::prefetch_tensor_map(&params_.b);
        }
        if (params_.cluster_log2 == 0) {
            fill<1, 1>(meet);
        } else {
            params_.shares_a ? fill<2, 1>(meet) : fill<1, 2>(meet);
        }
    }

   private:
    // Of A and of B: a half each where the two blocks of a cluster load it for both.
    template <int kSharesA, int kSharesB, class Meet>
    __device__ __forceinline__ void fill(const Meet& meet) {
        WorkList<Policy> list(params_);
        using Loads = TileLoads<kSharesA, kSharesB>;
        Loads tile(params_, list.decode(list.next()));  // a block has one at least
        if (ptx::elect_one()) {                         // of the last tile they may be others
            ptx::prefetch_tensor_map(tile.a.last_map);
            ptx::prefetch_tensor_map(tile.b.last_map);
        }
        if (!meet()) return;
        if (!ptx::elect_one()) return;
        device::wait_for_predecessor();
        for (int index = 0;; ++index) {
            const Work& work = tile.work;
            const bool again = index >= shared_.stages();
            const bool loads_a = !(params_.load_a.stays && again);
            const bool loads_b = !(params_.load_b.stays && again);
            const int block_bytes = (loads_a ? tile.a.bytes : 0) + (loads_b ? tile.b.bytes : 0);
            ptx::TensorCoordinates a, b;
#pragma unroll
            for (int dim = 0; dim < kBatchDims; ++dim) {
                a.batch[dim] = work.batch_index[dim] & params_.load_a.batch_mask[dim];
                b.batch[dim] = work.batch_index[dim] & params_.load_b.batch_mask[dim];
            }
            constexpr int kBlocks = Policy::kBlocksPerStage;
            unsigned stage_k = work.first_block * Policy::kBlockK;
            for (int left = work.blocks; left > 0; left -= kBlocks, at_.advance(shared_),
                     stage_k += work.stage_step * Policy::kBlockK) {
                const std::uint32_t full = shared_.full(at_.stage);
                ptx::wait_for_phase(shared_.empty(at_.stage), at_.parity ^ 1);
                ptx::arrive_and_expect_bytes(full, kBlocks * block_bytes);
#pragma unroll
                for (int block = 0; block < kBlocks; ++block) {  // behind the end of K: zeros
                    const auto k = static_cast<int>(stage_k + block * Policy::kBlockK);
                    if (loads_a) tile.a.run(shared_.a(at_.stage, block), full, a, k, work.m);
                    if (loads_b) tile.b.run(shared_.b(at_.stage, block), full, b, k, work.n);
                }
            }
            if (!list.has_next()) break;
            tile = Loads(params_, list.decode(list.next()));
        }
        if constexpr (kSharesA * kSharesB > 1) {
            // A block may not end while its neighbour writes to it or arrives at its barriers.
            for (int i = 0; i < shared_.stages(); ++i, at_.advance(shared_)) {
                ptx::wait_for_phase(shared_.empty(at_.stage), at_.parity ^ 1);
            }
        }
    }

    // A share of the boxes of a tile: all, or every other one, which go to both blocks.
    template <Major kMajor, int kBlock, int kElementBytes, int kShares>
    struct Load {
        static constexpr int kBox = box_mn(kElementBytes);
        static constexpr int kBoxes =
            kMajor == Major::k ? 1 : divide_up(divide_up(kBlock, kBox), kShares);
        const CUtensorMap *map, *last_map;  // of the last box
        int share, boxes, extent, box_bytes;
        int bytes;  // of a k-block of the tile, of all shares

        // `count`: the tile's rows or columns that the matrix has; not positive: it is behind it.
        __device__ __forceinline__ Load(const CUtensorMap& tensor_map, const CUtensorMap& rest_map,
                                        const BoxPlan& plan, int count, int my_share)
            : map(&tensor_map),
              last_map(map),
              share(my_share),
              boxes(plan.boxes),
              extent(plan.extent),
              box_bytes(extent * kRowBytes) {
            constexpr bool kIsK = kMajor == Major::k;
            const int whole = kIsK ? kShares * extent : boxes * kBox;
            bytes = whole * kRowBytes;
            if (count < whole) {  // the last tile
                constexpr int kUnit = kIsK ? kSwizzledRows : kTensorBytes / kElementBytes;
                const int loaded = max((count + kUnit - 1) & -kUnit, 0);
                bytes = loaded * kRowBytes;
                if constexpr (kIsK) {
                    boxes = (loaded > 0) + (loaded > extent);
                    if (loaded - share * extent < extent) last_map = &rest_map;
                } else {
                    boxes = divide_up(loaded, kBox);
                    if (loaded % kBox == plan.rest) {
                        if (plan.rest > 0) last_map = &rest_map;
                    } else {  // columns of the next tile beside it
                        bytes = boxes * (kBox * kRowBytes);
                    }
                }
            }
        }

        __device__ __forceinline__ void run(std::uint32_t tile, std::uint32_t full,
                                            ptx::TensorCoordinates at, int k, int mn) const {
#pragma unroll
            for (int i = 0; i < kBoxes; ++i) {
                const int box = i * kShares + share;
                if (box >= boxes) break;
                const CUtensorMap* const its =
                    kMajor == Major::k || box == boxes - 1 ? last_map : map;
                at.inner = kMajor == Major::k ? k : mn + box * extent;
                at.outer = kMajor == Major::k ? mn + box * extent : k;
                if constexpr (kShares > 1) {
                    constexpr std::uint16_t kBoth = 0b11;
                    ptx::load_tensor_multicast(tile + box * box_bytes, its, at, full, kBoth);
                } else {
                    ptx::load_tensor(tile + box * box_bytes, its, at, full);
                }
            }
        }
    };

    // Where the boxes of a tile lie.
    template <int kSharesA, int kSharesB>
    struct TileLoads {
        Work work;
        Load<Policy::a_major, Policy::kBlockM, sizeof(typename Policy::ElementA), kSharesA> a;
        Load<Policy::b_major, Policy::kBlockN, sizeof(typename Policy::ElementB), kSharesB> b;

        __device__ __forceinline__ TileLoads(const Params& params, const Work& its_work)
            : work(its_work),
              a(params.a, params.a_rest, params.load_a, static_cast<int>(params.args.m) - work.m,
                my_share<kSharesA>()),
              b(params.b, params.b_rest, params.load_b, work.n_end - work.n, my_share<kSharesB>()) {
        }
    };

    template <int kShares>
    __device__ __forceinline__ static int my_share() {
        return kShares > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    }

    const Params& params_;
    SharedMemory<Policy> shared_;
    RingPosition at_;
};

}  // namespace tcgemm::sm90_wgmma
