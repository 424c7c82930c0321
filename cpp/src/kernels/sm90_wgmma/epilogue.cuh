// From the accumulators of a warpgroup to D: 64 rows of 128 bytes at a time, through shared memory.
// Or 64 columns of 128 bytes, where columns are contiguous.
// Where the copy engine stores, StoreWarp takes it from there, and brings C into the same memory.
#pragma once

#include "kernels/device/ptx/tma.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/row_store.cuh"

namespace tcgemm::sm90_wgmma {

// `Epilogue`: Linear<float>, Linear<std::int32_t> or Rescaled. `Sum`: what it takes.
template <class Policy, class Epilogue, class Sum>
class TileStore {
    static constexpr int kSubtiles = Policy::kSubtiles;
    using Value = typename Epilogue::Value;
    // Whether there are registers for a box beside the sums: see fill_ahead().
    static constexpr bool kPacksAhead = !Policy::kStoresLittle && !Policy::kBeginsAhead;

   public:
    using Sums = Sum[kSubtiles][Policy::kSums];

    // `row`: the warpgroup's first, within the tile.
    __device__ TileStore(const Params& params, const Epilogue& epilogue,
                         SharedMemory<Policy> shared, int row)
        : params_(params), epilogue_(epilogue), shared_(shared), row_(row) {}

    // `work()` tells where the tile is; StoreWarp knows by itself.
    template <class Where>
    __device__ __forceinline__ void run(const Where& work, Sums& sums) {
        if (params_.store == Store::elements) {
            store_elements(work(), sums);
        } else if (params_.store == Store::rows) {
            store_rows(work(), sums);
        } else if (params_.epilogue.reads_c()) {
            fill_boxes_as<true>(sums);
        } else {
            fill_boxes_as<false>(sums);
        }
    }
    // Values of D, one of `Elements`, where leaves_in_boxes(), of tiles for which instructions of
    // kWidth columns, and no narrower ones, serve.
    template <int kWidth, class... Elements>
    __device__ __forceinline__ void run_rounded(const Sums& sums) {
        __builtin_assume(params_.store == Store::tensor);  // or addresses for both would spill
        device::with_dtype<Elements...>(params_.args.d.dtype, [&](auto zero) {
            using T = decltype(zero);
            fill_one_by_one<T, false, divide_up(kWidth, Boxes<T>::kCols)>(
                values_of<T, false, true>(epilogue_, sums));
        });
    }

   private:
    // use(T()), of the elements of D that are stored in boxes or rows; maybe FP8 (see store_of()).
    template <bool kMaybeFp8, class Use>
    __device__ __forceinline__ void with_dtype(const Use& use) const {
        const DType dtype = params_.args.d.dtype;
        if constexpr (std::is_integral_v<Sum>) {
            use(Sum());
        } else if constexpr (kMaybeFp8 && Epilogue::kScaled &&
                             !std::is_integral_v<typename Policy::Sum>) {
            device::with_dtype<__half, __nv_bfloat16, float, device::E4M3, device::E5M2>(dtype,
                                                                                         use);
        } else {
            device::with_dtype<__half, __nv_bfloat16, float>(dtype, use);
        }
    }

    // A staging holds a box of D. How those of T lie in the warpgroup's rows of a tile, transposed
    // or not:
    template <class T>
    struct Boxes {
        static constexpr int kCols = 128 / sizeof(T);
        static constexpr int kAcross = divide_up(Policy::kBlockN, kCols);
        static constexpr int kCount = kSubtiles * kAcross;
    };
    template <class T>
    __device__ __forceinline__ bool exists(int box) const {
        return box % Boxes<T>::kAcross * Boxes<T>::kCols < params_.width;
    }
    // Of the sums of 64 rows, the box's first. And how many of its 32 bytes of a row belong to the
    // tile.
    template <class T>
    __device__ static constexpr int first_of(int box) {
        return box % Boxes<T>::kAcross * Boxes<T>::kCols / 2;
    }
    template <class T>
    __device__ static constexpr int steps_of(int box) {
        constexpr int kSumsOfStep = 16 / sizeof(T);
        const int steps = divide_up(Policy::kSums - first_of<T>(box), kSumsOfStep);
        return steps < 4 ? steps : 4;
    }
    // Sums that are neighbours in D, as T, in a word or half of one.
    template <class T>
    using Neighbours = device::Vector<T, sizeof(T) < 4 ? 2 : 1>;

