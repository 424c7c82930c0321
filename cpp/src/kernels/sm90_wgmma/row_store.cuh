// From the accumulators of a warpgroup to a D whose rows are contiguous but begin anywhere, which
// the copy engine does not take.
#pragma once

#include "core/math.hpp"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// A warp puts rows of sums, as T, into shared memory of its own. They go out in words at aligned
// addresses, neighbours by neighbouring lanes; single elements are only what of a row begins or
// ends amid a word. (Pieces of 16 bytes have to be moved into place, which is up to twice as many
// instructions, and a warp has hardly another one beside it that hides them.)
template <class Policy, class Epilogue, class T>
class RowStore {
    static constexpr int kLanes = 32, kWordBytes = 4, kSegmentBytes = kLanes * kWordBytes;
    static constexpr int kElements = kWordBytes / sizeof(T);              // of a word
    static constexpr int kBytes = Policy::kStagings * kStagingBytes / 4;  // of a warp
    // A panel: 16 rows, or 8 where they are longer, and no more of them than there is room for.
    static constexpr int kTileBytes = round_up(Policy::kBlockN * sizeof(T), 128);
    static constexpr int kPanelRow = kTileBytes < kBytes / 8 ? kTileBytes : kBytes / 8;
    static constexpr int kRows = 16 * kPanelRow <= kBytes ? 16 : 8, kEightRows = kRows / 8;
    static constexpr int kCols = kPanelRow / sizeof(T);
    static constexpr int kAcross = divide_up(Policy::kBlockN, kCols);
    static constexpr int kPanels = Policy::kSubtiles * 2 / kEightRows * kAcross;
    static_assert(kPanelRow % 128 == 0, "eight pieces are swizzled together");
    using Value = typename Epilogue::Value;

   public:
    // `staging`: of the warpgroup. `row`: its first, within the tile.
    __device__ RowStore(const Params& params, const Epilogue& epilogue, std::uint32_t staging,
                        int row)
        : params_(params), epilogue_(epilogue), row_(row) {
        panel_ = staging + its_warp() * kBytes;
    }

    template <class Sums>
    __device__ __forceinline__ void run(const Work& work, const Sums& sums) const {
        const GemmArgs& args = params_.args;
        T* const d = static_cast<T*>(args.d.data) +
                     batch_offset(args.batch, args.d.batch_stride, work.batch_index);
#pragma unroll 1
        for (int panel = 0; panel < kPanels; ++panel) {
            const int eight = panel / kAcross * kEightRows;  // of the warp's rows: two in each 64
            const int row = work.m + row_ + eight / 2 * kMmaM + its_warp() * 16 + eight % 2 * kRows;
            const int col = work.n + panel % kAcross * kCols;
            const auto rows = static_cast<int>(min(args.m - row, std::int64_t{kRows}));
            const int cols = min(work.n_end - col, kCols);
            if (rows <= 0 || cols <= 0) continue;
            __syncwarp();
            fill(panel, cols, sums);
            __syncwarp();
            write(d + row * args.d.row_stride + col, rows, cols);
        }
    }

   private:
    // Worked out anew wherever they are needed: kept over the stores, a word of 192 x 208 spills.
    __device__ static int its_warp() { return thread_in_warpgroup() / kLanes; }
    __device__ static int its_lane() { return this_thread() % kLanes; }
    // The place of a byte of a row. Rows begin in the same bank, and so their pieces are swizzled.
    // (In this order one instruction for a row: the panel is aligned to the pieces of a row.)
    __device__ std::uint32_t address(int row, int byte) const {
        return ((panel_ + byte) ^ row % 8 << 4) + row * kPanelRow;
    }

