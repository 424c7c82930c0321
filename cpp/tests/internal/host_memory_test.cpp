// The memory that products of the host family take beside their operands.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "../check.hpp"
#include "host_matrix.hpp"
#include "kernels/host/gemm.hpp"

namespace {
std::size_t largest = 0;  // bytes, of the aligned allocations: packed operands and partial sums
}

// These replace the program's, which the library is linked into.
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    largest = std::max(largest, bytes);
    const auto step = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(step, (bytes + step - 1) / step * step);
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }

using namespace host_test;

namespace {

// 15 blocks of D for 16 threads, which share 32 slabs of K of each, some at a time.
TEST(the_partial_sums_of_a_long_k_follow_the_number_of_threads) {
    constexpr int kThreads = 16, kBlocks = 15, kSlabs = 32, kRows = 64;
    for (const InstructionSet* set : usable_instruction_sets()) {
        const ModeKernels& kernels = (*set)[Mode::f32];
        const int64_t k = int64_t{kSlabs} * 32 * kernels.k_block, n = kBlocks * kernels.tile_cols;
        Matrix a(DType::f32, kRows, k, 0, 0), b(DType::f32, k, n, 0, 0);  // one number each
        Matrix d = row_major(DType::f32, kRows, n), alone = d;
        a.set(0, 0, 0, 0.1);
        b.set(0, 0, 0, 1);
        GemmArgs args;
        args.m = kRows, args.n = n, args.k = k;
        args.a = a.view(), args.b = b.view(), args.c = args.d = alone.view();
        args.alpha = 1;
        gemm(kernels, args, 1);
        args.c = args.d = d.view();
        largest = 0;
        gemm(kernels, args, kThreads);
        CHECK(d.memory == alone.memory);
        const int64_t block_bytes = int64_t{kRows} * kernels.tile_cols * kernels.lane_bytes;
        CHECK(largest > 0);
        CHECK(static_cast<int64_t>(largest) < 16 * kThreads * block_bytes);
    }
}

}  // namespace

int main() { return check::run(); }
