// From the accumulators of a warpgroup to a D whose rows are contiguous but begin anywhere, which
// the copy engine does not take.
#pragma once

#include "core/math.hpp"
#include "kernels/epilogue/store.cuh"
#include "kernels/sm90_wgmma/pipeline.cuh"

namespace tcgemm::sm90_wgmma {

// A warp puts rows of sums, as T, into shared memory of its own, where those of C were before if it
// is read. They go out in words at aligned addresses, neighbours by neighbouring lanes; single
// elements are only what of a row begins or ends amid a word. (Pieces of 16 bytes have to be moved
// into place, which is up to twice as many instructions, and a warp has hardly another one beside
// it that hides them.)
template <class Policy, class Epilogue, class T>
class RowStore {
    static constexpr int kLanes = 32, kWordBytes = 4, kSegmentBytes = kLanes * kWordBytes;
    static constexpr int kElements = kWordBytes / sizeof(T);  // of a word
    // A panel: 16 rows, or 8 where they are longer, and no more of them than there is room for.
    static constexpr int kTileBytes = round_up(Policy::kBlockN * sizeof(T), 128);
    static constexpr int kMostBytes = most_row_bytes(Policy::kStagings);
    static constexpr int kBytes = 8 * kMostBytes;  // of a warp
    static constexpr int kPanelRow = kTileBytes < kMostBytes ? kTileBytes : kMostBytes;
    static constexpr int kRows = 16 * kPanelRow <= kBytes ? 16 : 8, kEightRows = kRows / 8;
    static constexpr int kCols = kPanelRow / sizeof(T);
    static constexpr int kAcross = divide_up(Policy::kBlockN, kCols);
    static constexpr int kPanels = Policy::kSubtiles * 2 / kEightRows * kAcross;
    static_assert(kPanelRow % 128 == 0, "eight pieces are swizzled together");
    static constexpr int kSegments = kPanelRow / kSegmentBytes;
    // A lane moves its words of so many rows at a time.
    static constexpr int kWords = Policy::kStoresLittle ? 4 : 16;
    static constexpr int kTogether = kRows / divide_up(kRows * kSegments, kWords);
    // Rows from one to the next that begins at the same place of a word.
    static constexpr int kPhases = kElements > 1 ? kElements : 2;
    static_assert(kRows % kTogether == 0 && kTogether % kPhases == 0);
    using Value = typename Epilogue::Value;

   public:
    // `staging`: of the warpgroup. `row`: its first, within the tile.
    __device__ RowStore(const Params& params, const Epilogue& epilogue, std::uint32_t staging,
                        int row)
        : params_(params), epilogue_(epilogue), row_(row) {
        panel_ = staging + its_warp() * kBytes;
    }

