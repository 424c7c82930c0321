// Which of two consumers sets the tensor cores to work next.
#pragma once

#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// Groups go through the ring one after the other. The parity of a stage's barrier can't tell a
// phase from the one after the next, so that a group must not wait for it too early; besides, the
// tensor cores finish one tile before they begin the next. Or the two consumers of a tile take
// turns, a sum each. The first turn is always consumer 0's.
template <class Policy>
class Turns {
   public:
    __device__ Turns(SharedMemory<Policy> shared, int consumer)
        : shared_(shared), consumer_(consumer) {
        if (Policy::kTakesTurns && consumer > 0) pass();
    }

    __device__ __forceinline__ void wait() {
        if constexpr (Policy::kPingPong) {
            ptx::wait_for_phase(shared_.turn(consumer_), (taken_ & 1) ^ (consumer_ == 0));
            ++taken_;
        } else if constexpr (Policy::kTakesTurns) {
            ptx::named_barrier(Barrier<Policy>::kTurn + threadIdx.x / kWarpgroup, 2 * kWarpgroup);
        }
    }
    // As soon as all of the turn's wgmma are issued: what waits behind them may follow.
    __device__ __forceinline__ void pass() {
        if constexpr (Policy::kPingPong) {
            if (threadIdx.x % 32 == 0) ptx::arrive(shared_.turn(consumer_ ^ 1));
        } else if constexpr (Policy::kTakesTurns) {
            static_assert(Policy::kConsumers == 2);
            const int other = 1 - static_cast<int>(threadIdx.x) / kWarpgroup;
            ptx::arrive_at_named_barrier(Barrier<Policy>::kTurn + other, 2 * kWarpgroup);
        }
    }

   private:
    SharedMemory<Policy> shared_;
    int consumer_, taken_ = 0;
};

}  // namespace tcgemm::sm90_wgmma
