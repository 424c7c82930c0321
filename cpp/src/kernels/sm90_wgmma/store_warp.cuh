// The thread of a consumer that moves boxes between its stagings and global memory: those of D out,
// those of C in. An issue takes the copy engine's thread longer than a warpgroup needs to fill a
// box, and places in D longer than a k-block: so consumers leave both to this thread, of a warp of
// its own.
#pragma once

#include "kernels/device/ptx/tma.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// A staging goes round: ready (nobody reads it, and its box of C is in it where C is read), filled
// by the consumer, stored.
template <class Policy>
class StoreWarp {
    static constexpr int kStagings = Policy::kStagings, kMost = Policy::kMostStagings;

   public:
    __device__ StoreWarp(const Params& params, SharedMemory<Policy> shared, int consumer)
        : params_(params), shared_(shared), consumer_(consumer) {}

    __device__ void prefetch_maps() const {
        ptx::prefetch_tensor_map(&params_.d);
        if (params_.epilogue.reads_c()) ptx::prefetch_tensor_map(&params_.c);
    }

    __device__ void run() {
        WorkList<Policy> list(params_);
        const int group = Policy::group_of(consumer_);
        for (int i = 0; i < group && list.has_next(); ++i) list.next();
        while (list.has_next()) {
            const unsigned index = list.next();
            if (!params_.is_whole(index)) return;  // parts are stored by GridSplit
            move_boxes(list.decode(index));
            for (int i = 1; i < Policy::kGroups && list.has_next(); ++i) list.next();
        }
    }

   private:
    // The tile's boxes, numbered as the consumer fills them. Each is made ready ahead of the store,
    // as soon as its staging was read. A box of C, which must come first, is asked for at once;
    // otherwise the next box of D is stored before.
    __device__ __forceinline__ void move_boxes(const Work& work) {
        const int across = divide_up(params_.width, box_cols());
        const int count = Policy::kSubtiles * across;
        const int stagings = shared_.stagings();
        const bool reads_c = params_.epilogue.reads_c();
#pragma unroll 1
        for (int box = -stagings; box < count; ++box) {
            int next = box + stagings;
            if (box >= 0) {
                store(work, place(work, box, across), boxes_ + box);
                if (reads_c) {
                    ptx::wait_for_store_reads<0>();
                } else {
                    if (stagings == kMost) {
                        ptx::wait_for_store_reads<kMost - 1>();
                    } else {
                        ptx::wait_for_store_reads<kStagings - 1>();
                    }
                    next = box + 1;
                    if (next < stagings) continue;
                }
            }
            if (next < count) make_ready(work, place(work, next, across), boxes_ + next);
        }
        ptx::wait_for_store_reads<0>();
        boxes_ += count;
    }

    __device__ int box_cols() const { return kRowBytes >> params_.item_log2; }
    // Of 128 bytes of a column of floats are 32 rows: what is filled at once goes in two boxes.
    template <class Move>
    __device__ __forceinline__ void for_boxes(std::uint32_t staging, ptx::TensorCoordinates at,
                                              const Move& move) const {
        move(staging, at);
        if constexpr (Policy::kAInRegisters) {
            if (is_transposed() && params_.item_log2 == 2) {
                at.inner += box_cols();
                move(staging + kStagingBytes / 2, at);
            }
        }
    }
    __device__ ptx::TensorCoordinates place(const Work& work, int box, int across) const {
        static_assert(Policy::kSubtiles <= 2);
        const bool below = box >= across;
        const int col = work.n + (below ? box - across : box) * box_cols();
        const int row = work.m + Policy::first_row(consumer_) + (below ? kMmaM : 0);
        ptx::TensorCoordinates at;
        at.inner = is_transposed() ? row : col;
        at.outer = is_transposed() ? col : row;
#pragma unroll
        for (int dim = 0; dim < kBatchDims; ++dim) at.batch[dim] = work.batch_index[dim];
        return at;
    }
    __device__ bool is_transposed() const { return params_.store == Store::transposed; }
    __device__ int row(const ptx::TensorCoordinates& at) const {
        return is_transposed() ? at.inner : at.outer;
    }
    __device__ int col(const ptx::TensorCoordinates& at) const {
        return is_transposed() ? at.outer : at.inner;
    }
    __device__ bool is_in_d(const Work& work, const ptx::TensorCoordinates& at) const {
        return row(at) < params_.args.m && col(at) < work.n_end;
    }

    // Stores what the consumer fills. What the copy engine reads is a group of its own, maybe
    // empty.
    __device__ __forceinline__ void store(const Work& work, const ptx::TensorCoordinates& at,
                                          unsigned turn) const {
        const int its = shared_.staging_of(turn);
        const std::uint32_t staging = shared_.staging(consumer_, its);
        // Its last columns are the next tile's.
        const bool is_cut = col(at) + box_cols() > work.n_end && work.n_end < params_.args.n;
        ptx::wait_for_phase(shared_.filled(consumer_, its), shared_.staging_parity(turn));
        if (is_in_d(work, at)) {
            for_boxes(staging, at, [&](std::uint32_t from, const ptx::TensorCoordinates& to) {
                ptx::store_tensor(is_cut ? &params_.d_rest : &params_.d, to, from);
            });
        }
        ptx::commit_stores();
    }

    // Whoever read the staging, the consumer and the store, is done.
    __device__ __forceinline__ void make_ready(const Work& work, ptx::TensorCoordinates at,
                                               unsigned turn) const {
        const std::uint32_t ready = shared_.ready(consumer_, shared_.staging_of(turn));
        const bool loads = params_.epilogue.reads_c() && is_in_d(work, at);
        ptx::arrive_and_expect_bytes(ready, loads ? kStagingBytes : 0);
        if (loads) {
#pragma unroll
            for (int dim = 0; dim < kBatchDims; ++dim) at.batch[dim] &= params_.batch_mask_c[dim];
            for_boxes(shared_.staging(consumer_, shared_.staging_of(turn)), at,
                      [&](std::uint32_t to, const ptx::TensorCoordinates& from) {
                          ptx::load_tensor(to, &params_.c, from, ready);
                      });
        }
    }

    const Params& params_;
    SharedMemory<Policy> shared_;
    int consumer_;
    unsigned boxes_ = 0;  // so far; they take turns in the stagings
};

}  // namespace tcgemm::sm90_wgmma
