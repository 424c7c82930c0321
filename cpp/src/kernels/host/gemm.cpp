#include "kernels/host/gemm.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/environment.hpp"
#include "core/floating_point.hpp"
#include "core/math.hpp"
#include "kernels/host/thread_pool.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::host {
namespace {

using std::int64_t;

constexpr int kCacheLine = 64;  // bytes, of a vector of AVX-512 too

// The packed block of B is read once for each row of register tiles, and has to stay in the L2
// cache: 192 KiB of the 1 MiB (Zen 4 and 5, Skylake-SP) or 512 KiB (Zen 2 and 3) that a core has.
constexpr int64_t kBlockBBytes = 192 * 1024;
// Each block of B is packed once for so many rows of A at most.
constexpr int64_t kMaxRows = 1024;
// A block smaller than this spends more on packing than the balance between threads gains.
constexpr int64_t kMinRows = 64;
// Waking a thread costs 5 to 50 us: it is worth it from about so many multiply-adds on.
constexpr double kWorkPerThread = 1e6;
constexpr double kReadWork = 7;  // multiply-adds that take as long as to read an element
// Blocks of K that one thread sums before the sum is rounded into the total. Part of the result's
// definition, like k_block.
constexpr int64_t kBlocksPerSlab = 32;
// Slabs of a block that are summed side by side before they are added to its total, for each
// thread: bounds the memory.
constexpr int64_t kSlabsPerThread = 8;

class Buffer {
   public:
    explicit Buffer(std::size_t bytes) {
        if (bytes == 0) return;
        data_ = ::operator new(bytes, std::align_val_t{kCacheLine}, std::nothrow);
        if (data_ == nullptr) {
            throw OutOfMemory("the host has no " + std::to_string(bytes) +
                              " bytes of memory left for packed operands and partial sums");
        }
    }
    ~Buffer() { ::operator delete(data_, std::align_val_t{kCacheLine}); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    std::byte* data() const { return static_cast<std::byte*>(data_); }

   private:
    void* data_ = nullptr;
};

// A product cut into equal blocks of D (the last of a row or column may be smaller).
class Tiling {
   public:
    Tiling(const ModeKernels& kernels, const GemmArgs& args, int threads)
        : kernels_(kernels), args_(args) {
        const int64_t tile_bytes = int64_t{kernels.column_bytes} * kernels.tile_cols;
        const int64_t max_cols = kBlockBBytes / tile_bytes * kernels.tile_cols;
        set_rows(divide_up(args.m, divide_up(args.m, kMaxRows)));
        set_cols(divide_up(args.n, divide_up(args.n, max_cols)));
        // Several blocks for each thread, so that one that is held up does not hold up all. More
        // blocks of rows pack B, more blocks of columns A once more: whichever takes less.
        const double of_a = packing(args.a.col_stride, args.a.row_stride),
                     of_b = packing(args.b.col_stride, args.b.row_stride);
        while (threads > 1 && blocks() < 4 * int64_t{threads}) {
            const bool can_rows = rows_ > kMinRows, can_cols = cols_ > kernels.tile_cols;
            if (!can_rows && !can_cols) break;
            const double rows_cost = static_cast<double>(row_blocks_ * args.n) * of_b,
                         cols_cost = static_cast<double>(col_blocks_ * args.m) * of_a;
            if (can_rows && (!can_cols || rows_cost < cols_cost)) {
                set_rows(divide_up(rows_, 2));
            } else {
                set_cols(divide_up(cols_, 2));
            }
        }
    }

    int64_t blocks() const { return row_blocks_ * col_blocks_ * args_.batch.count; }
    int64_t block_cols() const { return cols_; }
    int64_t lanes() const { return rows_ * cols_; }

    struct Block {
        int64_t batch, row, col, rows, cols;
    };
    Block block(int64_t index) const {
        const int64_t in_batch = index % (row_blocks_ * col_blocks_);
        const int64_t row = in_batch % row_blocks_ * rows_, col = in_batch / row_blocks_ * cols_;
        return {index / (row_blocks_ * col_blocks_), row, col, std::min(rows_, args_.m - row),
                std::min(cols_, args_.n - col)};
    }

    // The sum of products first_k .. first_k + k of a block.
    void accumulate(const Block& block, int64_t first_k, int64_t k, void* lanes,
                    void* scratch) const {
        const auto at = [](const MatrixView& view, int64_t offset) {
            return static_cast<const std::byte*>(view.data) + offset * size_of(view.dtype);
        };
        const MatrixView &a = args_.a, &b = args_.b;
        const int64_t a_offset = element_offset(args_.batch, a, block.batch, block.row, first_k);
        const int64_t b_offset = element_offset(args_.batch, b, block.batch, first_k, block.col);
        ConstMatrix a_block{at(a, a_offset), a.row_stride, a.col_stride, a.dtype};
        ConstMatrix b_block{at(b, b_offset), b.row_stride, b.col_stride, b.dtype};
        if (args_.scales != nullptr) {
            const int64_t k_block = first_k / kScaleBlock;
            a_block.scales = scales(args_.scales->a, true, block.batch, block.row, k_block);
            b_block.scales = scales(args_.scales->b, true, block.batch, block.col, k_block);
        }
        kernels_.accumulate(a_block, b_block, block.rows, block.cols, k, lanes, scratch);
    }

