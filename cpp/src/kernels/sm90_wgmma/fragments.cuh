// The main loop of a warpgroup whose A comes through registers: what wgmma does not take out of
// shared memory, for it lies along m.
#pragma once

#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// A with contiguous m in registers, of elements of 32 bits: boxes of 32 m, each row of which is 128
// bytes of one k. A warp has 16 m of a box.
template <class Policy>
class FragmentsOfA {
    static constexpr int kBox = box_mn(sizeof(typename Policy::ElementA));
    static constexpr int kBoxBytes = kBox * kRowBytes, kStepBytes = 8 * kRowBytes;

   public:
    // Of an instruction's k, see ptx::WgmmaOfRegisters; as loaded, the two k of a row in any order.
    using Registers = std::uint32_t[Policy::kSubtiles][4];

    __device__ explicit FragmentsOfA(SharedMemory<Policy> shared) {
        const int lane = this_thread() % 32, warp = thread_in_warpgroup() / 32;
        const int row = Policy::first_row(this_warpgroup()) + warp * 16;
        // Rows that the ring has no boxes for are not stored: any others will do.
        const int box = min(row / kBox, shared.bytes_a() / kBoxBytes - 1);
        const int m = row % kBox + lane / 4;
        // Half of the lanes load the upper k first: all lie in different banks then.
        swaps_ = lane & 16;
        const int k = lane % 4 + (swaps_ ? 4 : 0);
        offset_ = box * kBoxBytes + k * kRowBytes + ((m / 4 ^ k) << 4) + m % 4 * 4;
    }

    // `tile`: the k-block's A in shared memory.
    __device__ __forceinline__ void load(std::uint32_t tile, int step, Registers& loaded) const {
        constexpr int kEightRows = 2 << 4, kFourK = 4 * kRowBytes | 4 << 4;  // of an address
        const std::uint32_t place = tile + offset_;
#pragma unroll
        for (int s = 0; s < Policy::kSubtiles; ++s) {
            const std::uint32_t at = s * (kMmaM / kBox) * kBoxBytes + step * kStepBytes;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const std::uint32_t its = place ^ i % 2 * kEightRows ^ i / 2 * kFourK;
                loaded[s][i] = ptx::load_shared<std::uint32_t>(its + at);
            }
        }
    }
    __device__ __forceinline__ void order(const Registers& loaded, Registers& fragment) const {
#pragma unroll
        for (int s = 0; s < Policy::kSubtiles; ++s) {
#pragma unroll
            for (int i = 0; i < 4; ++i) fragment[s][i] = swaps_ ? loaded[s][i ^ 2] : loaded[s][i];
        }
    }

   private:
    std::uint32_t offset_;
    bool swaps_;
};

// acc += A B out of `blocks` k-blocks of the ring from `at` on, which moves behind them, with A in
// registers, loaded some steps ahead of their wgmma. `b`: B of stage 0. `all_are_issued()` is
// called as soon as all wgmma are, `release(stage)` by each lane when it is done with a stage.
template <class MmaOfWidth, class Policy, class Register, int kSubtiles, int kSize, class Issued,
          class Release>
__device__ __forceinline__ void multiply_fragments(const SharedMemory<Policy>& shared,
                                                   RingPosition& at, const ptx::MatrixDescriptor& b,
                                                   int blocks, Register (&acc)[kSubtiles][kSize],
                                                   const Issued& all_are_issued,
                                                   const Release& release) {
    constexpr int kSteps = kRowBytes / kMmaKBytes;  // of a k-block
    // Of a stage's steps one is at work while the next is issued, the others are on their way. A
    // load comes some 400 cycles after it was asked for, with wgmma reading B beside it: three
    // steps ahead, for six, made 1024 cubed take 16.5 us, for 11.7.
    constexpr int kCount = Policy::kBlocksPerStage * kSteps, kAhead = kCount - 2;
    using Fragments = FragmentsOfA<Policy>;
    const Fragments a(shared);
    typename Fragments::Registers loaded[kCount];
    const auto load = [&](int stage, int step) {
        a.load(shared.a(stage, step / kSteps), step % kSteps, loaded[step]);
    };
    ptx::wait_for_phase(shared.full(at.stage), at.parity);
#pragma unroll
    for (int step = 0; step < kAhead; ++step) load(at.stage, step);
    int previous = -1;
    while (true) {
        blocks -= Policy::kBlocksPerStage;
        RingPosition next = at;  // behind the last stage that one again, for nothing
        if (blocks > 0) next.advance(shared);
        const ptx::MatrixDescriptor its_b = b.further(at.stage * shared.stage_bytes()).uniform();
#pragma unroll
        for (int step = 0; step < kCount; ++step) {
            const int ahead = step + kAhead;
            if (ahead == kCount) ptx::wait_for_phase(shared.full(next.stage), next.parity);
            load(ahead < kCount ? at.stage : next.stage, ahead % kCount);
            typename Fragments::Registers fragment;
            a.order(loaded[step], fragment);
            ptx::wgmma_fence();
#pragma unroll
            for (int s = 0; s < kSubtiles; ++s) {
                const int k = step / kSteps * shared.bytes_b() + step % kSteps * kMmaKBytes;
                MmaOfWidth::run(acc[s], fragment[s], its_b.at(k), true);
            }
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            if (step == 0 && previous >= 0) release(previous);
        }
        previous = at.stage;
        if (blocks <= 0) break;
        at = next;
    }
    at.advance(shared);
    all_are_issued();
    ptx::wgmma_await_all(acc);
    release(previous);
}

}  // namespace tcgemm::sm90_wgmma