    template <bool kReadsC>
    __device__ __forceinline__ void fill_boxes_as(const Sums& sums) {
        with_dtype<!kReadsC>([&](auto zero) { fill_boxes<decltype(zero), kReadsC>(sums); });
    }

    // Makes D's of sum i and on, in place of as many of C. kRounds: and no more.
    template <class T, bool kReadsC, bool kRounds = false>
    __device__ __forceinline__ static auto values_of(const Epilogue& of_all, const Sums& sums) {
        return [&sums, epilogue = of_all](int s, int i, Neighbours<T>& its) {
            constexpr int kTogether = sizeof(its) / sizeof(T);
            Value value[kTogether];
#pragma unroll
            for (int e = 0; e < kTogether; ++e) {
                const Value sum = epilogue::widen<Value>(sums[s][i + e]);
                if constexpr (kReadsC) {
                    value[e] = epilogue(sum, epilogue::widen<Value>(its.element[e]));
                } else {
                    value[e] = kRounds ? sum : epilogue(sum);
                }
            }
            epilogue::round_by(epilogue, value, its);
        };
    }

    // D as the copy engine takes it. Boxes in flight read their staging while the next one is
    // filled, and while the next tile is multiplied.
    template <class T, bool kReadsC>
    __device__ __forceinline__ void fill_boxes(const Sums& sums) {
        const auto values = values_of<T, kReadsC>(epilogue_, sums);
        if constexpr (kReadsC || !kPacksAhead) {
            fill_one_by_one<T, kReadsC>(values);
        } else {
            fill_ahead<T>(values);
        }
    }

    // kBoxes: so many in one row, where that is known.
    template <class T, bool kReadsC, int kBoxes = 0, class Values>
    __device__ __forceinline__ void fill_one_by_one(const Values& values) {
        constexpr int kCount = kBoxes > 0 ? kBoxes : Boxes<T>::kCount;
        static_assert(kBoxes == 0 || kSubtiles == 1);
        const bool is_transposed = params_.store == Store::transposed;
        // With C it would be too much code.
#pragma unroll(kReadsC ? 1 : kCount)
        for (int box = 0; box < kCount; ++box) {
            if (kBoxes == 0 && !exists<T>(box)) continue;
            const int thread = thread_in_warpgroup();
            const std::uint32_t staging = await_staging(this_warpgroup());
            Words words;
            if constexpr (kReadsC && !Policy::kStoresLittle) {
#pragma unroll
                for (int step = 0; step < 4; ++step) {
                    transfer<T, true>(staging, thread, step, is_transposed, words[step]);
                }
            }
            fill<T, kReadsC>(staging, thread, box, is_transposed, values, words);
            hand_over(this_warpgroup());
        }
    }

    // The fence in front of hand_over() waits for what the threads have written: meanwhile the next
    // box is packed. Takes registers, also for the thread's place, which is worked out once.
    template <class T, class Values>
    __device__ __forceinline__ void fill_ahead(const Values& values) {
        const bool is_transposed = params_.store == Store::transposed;
        const int thread = thread_in_warpgroup(), warpgroup = this_warpgroup();
        Words words;
        fill<T, false>(await_staging(warpgroup), thread, 0, is_transposed, values, words);
#pragma unroll
        for (int box = 1; box < Boxes<T>::kCount; ++box) {
            if (!exists<T>(box)) continue;
#pragma unroll
            for (int step = 0; step < steps_of<T>(box); ++step) {
                pack<T, false>(box, step, values, words[step]);
            }
            hand_over(warpgroup);
            const std::uint32_t staging = await_staging(warpgroup);
#pragma unroll
            for (int step = 0; step < steps_of<T>(box); ++step) {
                transfer<T, false>(staging, thread, step, is_transposed, words[step]);
            }
        }
        hand_over(warpgroup);
    }