    void finish(const Block& block, const void* lanes) const {
        const MatrixView &c = args_.c, &d = args_.d;
        const int64_t d_offset = element_offset(args_.batch, d, block.batch, block.row, block.col);
        Output output{static_cast<std::byte*>(d.data) + d_offset * size_of(d.dtype),
                      nullptr,
                      d.row_stride,
                      d.col_stride,
                      c.row_stride,
                      c.col_stride,
                      d.dtype,
                      args_.alpha,
                      args_.beta};
        if (args_.beta != 0) {
            const int64_t c_offset =
                element_offset(args_.batch, c, block.batch, block.row, block.col);
            output.c = static_cast<const std::byte*>(c.data) + c_offset * size_of(d.dtype);
        }
        if (const ScaleArgs* all = args_.scales; all != nullptr) {
            output.scaled = true;
            output.scale_a = scales(all->a, false, block.batch, block.row, 0);
            output.scale_b = scales(all->b, false, block.batch, block.col, 0);
            if (all->d != nullptr) output.scale_d = *all->d;
            output.saturate = all->overflow == Overflow::saturate;
        }
        kernels_.finish(output, block.rows, block.cols, lanes);
    }

   private:
    // Of an operand's lines from `first` on, from k-block `k_block` on: only those that differ
    // along K, or only those that do not.
    LineScales scales(const ScaleView& view, bool along_k, int64_t batch, int64_t first,
                      int64_t k_block) const {
        if (view.data == nullptr || view.along_k != along_k) return {};
        const int64_t offset = batch_offset(args_.batch, view.batch_stride, batch);
        return {view.data + offset + k_block * view.k_stride, view.outer_stride, view.k_stride,
                first, view.outer_block};
    }

    // Of an element: of A lines along K are copied and others transposed, of B the other way round.
    static double packing(int64_t as_packed, int64_t across) {
        constexpr double kTransposed = 3;
        return std::abs(as_packed) <= std::abs(across) ? 1 : kTransposed;
    }
    void set_rows(int64_t rows) {
        rows_ = round_up(rows, kernels_.tile_rows);
        row_blocks_ = divide_up(args_.m, rows_);
    }
    void set_cols(int64_t cols) {
        cols_ = round_up(cols, kernels_.tile_cols);
        col_blocks_ = divide_up(args_.n, cols_);
    }