    template <class Sums>
    __device__ __forceinline__ void fill(int panel, int cols, const Sums& sums) const {
        const Epilogue epilogue = epilogue_;
#pragma unroll
        for (int i = 0; i < kPanels * kEightRows; ++i) {
            if (i / kEightRows != panel) continue;  // registers have no run-time index
            constexpr int kEights = kCols / 8, kAll = Policy::kBlockN / 8;
            const int eight_rows = i / kEightRows / kAcross * kEightRows + i % kEightRows;
            const int first = i / kEightRows % kAcross * kEights;
#pragma unroll
            for (int eight = first; eight < first + kEights && eight < kAll; eight += 4) {
                if ((eight - first) % 8 == 0 && (eight - first) * 8 >= cols) break;
                T value[4][2];
#pragma unroll
                for (int w = 0; w < 4; ++w) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int sum = 4 * min(eight + w, kAll - 1) + eight_rows % 2 * 2 + e;
                        value[w][e] = epilogue::round_to<T>(
                            epilogue(epilogue::widen<Value>(sums[eight_rows / 2][sum])));
                    }
                }
                put(i % kEightRows * 8, eight - first, value);
            }
        }
    }

    // Four times eight columns of eight rows: a thread holds two of each.
    __device__ __forceinline__ void put(int row, int eight, const T (&value)[4][2]) const {
        if constexpr (sizeof(T) == 2) {
            std::uint32_t words[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                alignas(4) const T pair[2] = {value[w][0], value[w][1]};
                words[w] = reinterpret_cast<const std::uint32_t&>(pair);
            }
            const int its_row = row + its_lane() % 8;
            ptx::store_matrices(address(its_row, (eight + its_lane() / 8) * 16), words);
        } else {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const int byte = (eight + w) * 32 + its_lane() % 4 * 8;
                ptx::store_shared(address(row + its_lane() / 4, byte), value[w]);
            }
        }
    }

    // Row after row, so that what a sector of L2 has of one segment and of the next reaches it
    // together: otherwise it is fetched from memory to be completed. Words of a few rows are read
    // before the first one is written.
    __device__ __forceinline__ void write(T* to, int rows, int cols) const {
        constexpr int kSegments = kPanelRow / kSegmentBytes;
        constexpr int kWords = Policy::kStoresLittle ? 4 : 16;  // of a lane at a time
        constexpr int kTogether = kRows / divide_up(kRows * kSegments, kWords);  // rows
        static_assert(kRows % kTogether == 0 && kTogether % 2 == 0);
        const std::int64_t stride = params_.args.d.row_stride;
        const int lane = its_lane();
        rows = min(rows, kRows);
        // Every other row begins at the same place of a word, and is so many elements further. A
        // lane's first column there is -1 where a row begins amid its word.
        int ahead[2], first_col[2];
        T* next[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            ahead[i] = elements_ahead(to + i * stride);
            first_col[i] = lane * kElements - ahead[i];
            next[i] = to + i * stride + first_col[i];
        }
#pragma unroll 1
        for (int first = 0; first < rows; first += kTogether) {
            std::uint32_t word[kTogether][kSegments];
#pragma unroll
            for (int i = 0; i < kTogether; ++i) load_row(first + i, ahead[i % 2], word[i]);
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const int end = first + i < rows ? cols : 0;
#pragma unroll
                for (int segment = 0; segment < kSegments; ++segment) {
                    const int further = segment * kLanes * kElements;
                    const int col = first_col[i % 2] + further;
                    if ((segment > 0 || col >= 0) && col + kElements <= end) {
                        *reinterpret_cast<std::uint32_t*>(next[i % 2] + further) = word[i][segment];
                    }
                }
                next[i % 2] += 2 * stride;
            }
        }
        if constexpr (kElements > 1) {  // a lane for the begin of each row, and one for its end
            const int row = lane % 16, col = lane < 16 ? 0 : cols - 1;
            T* const d = to + row * stride;
            const int amid = elements_ahead(d) + (lane < 16 ? 0 : cols);
            if (row < rows && amid % kElements != 0) {
                d[col] = ptx::load_shared<T>(address(row, col * static_cast<int>(sizeof(T))));
            }
        }
    }

    // Of the word in which a row begins.
    __device__ static int elements_ahead(const T* d) {
        return static_cast<int>(reinterpret_cast<std::uintptr_t>(d) / sizeof(T) % kElements);
    }
    // A lane's word of each segment of a row that begins so many elements ahead in D, 0 or 1. The
    // first of a row that is ahead is not whole, and of no use.
    template <int kSegments>
    __device__ __forceinline__ void load_row(int row, int ahead,
                                             std::uint32_t (&word)[kSegments]) const {
        const int lane = its_lane();
        const std::uint32_t last = address(row, lane * kWordBytes);
        const std::uint32_t before = address(row, (lane - ahead) * kWordBytes);
#pragma unroll
        for (int segment = 0; segment < kSegments; ++segment) {
            const int byte = segment * kSegmentBytes;
            word[segment] = ptx::load_shared<std::uint32_t>(last + byte);
            if constexpr (kElements > 1) {
                const bool is_there = segment > 0 || lane >= ahead;
                const auto low = ptx::load_shared<std::uint32_t>(is_there ? before + byte : last);
                word[segment] = __funnelshift_r(low, word[segment], ahead * 8 * sizeof(T));
            }
        }
    }

    const Params& params_;
    const Epilogue& epilogue_;
    int row_;
    std::uint32_t panel_;
};

}  // namespace tcgemm::sm90_wgmma