    // Of the warpgroup, for the next box, as soon as nobody reads it.
    __device__ __forceinline__ std::uint32_t await_staging(int warpgroup) const {
        const int its = shared_.staging_of(filled_);
        ptx::wait_for_phase(shared_.ready(warpgroup, its), shared_.staging_parity(filled_));
        return shared_.staging(warpgroup, its);
    }
    // To the store warp, filled.
    __device__ __forceinline__ void hand_over(int warpgroup) {
        ptx::fence_async_proxy();
        ptx::arrive(shared_.filled(warpgroup, shared_.staging_of(filled_)));
        ++filled_;
    }

    __device__ __forceinline__ void store_rows(const Work& work, Sums& sums) const {
        with_dtype<true>([&](auto zero) {
            RowStore<Policy, Epilogue, decltype(zero)>(params_, epilogue_,
                                                       shared_.staging(this_warpgroup(), 0), row_)
                .run(work, sums);
        });
    }

    // D of any strides, alignment and dtype, with or without C: the sums go through shared memory,
    // so that a warp reads and writes neighbouring columns. It has rows of a staging of its own.
    __device__ __forceinline__ void store_elements(const Work& work, const Sums& sums) const {
        constexpr int kAcross = Boxes<float>::kAcross, kCols = Boxes<float>::kCols;
        const GemmArgs& args = params_.args;
        const epilogue::Output<Epilogue> output(epilogue_, args, work.batch_index);
        const auto values = [&](int s, int i, auto& its) { its = {sums[s][i]}; };
        const std::uint32_t staging = shared_.staging(this_warpgroup(), 0);
        const int thread = thread_in_warpgroup();
#pragma unroll 1
        for (int box = 0; box < Boxes<float>::kCount; ++box) {
            const int first_row = work.m + row_ + box / kAcross * kMmaM;
            const int first_col = work.n + box % kAcross * kCols;
            const auto rows = static_cast<int>(min(args.m - first_row, std::int64_t{kMmaM}));
            const int cols = min(work.n_end - first_col, kCols);
            if (rows <= 0 || cols <= 0) continue;
            Words words;
            __syncwarp();  // the box before was read
            fill<Sum, false>(staging, thread, box, false, values, words);
            __syncwarp();
            constexpr int kRows = kMmaM / 4;  // of a warp
            constexpr int kTogether = 4;
            const int first = thread / 32 * kRows, col = thread % 32;
#pragma unroll 1
            for (int row = first; row < first + kRows; row += kTogether) {
                Value strip[kTogether][1];
#pragma unroll
                for (int r = 0; r < kTogether; ++r) {
                    load(staging_address(staging, row + r, col * 4), strip[r]);
                }
                if (col < cols) {
                    output.store(first_row + row, 1, rows - row, first_col + col, 1, strip);
                }
            }
        }
    }

    template <int N>
    __device__ static void load(std::uint32_t address, Value (&value)[N]) {
        const auto sums = ptx::load_shared<device::Vector<Sum, N>>(address);
#pragma unroll
        for (int i = 0; i < N; ++i) value[i] = epilogue::widen<Value>(sums.element[i]);
    }

    // What a thread holds of a box, as T: registers of the sums in their order, four words for each
    // 32 bytes of the rows.
    using Words = std::uint32_t[4][4];

    // Puts values(sums of the box), or values(sums, C) with the C in `words`, into a staging: of T.
    template <class T, bool kReadsC, class Values>
    __device__ __forceinline__ static void fill(std::uint32_t staging, int thread, int box,
                                                bool is_transposed, const Values& values,
                                                Words& words) {
#pragma unroll
        for (int i = 0; i < Boxes<T>::kCount; ++i) {
            if (i != box) continue;
#pragma unroll
            for (int step = 0; step < steps_of<T>(i); ++step) {
                if constexpr (kReadsC && Policy::kStoresLittle) {
                    transfer<T, true>(staging, thread, step, is_transposed, words[step]);
                }
                pack<T, kReadsC>(i, step, values, words[step]);
                transfer<T, false>(staging, thread, step, is_transposed, words[step]);
            }
        }
    }