    const ModeKernels& kernels_;
    const GemmArgs& args_;
    int64_t rows_ = 0, cols_ = 0;  // of a block: whole register tiles
    int64_t row_blocks_ = 0, col_blocks_ = 0;
};

// Calls body(worker, index) for each index below `count`, on up to `workers` threads that fetch
// `grain` indices at a time.
template <class Body>
void share_out(int workers, int64_t count, int64_t grain, const Body& body) {
    std::atomic<int64_t> next{0};
    const auto work = [&](int worker) {
        const DefaultFloatingPoint environment;
        for (;;) {
            const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
            if (begin >= count) return;
            const int64_t end = std::min(begin + grain, count);
            for (int64_t index = begin; index < end; ++index) body(worker, index);
        }
    };
    if (workers <= 1) return work(0);
    ThreadPool::instance().run(workers, work);
}

}  // namespace

int worthwhile_threads(const GemmArgs& args) {
    const auto m = static_cast<double>(args.m), n = static_cast<double>(args.n);
    const auto k = static_cast<double>(args.k), batch = static_cast<double>(args.batch.count);
    const double work = (m * n * (k + 16) + kReadWork * (m + n) * k) * batch;
    return static_cast<int>(std::clamp(work / kWorkPerThread, 1.0, double{kMaxThreads}));
}

void gemm(const ModeKernels& kernels, const GemmArgs& args, int threads) {
    if (args.n < args.m && args.n <= kernels.tile_rows &&
        args.n * kernels.lane_bytes < int64_t{kCacheLine}) {
        // Columns that fill no vector of 64 bytes, the transposed product: rows of a register tile
        // that are not there cost nothing.
        GemmArgs other = transposed(args);
        ScaleArgs scales;
        if (args.scales != nullptr) {
            scales = *args.scales;
            std::swap(scales.a, scales.b);
            other.scales = &scales;
        }
        return gemm(kernels, other, threads);
    }
    const Tiling tiling(kernels, args, threads);
    const int64_t slab = kernels.k_splittable ? kernels.k_block * kBlocksPerSlab
                                              : std::numeric_limits<int64_t>::max();
    const int64_t slabs = args.k == 0 ? 0 : kernels.k_splittable ? divide_up(args.k, slab) : 1;
    const int64_t lane_bytes = tiling.lanes() * kernels.lane_bytes;
    const std::size_t scratch_bytes =
        args.k == 0 ? 0
                    : static_cast<std::size_t>(round_up(
                          static_cast<int64_t>(kernels.scratch_bytes(tiling.block_cols(), args.k)),
                          kCacheLine));
    const auto k_of = [&](int64_t index) { return std::min(slab, args.k - index * slab); };

    if (slabs > 1 && tiling.blocks() < threads) {
        // Few blocks and a long K: each slab of each block is a task of its own, a wave at a time.
        const int64_t blocks = tiling.blocks();
        const int64_t wave = std::min(slabs, divide_up(kSlabsPerThread * threads, blocks));
        const int workers = static_cast<int>(std::min<int64_t>(threads, blocks * wave));
        const Buffer memory(static_cast<std::size_t>(blocks * (wave + 1) * lane_bytes) +
                            scratch_bytes * static_cast<std::size_t>(workers));
        std::byte* const totals = memory.data();
        std::byte* const sums = totals + blocks * lane_bytes;
        std::byte* const scratch = sums + blocks * wave * lane_bytes;
        for (int64_t first = 0; first < slabs; first += wave) {
            const int64_t count = std::min(wave, slabs - first);
            share_out(workers, blocks * count, 1, [&](int worker, int64_t task) {
                const int64_t block = task / count, s = first + task % count;
                std::byte* sum = s == 0 ? totals + block * lane_bytes
                                        : sums + (block * wave + s - first) * lane_bytes;
                tiling.accumulate(tiling.block(block), s * slab, k_of(s), sum,
                                  scratch + scratch_bytes * worker);
            });
            share_out(workers, blocks, 1, [&](int, int64_t block) {
                for (int64_t s = first == 0 ? 1 : 0; s < count; ++s) {
                    kernels.add(totals + block * lane_bytes, sums + (block * wave + s) * lane_bytes,
                                tiling.lanes());
                }
                if (first + count == slabs) {
                    tiling.finish(tiling.block(block), totals + block * lane_bytes);
                }
            });
        }
        return;
    }

    const int workers = static_cast<int>(std::min<int64_t>(threads, tiling.blocks()));
    const std::size_t own_bytes =
        scratch_bytes + static_cast<std::size_t>(std::min<int64_t>(slabs, 2) * lane_bytes);
    const Buffer scratch(own_bytes * static_cast<std::size_t>(workers));
    const int64_t grain = std::clamp<int64_t>(tiling.blocks() / (16 * int64_t{workers}), 1, 1024);
    share_out(workers, tiling.blocks(), grain, [&](int worker, int64_t index) {
        const Tiling::Block block = tiling.block(index);
        std::byte* own = scratch.data() + own_bytes * worker;
        std::byte *sum = own + scratch_bytes, *more = sum + lane_bytes;
        for (int64_t s = 0; s < slabs; ++s) {
            tiling.accumulate(block, s * slab, k_of(s), s == 0 ? sum : more, own);
            if (s > 0) kernels.add(sum, more, tiling.lanes());
        }
        tiling.finish(block, slabs == 0 ? nullptr : sum);
    });
}

const std::vector<const InstructionSet*>& usable_instruction_sets() {
    // Asked once: the CPUID instruction leaves a virtual machine, which takes microseconds. Never
    // destroyed: other threads may still multiply while the process exits.
    static const std::vector<const InstructionSet*>& usable = *[] {
        auto& sets = *new std::vector<const InstructionSet*>;
        for (const InstructionSet* set :
             {avx512_instructions(), avx2_instructions(), generic_instructions()}) {
            if (set != nullptr && set->supported()) sets.push_back(set);
        }
        return &sets;
    }();
    return usable;
}

const InstructionSet& chosen_instruction_set() {
    const auto& sets = usable_instruction_sets();
    const char* wanted = run_variable(RunVariable::host_isa);
    if (wanted == nullptr || *wanted == '\0') return *sets[0];
    std::string names;
    for (const InstructionSet* set : sets) {
        if (std::string(wanted) == set->name) return *set;
        names += std::string(names.empty() ? "" : ", ") + set->name;
    }
    throw InvalidArgument("TCGEMM_HOST_ISA is \"" + std::string(wanted) + "\"; it must be one of " +
                          names +
                          ", which this build has and this CPU runs: unset it for the fastest");
}

void check_run_variables() {
    chosen_instruction_set();
    usable_threads(1);
}

}  // namespace tcgemm::host
