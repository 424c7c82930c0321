// From the accumulators of a warpgroup to a D whose rows are contiguous but begin anywhere, which
// the copy engine does not take.
#pragma once

#include "core/math.hpp"
#include "kernels/device/realign.cuh"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// A warp puts eight rows of sums, as T, into shared memory of its own. Each row goes out in aligned
// pieces of 16 bytes; single elements are only what lies before the first and behind the last.
template <class Policy, class Epilogue, class T>
class RowStore {
    static constexpr int kRows = 8, kPieceBytes = 16, kPiece = kPieceBytes / sizeof(T);
    static constexpr int kLanes = 32;
    // Of a row: what four warps have room for, no more than a piece for each lane.
    static constexpr int kMostBytes = Policy::kStagings * kStagingBytes / (4 * kRows);
    static_assert(kMostBytes <= kLanes * kPieceBytes);
    static constexpr int kTileBytes = round_up(Policy::kBlockN * sizeof(T), 128);
    static constexpr int kPanelRow = kTileBytes < kMostBytes ? kTileBytes : kMostBytes;
    static constexpr int kCols = kPanelRow / sizeof(T);
    static constexpr int kAcross = (Policy::kBlockN + kCols - 1) / kCols;
    static constexpr int kPanels = Policy::kSubtiles * 2 * kAcross;
    static_assert(kPanelRow % 128 == 0, "eight pieces are swizzled together");
    // Lanes for a row, a piece for each; and what each writes of the elements outside of pieces.
    static constexpr int kRowLanes = kPanelRow <= 128 ? 8 : kPanelRow <= 256 ? 16 : 32;
    static constexpr int kSingles = divide_up(2 * (kPiece - 1), kRowLanes);
    static_assert(4 * kRows * kPanelRow <= Policy::kStagings * kStagingBytes);
    using Value = typename Epilogue::Value;

   public:
    // `staging`: of the warpgroup. `row`: its first, within the tile.
    __device__ RowStore(const Params& params, const Epilogue& epilogue, std::uint32_t staging,
                        int row)
        : params_(params), epilogue_(epilogue), row_(row) {
        panel_ = staging + its_warp() * kRows * kPanelRow;
    }

    template <class Sums>
    __device__ __forceinline__ void run(const Work& work, const Sums& sums) const {
        const GemmArgs& args = params_.args;
        T* const d = static_cast<T*>(args.d.data) +
                     batch_offset(args.batch, args.d.batch_stride, work.batch);
#pragma unroll 1
        for (int panel = 0; panel < kPanels; ++panel) {
            const int eight = panel / kAcross;  // of the warp's rows: two in each 64 of the tile
            const int row = work.m + row_ + eight / 2 * kMmaM + its_warp() * 16 + eight % 2 * kRows;
            const int col = work.n + panel % kAcross * kCols;
            const auto rows = static_cast<int>(min(args.m - row, std::int64_t{kRows}));
            const int cols = min(work.n_end - col, kCols);
            if (rows <= 0 || cols <= 0) continue;
            __syncwarp();
            fill(panel, sums);
            __syncwarp();
            write(d + row * args.d.row_stride + col, rows, cols);
        }
    }

   private:
    // Worked out anew wherever they are needed: kept over the stores, a word of 192 x 208 spills.
    __device__ static int its_warp() { return thread_in_warpgroup() / kLanes; }
    __device__ static int its_lane() { return this_thread() % kLanes; }
    // The place of a byte of a row. Rows begin in the same bank, and so their pieces are swizzled.
    __device__ std::uint32_t address(int row, int byte) const {
        return panel_ + row * kPanelRow + (byte ^ row << 4);
    }