    // The same into the words of a step.
    template <class T, bool kReadsC, class Values>
    __device__ __forceinline__ static void pack(int box, int step, const Values& values,
                                                std::uint32_t (&words)[4]) {
        constexpr int kTogether = sizeof(Neighbours<T>) / sizeof(T);
        constexpr int kParts = 4 / sizeof(Neighbours<T>);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            alignas(4) Neighbours<T> part[kParts];
            auto& word = reinterpret_cast<std::uint32_t&>(part);
            if constexpr (kReadsC) word = words[w];
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                // Steps of 32 columns may end behind a tile's; nobody stores those.
                const int sum = first_of<T>(box) + ((step * 4 + w) * kParts + i) * kTogether;
                values(box / Boxes<T>::kAcross, min(sum, Policy::kSums - kTogether), part[i]);
            }
            words[w] = word;
        }
    }

    // Between the words of the threads and 32 bytes of each row. A warp has rows (columns) of its
    // own.
    template <class T, bool kLoads>
    __device__ __forceinline__ static void transfer(std::uint32_t staging, int thread, int step,
                                                    bool is_transposed, std::uint32_t (&words)[4]) {
        const int warp = thread / 32, lane = thread % 32;
        if constexpr (sizeof(T) == 1) {  // 32 columns: of each eight a pair, and that of row + 8
            static_assert(!kLoads);
            const std::uint32_t first =
                staging_address(staging, warp * 16 + lane / 4, step * 32) + lane % 4 * 2;
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const std::uint32_t address = first ^ w % 2 * 8 ^ w / 2 * 16;
                ptx::store_shared(address, static_cast<std::uint16_t>(words[w]));
                ptx::store_shared(address + 8 * kRowBytes,
                                  static_cast<std::uint16_t>(words[w] >> 16));
            }
        } else if constexpr (sizeof(T) == 2) {  // 16 columns: four 8 x 8 matrices
            const int row = is_transposed ? lane / 16 * 8 + lane % 8 : warp * 16 + lane % 16;
            const int byte = is_transposed ? warp * 32 + lane / 8 % 2 * 16 : lane / 16 * 16;
            const std::uint32_t first = staging_address(staging, row, byte);
            if (is_transposed) {
                const std::uint32_t address = first + step * 16 * kRowBytes;
                if constexpr (kLoads) {
                    ptx::load_matrices_transposed(address, words);
                } else {
                    ptx::store_matrices_transposed(address, words);
                }
            } else {
                const std::uint32_t address = first ^ step * 32;  // a staging is aligned
                if constexpr (kLoads) {
                    ptx::load_matrices(address, words);
                } else {
                    ptx::store_matrices(address, words);
                }
            }
        } else if (Policy::kAInRegisters && is_transposed) {  // 8 columns, in two boxes of 32 rows
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const int row = warp * 16 + lane / 4 + w / 2 * 8, col = lane % 4 * 2 + w % 2;
                const std::uint32_t address = staging_address(
                    staging + row / 32 * (kStagingBytes / 2), step * 8 + col, row % 32 * 4);
                if constexpr (kLoads) {
                    words[w] = ptx::load_shared<std::uint32_t>(address);
                } else {
                    ptx::store_shared(address, words[w]);
                }
            }
        } else {  // 8 columns
            struct Pair {
                std::uint32_t left, right;
            };
#pragma unroll
            for (int below = 0; below < 2; ++below) {
                const std::uint32_t address = staging_address(
                    staging, warp * 16 + lane / 4 + 8 * below, step * 32 + lane % 4 * 8);
                auto& pair = reinterpret_cast<Pair&>(words[2 * below]);
                if constexpr (kLoads) {
                    pair = ptx::load_shared<Pair>(address);
                } else {
                    ptx::store_shared(address, pair);
                }
            }
        }
    }

    const Params& params_;
    const Epilogue& epilogue_;
    SharedMemory<Policy> shared_;
    int row_;
    unsigned filled_ = 0;  // boxes; they take turns in the stagings
};

}  // namespace tcgemm::sm90_wgmma