    template <class Sums>
    __device__ __forceinline__ void run(const Work& work, Sums& sums) const {
        const GemmArgs& args = params_.args;
        T* const d = static_cast<T*>(args.d.data) +
                     batch_offset(args.batch, args.d.batch_stride, work.batch_index);
        const auto c_of_batch = [&] {
            return static_cast<const T*>(args.c.data) +
                   batch_offset(args.batch, args.c.batch_stride, work.batch_index);
        };
        const T* c = nullptr;
        // With few registers left the index of the batch would spill, if it were kept for C.
        if constexpr (Policy::kStoresLittle) c = c_of_batch();
#pragma unroll 1
        for (int panel = 0; panel < kPanels; ++panel) {
            const int eight = panel / kAcross * kEightRows;  // of the warp's rows: two in each 64
            const int row = work.m + row_ + eight / 2 * kMmaM + its_warp() * 16 + eight % 2 * kRows;
            const int col = work.n + panel % kAcross * kCols;
            const auto rows = static_cast<int>(min(args.m - row, std::int64_t{kRows}));
            const int cols = min(work.n_end - col, kCols);
            if (rows <= 0 || cols <= 0) continue;
            __syncwarp();
            if constexpr (!device::kIsFp8<T>) {
                if (epilogue_.reads_c()) {
                    if constexpr (!Policy::kStoresLittle) c = c_of_batch();
                    read(c + row * args.c.row_stride + col, rows, cols);
                    __syncwarp();
                    add_c(panel, cols, sums);
                }
            }
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

    // use(row, eight, count, sum): four times eight columns of eight rows of the panel, of which a
    // thread holds two of each, sum(w, e). `count` of the four exist.
    template <class Sums, class Use>
    __device__ __forceinline__ void for_fours(int panel, int cols, Sums& sums,
                                              const Use& use) const {
#pragma unroll
        for (int i = 0; i < kPanels * kEightRows; ++i) {
            if (i / kEightRows != panel) continue;  // registers have no run-time index
            constexpr int kEights = kCols / 8, kAll = Policy::kBlockN / 8;
            const int eight_rows = i / kEightRows / kAcross * kEightRows + i % kEightRows;
            const int first = i / kEightRows % kAcross * kEights;
#pragma unroll
            for (int eight = first; eight < first + kEights && eight < kAll; eight += 4) {
                if ((eight - first) % 8 == 0 && (eight - first) * 8 >= cols) break;
                use(i % kEightRows * 8, eight - first, min(kAll - eight, 4),
                    [&](int w, int e) -> auto& {
                        return sums[eight_rows / 2][4 * (eight + w) + eight_rows % 2 * 2 + e];
                    });
            }
        }
    }
    using Pair = device::Vector<T, 2>;
    // Where a lane has the row of a matrix of 8 x 8, and where its pair of eight columns.
    __device__ std::uint32_t matrix_row(int row, int eight) const {
        return address(row + its_lane() % 8, (eight + its_lane() / 8) * 16);
    }
    __device__ std::uint32_t pair_address(int row, int eight) const {
        constexpr int kPairBytes = sizeof(Pair);
        return address(row + its_lane() / 4, (eight * 4 + its_lane() % 4) * kPairBytes);
    }

    // Sums, as T, into the panel.
    template <class Sums>
    __device__ __forceinline__ void fill(int panel, int cols, Sums& sums) const {
        const Epilogue epilogue = epilogue_.behind_c();
        for_fours(panel, cols, sums, [&](int row, int eight, int count, const auto& sum) {
            Pair pair[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                Value values[2];
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    values[e] = epilogue(epilogue::widen<Value>(sum(min(w, count - 1), e)));
                }
                epilogue::round_by(epilogue, values, pair[w]);
            }
            if constexpr (sizeof(T) == 2) {
                std::uint32_t words[4];
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    words[w] = reinterpret_cast<const std::uint32_t&>(pair[w]);
                }
                ptx::store_matrices(matrix_row(row, eight), words);
            } else {
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    ptx::store_shared(pair_address(row, eight + w), pair[w]);
                }
            }
        });
    }

    // Rows of D or C in words. Each of kPhases rows begins so many elements behind the begin of a
    // word. A lane's first column there is below 0 where a row begins amid its word.
    template <class Element>
    struct Words {
        int ahead[kPhases], first_col[kPhases];
        Element* next[kPhases];

