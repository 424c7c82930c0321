// From the accumulators of a warpgroup to D: 64 rows of 128 bytes at a time, through shared memory.
#pragma once

#include "kernels/device/ptx/tma.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

template <class Policy>
class TileStore {
    static constexpr int kSubtiles = Policy::kSubtiles, kSums = Policy::kBlockN / 2;
    static constexpr int kFloatCols = kStagingBytes / kMmaM / 4;  // of a staging
    using Linear = epilogue::Linear<float>;

   public:
    using Sums = float[kSubtiles][kSums];

    // `row`: the warpgroup's first, within the tile.
    __device__ TileStore(const Params& params, SharedMemory<Policy> shared, int consumer, int row)
        : params_(params), shared_(shared), consumer_(consumer), row_(row) {}

    __device__ __forceinline__ void run(const Work& work, const Sums& sums) {
        if (!params_.stores_by_tensor) return store_elements(work, sums);
        switch (params_.args.d.dtype) {
            case DType::f16: return store_boxes<__half>(work, sums);
            case DType::bf16: return store_boxes<__nv_bfloat16>(work, sums);
            default: return store_boxes<float>(work, sums);
        }
    }

    // Before the block ends: its shared memory is still being read.
    __device__ void finish() const {
        if (params_.stores_by_tensor && threadIdx.x % kWarpgroup == 0) {
            ptx::wait_for_store_reads<0>();
        }
    }

   private:
    __device__ void synchronize() const { ptx::named_barrier(1 + consumer_, kWarpgroup); }

    // D as the copy engine takes it. Boxes in flight read their staging while the next one is
    // filled, and while the next tile is multiplied.
    template <class T>
    __device__ __forceinline__ void store_boxes(const Work& work, const Sums& sums) {
        constexpr int kCols = 128 / sizeof(T), kAcross = Policy::kBlockN / kCols;
        const Linear policy = params_.epilogue;
        const auto value = [&](int s, int i) { return policy(sums[s][i]); };
#pragma unroll 1
        for (int box = 0; box < kSubtiles * kAcross; ++box) {
            const int row = work.m + row_ + box / kAcross * kMmaM;
            const int col = work.n + box % kAcross * kCols;
            if (row >= params_.args.m || col >= params_.args.n) continue;
            const std::uint32_t staging = shared_.staging(consumer_, turn_);
            const int thread = thread_in_warpgroup();
            if (thread == 0) ptx::wait_for_store_reads<kStagings - 1>();
            synchronize();
#pragma unroll
            for (int i = 0; i < kSubtiles * kAcross; ++i) {
                if (i == box) fill<T>(staging, thread, i / kAcross, i % kAcross * kCols / 2, value);
            }
            ptx::fence_async_proxy();
            synchronize();
            if (thread == 0) {
                ptx::TensorCoordinates at = {col, row, {}};
#pragma unroll
                for (int dim = 0; dim < kBatchDims; ++dim) at.batch[dim] = work.batch_index[dim];
                ptx::store_tensor(&params_.d, at, staging);
                ptx::commit_stores();
            }
            turn_ = (turn_ + 1) % kStagings;
        }
    }