    template <class Sums>
    __device__ __forceinline__ void fill(int panel, const Sums& sums) const {
        const Epilogue epilogue = epilogue_;
#pragma unroll
        for (int i = 0; i < kPanels; ++i) {
            if (i != panel) continue;  // registers have no run-time index
            constexpr int kEights = kCols / 8, kAll = Policy::kBlockN / 8;
            const int first = i % kAcross * kEights;
#pragma unroll
            for (int eight = first; eight < first + kEights && eight < kAll; eight += 4) {
                T value[4][2];
#pragma unroll
                for (int w = 0; w < 4; ++w) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int sum = 4 * (eight + w) + i / kAcross % 2 * 2 + e;
                        value[w][e] = epilogue::round_to<T>(
                            epilogue(epilogue::widen<Value>(sums[i / kAcross / 2][sum])));
                    }
                }
                put(eight - first, value);
            }
        }
    }

    // Four times eight columns: a thread holds two of each.
    __device__ __forceinline__ void put(int eight, const T (&value)[4][2]) const {
        if constexpr (sizeof(T) == 2) {
            std::uint32_t words[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                alignas(4) const T pair[2] = {value[w][0], value[w][1]};
                words[w] = reinterpret_cast<const std::uint32_t&>(pair);
            }
            ptx::store_matrices(address(its_lane() % 8, (eight + its_lane() / 8) * 16), words);
        } else {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                ptx::store_shared(address(its_lane() / 4, (eight + w) * 32 + its_lane() % 4 * 8),
                                  value[w]);
            }
        }
    }

    // Several rows at a time: what is read of one must not wait until another is written.
    __device__ __forceinline__ void write(T* to, int rows, int cols) const {
        constexpr int kAtOnce = kLanes / kRowLanes, kSteps = kRows / kAtOnce;
        constexpr int kTogether = Policy::kStoresLittle ? 1 : kSteps < 4 ? kSteps : 4;
        const int lane = its_lane() % kRowLanes;
#pragma unroll
        for (int step = 0; step < kSteps; step += kTogether) {
            device::Words<4> low[kTogether], high[kTogether];
            T single[kTogether][kSingles];
            const auto row_of = [&](int i) {
                return (step + i) * kAtOnce + its_lane() / kRowLanes;
            };
            const auto place = [&](int i) { return to + row_of(i) * params_.args.d.row_stride; };
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const Row row(place(i), cols, lane);
                const int piece = row.has_piece ? lane : 0;
                low[i] = load_piece(row_of(i), piece);
                high[i] = load_piece(row_of(i), piece + (row.ahead != 0));
#pragma unroll
                for (int j = 0; j < kSingles; ++j) {
                    const int col = row.single(lane + j * kRowLanes);
                    single[i][j] = load_element(row_of(i), col < cols ? col : 0);
                }
            }
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                T* const d = place(i);
                const Row row(d, cols, lane);
                if (row_of(i) >= rows) break;
                if (row.has_piece) {
                    *reinterpret_cast<device::Words<4>*>(d + row.head + lane * kPiece) =
                        device::realign<sizeof(T)>(low[i], high[i], row.ahead);
                }
#pragma unroll
                for (int j = 0; j < kSingles; ++j) {
                    const int col = row.single(lane + j * kRowLanes);
                    if (col < cols) d[col] = single[i][j];
                }
            }
        }
    }

    // How a row of D lies, and what a lane writes of it: a piece, and elements outside of pieces.
    struct Row {
        unsigned ahead;  // bytes before the first piece
        int head;        // elements
        int pieces;
        bool has_piece;

        __device__ Row(const T* d, int cols, int lane)
            : ahead(static_cast<unsigned>(-reinterpret_cast<std::uintptr_t>(d)) % kPieceBytes),
              head(ahead / sizeof(T)),
              pieces(max(cols - head, 0) / kPiece),
              has_piece(lane < pieces) {}
        __device__ int single(int i) const { return i < head ? i : i + pieces * kPiece; }
    };

    __device__ __forceinline__ device::Words<4> load_piece(int row, int piece) const {
        return ptx::load_shared<device::Words<4>>(address(row, piece * kPieceBytes));
    }
    __device__ __forceinline__ T load_element(int row, int col) const {
        return ptx::load_shared<T>(address(row, col * static_cast<int>(sizeof(T))));
    }

    const Params& params_;
    const Epilogue& epilogue_;
    int row_;
    std::uint32_t panel_;
};

}  // namespace tcgemm::sm90_wgmma