        __device__ Words(Element* first, std::int64_t stride) {
#pragma unroll
            for (int i = 0; i < kPhases; ++i) {
                ahead[i] = elements_ahead(first + i * stride);
                first_col[i] = its_lane() * kElements - ahead[i];
                next[i] = first + i * stride + first_col[i];
            }
        }
        // Of the word in which a row begins.
        __device__ static int elements_ahead(const T* row) {
            return static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % kElements);
        }
        // use(segment, word): a lane's words of the next row, the i-th of those together, that are
        // whole.
        template <class Use>
        __device__ __forceinline__ void of_row(int i, int cols, const Use& use) const {
#pragma unroll
            for (int segment = 0; segment < kSegments; ++segment) {
                const int further = segment * kLanes * kElements;
                const int col = first_col[i % kPhases] + further;
                if ((segment > 0 || col >= 0) && col + kElements <= cols) {
                    use(segment, next[i % kPhases] + further);
                }
            }
        }
    };
    // What of each row begins or ends amid a word: a lane for the one, and one for the other.
    template <class Element, class Use>
    __device__ __forceinline__ static void at_ends(Element* first, std::int64_t stride, int rows,
                                                   int cols, const Use& use) {
        const int lane = its_lane(), row = lane % 16;
        Element* const its = first + row * stride;
        const int ahead = Words<Element>::elements_ahead(its);
        const bool at_begin = lane < 16;
        const int amid = (at_begin ? kElements - ahead : ahead + cols) % kElements;
#pragma unroll
        for (int i = 0; i < kElements - 1; ++i) {
            const int col = at_begin ? i : cols - 1 - i;
            if (row < rows && i < amid && i < cols) use(row, col, its + col);
        }
    }

    // The panel's rows of C.
    __device__ __forceinline__ void read(const T* from, int rows, int cols) const {
        const std::int64_t stride = params_.args.c.row_stride;
        const int lane = its_lane();
        Words<const T> words(from, stride);
#pragma unroll 1
        for (int first = 0; first < rows; first += kTogether) {
            std::uint32_t word[kTogether][kSegments] = {};
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                words.of_row(i, first + i < rows ? cols : 0, [&](int segment, const T* its) {
                    word[i][segment] = *reinterpret_cast<const std::uint32_t*>(its);
                });
                words.next[i % kPhases] += kPhases * stride;
            }
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const std::uint32_t its = address(first + i, lane * kWordBytes);
#pragma unroll
                for (int segment = 0; segment < kSegments; ++segment) {
                    std::uint32_t value = word[i][segment];
                    if constexpr (kElements > 1) {  // and what the next word has of it
                        const int next = min(segment + 1, kSegments - 1);
                        const std::uint32_t high =
                            __shfl_sync(~0u, lane == 0 ? word[i][next] : value, lane + 1);
                        value =
                            __funnelshift_r(value, high, words.ahead[i % kPhases] * 8 * sizeof(T));
                    }
                    ptx::store_shared(its + segment * kSegmentBytes, value);
                }
            }
        }
        __syncwarp();
        at_ends(from, stride, rows, cols, [&](int row, int col, const T* its) {
            ptx::store_shared(address(row, col * static_cast<int>(sizeof(T))), *its);
        });
    }
    template <class Sums>
    __device__ __forceinline__ void add_c(int panel, int cols, Sums& sums) const {
        const Epilogue epilogue = epilogue_;
        for_fours(panel, cols, sums, [&](int row, int eight, int count, const auto& sum) {
            Pair pair[4];
            if constexpr (sizeof(T) == 2) {
                std::uint32_t words[4];
                ptx::load_matrices(matrix_row(row, eight), words);
#pragma unroll
                for (int w = 0; w < 4; ++w) pair[w] = reinterpret_cast<const Pair&>(words[w]);
            } else {
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    pair[w] = ptx::load_shared<Pair>(pair_address(row, eight + w));
                }
            }
#pragma unroll
            for (int w = 0; w < count; ++w) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    auto& value = sum(w, e);
                    value = static_cast<std::decay_t<decltype(value)>>(epilogue(
                        epilogue::widen<Value>(value), epilogue::widen<Value>(pair[w].element[e])));
                }
            }
        });
    }

    // Row after row, so that what a sector of L2 has of one segment and of the next reaches it
    // together: otherwise it is fetched from memory to be completed. Words of a few rows are read
    // before the first one is written.
    __device__ __forceinline__ void write(T* to, int rows, int cols) const {
        const std::int64_t stride = params_.args.d.row_stride;
        Words<T> words(to, stride);
#pragma unroll 1
        for (int first = 0; first < rows; first += kTogether) {
            std::uint32_t word[kTogether][kSegments];
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                load_row(first + i, words.ahead[i % kPhases], word[i]);
            }
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                words.of_row(i, first + i < rows ? cols : 0, [&](int segment, T* its) {
                    *reinterpret_cast<std::uint32_t*>(its) = word[i][segment];
                });
                words.next[i % kPhases] += kPhases * stride;
            }
        }
        at_ends(to, stride, rows, cols, [&](int row, int col, T* its) {
            *its = ptx::load_shared<T>(address(row, col * static_cast<int>(sizeof(T))));
        });
    }

    // A lane's word of each segment of a row that begins so many elements behind the begin of a
    // word in D. The first of a row that begins amid a word is not whole, and of no use.
    __device__ __forceinline__ void load_row(int row, int ahead,
                                             std::uint32_t (&word)[kSegments]) const {
        const int lane = its_lane();
        const int back = ahead > 0;  // words
        const std::uint32_t last = address(row, lane * kWordBytes);
        const std::uint32_t before = address(row, (lane - back) * kWordBytes);
#pragma unroll
        for (int segment = 0; segment < kSegments; ++segment) {
            const int byte = segment * kSegmentBytes;
            word[segment] = ptx::load_shared<std::uint32_t>(last + byte);
            if constexpr (kElements > 1) {
                const bool is_there = segment > 0 || lane >= back;
                const auto low = ptx::load_shared<std::uint32_t>(is_there ? before + byte : last);
                // By 0 mod 32 where the row begins with a word.
                word[segment] =
                    __funnelshift_r(low, word[segment], (kElements - ahead) * 8 * sizeof(T));
            }
        }
    }

    const Params& params_;
    const Epilogue& epilogue_;
    int row_;
    std::uint32_t panel_;
};

}  // namespace tcgemm::sm90_wgmma