    // D of any strides, alignment and dtype, with or without C: the sums go through shared memory,
    // so that a warp reads and writes neighbouring columns.
    __device__ __forceinline__ void store_elements(const Work& work, const Sums& sums) {
        constexpr int kAcross = Policy::kBlockN / kFloatCols;
        constexpr int kVector = 4, kVectors = kFloatCols / kVector;  // columns of a thread
        constexpr int kRowStep = kWarpgroup / kVectors, kStrip = kMmaM / kRowStep;
        const epilogue::Output<Linear> output(params_.epilogue, params_.args, work.batch);
        const bool vectorizable = output.template vectorizable<kVector>();
        const auto value = [&](int s, int i) { return sums[s][i]; };
#pragma unroll 1
        for (int box = 0; box < kSubtiles * kAcross; ++box) {
            const int first_row = work.m + row_ + box / kAcross * kMmaM;
            const int first_col = work.n + box % kAcross * kFloatCols;
            const auto rows =
                static_cast<int>(min(params_.args.m - first_row, std::int64_t{kMmaM}));
            const auto cols =
                static_cast<int>(min(params_.args.n - first_col, std::int64_t{kFloatCols}));
            if (rows <= 0 || cols <= 0) continue;
            const std::uint32_t staging = shared_.staging(consumer_, turn_);
            const int thread = thread_in_warpgroup();
#pragma unroll
            for (int i = 0; i < kSubtiles * kAcross; ++i) {
                if (i == box)
                    fill<float>(staging, thread, i / kAcross, i % kAcross * kFloatCols / 2, value);
            }
            synchronize();
            if (vectorizable) {
                const int row = thread / kVectors, col = thread % kVectors * kVector;
                float strip[kStrip][kVector];
#pragma unroll
                for (int r = 0; r < kStrip; ++r) {
                    load(staging_address(staging, row + r * kRowStep, col * 4), strip[r]);
                }
                if (col < cols) {
                    output.store(first_row + row, kRowStep, rows - row, first_col + col,
                                 min(cols - col, kVector), strip);
                }
            } else {
                const int first = thread / 32 * (kMmaM / 4), col = thread % 32;
#pragma unroll 1
                for (int row = first; row < first + kMmaM / 4; row += kStrip) {
                    float strip[kStrip][1];
#pragma unroll
                    for (int r = 0; r < kStrip; ++r) {
                        load(staging_address(staging, row + r, col * 4), strip[r]);
                    }
                    if (col < cols)
                        output.store(first_row + row, 1, rows - row, first_col + col, 1, strip);
                }
            }
            turn_ = (turn_ + 1) % kStagings;
        }
    }

    // Rows of 128 bytes whose 16-byte pieces are swizzled as the copy engine expects them; what a
    // warp writes together lies in different banks.
    __device__ static std::uint32_t staging_address(std::uint32_t staging, int row, int byte) {
        return staging + row * 128 + (byte ^ (row & 7) << 4);
    }

    template <int N>
    __device__ static void load(std::uint32_t address, float (&value)[N]) {
        static_assert(N == 1 || N == 4);
        if constexpr (N == 4) {
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                         : "r"(address)
                         : "memory");
        } else {
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value[0]) : "r"(address) : "memory");
        }
    }

    // The registers from `first` on of subtile s, as T, into a staging.
    template <class T, class Value>
    __device__ __forceinline__ void fill(std::uint32_t staging, int thread, int s, int first,
                                         const Value& value) const {
        const int warp = thread / 32, lane = thread % 32;
        if constexpr (sizeof(T) == 2) {
            const auto pair = [&](int i) {
                T both[2] = {epilogue::round_to<T>(value(s, i)),
                             epilogue::round_to<T>(value(s, i + 1))};
                return *reinterpret_cast<const std::uint32_t*>(both);
            };
            const int row = warp * 16 + lane % 16, half = lane / 16 * 16;
#pragma unroll
            for (int byte = 0; byte < 128; byte += 32) {  // 16 columns: four 8 x 8 matrices
                const int i = first + byte / 4;
                const std::uint32_t matrices[4] = {pair(i), pair(i + 2), pair(i + 4), pair(i + 6)};
                ptx::store_matrices(staging_address(staging, row, byte + half), matrices);
            }
        } else {
            const int row = warp * 16 + lane / 4, col = lane % 4 * 8;
#pragma unroll
            for (int byte = 0; byte < 128; byte += 32) {  // 8 columns
                const int i = first + byte / 8;
#pragma unroll
                for (int below = 0; below < 2; ++below) {
                    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                                     staging_address(staging, row + 8 * below, byte + col)),
                                 "f"(value(s, i + 2 * below)), "f"(value(s, i + 2 * below + 1))
                                 : "memory");
                }
            }
        }
    }

    const Params& params_;
    SharedMemory<Policy> shared_;
    int consumer_, row_;
    int turn_ = 0;
};

}  // namespace tcgemm::sm90_wgmma
