// What sm80_mma takes and how it splits K, on cards that differ in shared memory and age. A build
// without the family has no such rows and nothing to test.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../check.hpp"
#include "dispatch/registry.hpp"
#include "dispatch/select.hpp"

using namespace tcgemm;

namespace {

// An A100 (163 KB of shared memory a block), an RTX 3090 or 4090 (99 KB), an H200 (227 KB).
DeviceProperties card(int cc, int shared_kb, int sm_count, int clock_khz, int l2_mb) {
    DeviceProperties device;
    device.device = Device::cuda(0);
    device.name = "card";
    device.cc_major = cc / 10;
    device.cc_minor = cc % 10;
    device.sm_count = sm_count;
    device.shared_memory_per_block = std::int64_t{shared_kb} << 10;
    device.clock_khz = clock_khz;
    device.l2_bytes = std::int64_t{l2_mb} << 20;
    return device;
}
const DeviceProperties kA100 = card(80, 163, 108, 1410000, 40);
const DeviceProperties kConsumer = card(86, 99, 82, 1700000, 6);
const DeviceProperties kH200 = card(90, 227, 132, 1980000, 60);

struct Mode {
    DType dtype;
    Accumulate accumulate;
    Precision precision = Precision::automatic;
};
constexpr Mode kModes[] = {
    {DType::f16, Accumulate::fp32},     {DType::bf16, Accumulate::fp32},
    {DType::f16, Accumulate::promoted}, {DType::bf16, Accumulate::promoted},
    {DType::f16, Accumulate::fp16},     {DType::f64, Accumulate::fp64},
    {DType::i8, Accumulate::int32},     {DType::f32, Accumulate::fp32, Precision::tf32},
    {DType::f32, Accumulate::fp32},     {DType::f32, Accumulate::promoted},
};

ValidProblem problem(const Mode& mode, std::int64_t m, std::int64_t n, std::int64_t k,
                     Determinism determinism = Determinism::run_to_run) {
    GemmProblem p;
    p.m = m;
    p.n = n;
    p.k = k;
    p.accumulate = mode.accumulate;
    p.precision = mode.precision;
    p.determinism = determinism;
    p.a = Operand::row_major(mode.dtype, k > 0 ? k : 1);
    p.b = Operand::row_major(mode.dtype, n);
    p.c = p.d = Operand::row_major(mode.dtype == DType::i8 ? DType::i32 : mode.dtype, n);
    return ValidProblem::check(p);
}

// Of tiles; what competes, for small matrices, is in whole_k_test.cpp.
std::vector<const KernelInfo*> rows() {
    std::vector<const KernelInfo*> all;
    for (const RegisteredFamily& family : registered_families()) {
        if (std::string(family.name) != "sm80_mma") continue;
        for (int i = 0; i < family.family->kernel_count; ++i) {
            const KernelInfo& row = family.family->kernels[i];
            if (!row.competes) all.push_back(&row);
        }
    }
    return all;
}

// The rows that take a mode on a card.
std::vector<const KernelInfo*> rows(const Mode& mode, const DeviceProperties& device) {
    std::vector<const KernelInfo*> taken;
    for (const KernelInfo* row : rows()) {
        if (rejection(*row, problem(mode, 64, 64, 64), device).empty()) taken.push_back(row);
    }
    return taken;
}

Schedule best(const Mode& mode, const DeviceProperties& device, const ValidProblem& valid) {
    Schedule least;
    least.cost_us = INFINITY;
    for (const KernelInfo* row : rows(mode, device)) {
        const Schedule schedule = row->schedule(valid, device);
        if (schedule.cost_us < least.cost_us) least = schedule;
    }
    return least;
}

// The plan transposes what does not lie so, rounds to TF32, and packs halves.
TEST(rows_of_int8_and_float32_alone_ask_for_contiguous_k) {
    for (const Mode& mode : kModes) {
        const bool k_major = mode.dtype == DType::i8 || mode.dtype == DType::f32;
        for (const KernelInfo* row : rows(mode, kA100)) {
            CHECK_EQ(row->needs.k_major_a, k_major);
            CHECK_EQ(row->needs.k_major_b, k_major);
            CHECK(!row->needs.rounds_to_tf32);
            CHECK_EQ(row->needs.halves(),
                     mode.dtype == DType::f32 && mode.precision != Precision::tf32);
            const bool any = std::string(row->name).find("_unaligned_") != std::string::npos;
            CHECK_EQ(row->needs.vector_bytes, any ? 8 : 16);
        }
    }
}

TEST(every_mode_has_a_row_on_every_card) {
    if (rows().empty()) return;
    for (const Mode& mode : kModes) {
        for (const DeviceProperties* device : {&kA100, &kConsumer, &kH200}) {
            CHECK(!rows(mode, *device).empty());
        }
    }
}

TEST(says_what_a_card_lacks) {
    const DeviceProperties turing = card(75, 64, 40, 1590000, 4);
    DeviceProperties small = kH200;
    small.shared_memory_per_block = 16 << 10;
    for (const KernelInfo* row : rows()) {
        const ValidProblem any = problem(kModes[0], 64, 64, 64);
        const char* const least = row->needs.fp8 ? "capability 8.9" : "capability 8.0";
        CHECK(rejection(*row, any, turing).find(least) != std::string::npos);
        CHECK(rejection(*row, any, small).find("bytes of shared memory") != std::string::npos);
    }
}

// Of integers any parts have the same sums.
TEST(batch_invariant_products_are_split_alike) {
    for (const Mode& mode : kModes) {
        if (mode.dtype == DType::i8) continue;
        const auto split = [&](const KernelInfo* row, std::int64_t m, std::int64_t k) {
            return row->schedule(problem(mode, m, 128, k, Determinism::batch_invariant), kA100)
                .split_k;
        };
        for (const KernelInfo* row : rows(mode, kA100)) {
            for (const std::int64_t m : {1, 128, 4096}) {
                const bool is_f64 = mode.dtype == DType::f64;
                CHECK_EQ(split(row, m, 65536), is_f64 ? 32 : 16);
                CHECK_EQ(split(row, m, 8192), is_f64 ? 4 : 1);
            }
        }
    }
}

TEST(a_long_k_with_few_tiles_is_split_and_the_workspace_holds_its_parts) {
    if (rows().empty()) return;
    for (const Mode& mode : kModes) {
        for (const DeviceProperties* device : {&kA100, &kConsumer, &kH200}) {
            const Schedule schedule = best(mode, *device, problem(mode, 128, 126, 65536));
            const std::size_t sum = mode.dtype == DType::f64 ? 8 : 4;  // bytes
            CHECK(schedule.split_k > 1);
            CHECK_EQ(schedule.workspace_bytes,
                     static_cast<std::size_t>(schedule.split_k) * 128 * 128 * sum);
            CHECK_EQ(best(mode, *device, problem(mode, 8192, 8192, 8192)).split_k, 1);
            CHECK_EQ(best(mode, *device, problem(mode, 64, 64, 64)).split_k, 1);
        }
    }
}

// FP8 on a card that multiplies it and on one that does not.
TEST(fp8_itself_where_the_card_multiplies_it_and_as_float16_elsewhere) {
    const DeviceProperties ada = card(89, 99, 128, 2520000, 72);
    GemmProblem p;
    p.m = p.n = p.k = 4096;
    p.a = Operand::row_major(DType::e4m3, p.k);
    p.b = Operand::row_major(DType::e5m2, p.n);
    p.c = p.d = Operand::row_major(DType::f16, p.n);
    const auto takers = [](const GemmProblem& problem, const DeviceProperties& device) {
        int fp8 = 0, others = 0;
        for (const KernelInfo* row : rows()) {
            if (!rejection(*row, ValidProblem::check(problem), device).empty()) continue;
            ++(row->needs.fp8 ? fp8 : others);
        }
        return std::pair{fp8, others};
    };
    if (rows().empty()) return;
    // Of products that are exact, four rows with FP32 sums keep the promise of FP8 to a K of 65536.
    CHECK(takers(p, kConsumer) == (std::pair{0, 5}));
    CHECK(takers(p, ada) == (std::pair{2, 5}));
    GemmProblem longer = p;
    longer.k = 65537;
    longer.a = Operand::row_major(DType::e4m3, longer.k);
    CHECK(takers(longer, kConsumer) == (std::pair{0, 1}));
    GemmProblem fast = p;
    fast.accumulate = Accumulate::fast;
    CHECK(takers(fast, ada).first == 4);
    // One kind of sums only, where bits may not depend on M.
    fast.determinism = p.determinism = Determinism::batch_invariant;
    CHECK(takers(p, ada) == (std::pair{2, 0}));
    CHECK(takers(fast, ada) == (std::pair{2, 0}));
    CHECK(takers(fast, kConsumer) == (std::pair{0, 4}));  // in FP32, not promoted

    p.determinism = Determinism::run_to_run;
    // Asked for FP16 sums of what FP8 holds: not what FP8 tensor cores promise.
    p.precision = Precision::fp16;
    CHECK(takers(p, ada) == (std::pair{0, 4}));
    p.precision = Precision::automatic;
    p.scale_a.kind = p.scale_b.kind = ScaleKind::tensor;
    CHECK(takers(p, ada) == (std::pair{2, 0}));
    CHECK(takers(p, kConsumer) == (std::pair{0, 0}));
    // Of blocks: the one whose registers hold them, and whole sums alone.
    p.m = p.n = 64;
    p.k = 65536;
    p.a = Operand::row_major(DType::e4m3, p.k);
    p.b = p.c = p.d = Operand::row_major(DType::f16, p.n);
    p.b.dtype = DType::e5m2;
    p.scale_a.kind = p.scale_b.kind = ScaleKind::block_128x128;
    p.scale_a.outer_stride = p.k / kScaleBlock;
    p.scale_a.k_stride = 1;
    p.scale_b.k_stride = 1;
    CHECK(takers(p, ada) == (std::pair{1, 0}));
    for (const KernelInfo* row : rows()) {
        const ValidProblem valid = ValidProblem::check(p);
        if (rejection(*row, valid, ada).empty()) CHECK_EQ(row->schedule(valid, ada).split_k, 1);
    }
}

TEST(every_cost_is_a_time) {
    for (const Mode& mode : kModes) {
        for (const KernelInfo* row : rows(mode, kH200)) {
            for (const std::int64_t size : {1, 100, 4096, 65536}) {
                for (const std::int64_t k : {0, 1, 4096, 1 << 30}) {
                    const double cost = row->schedule(problem(mode, size, size, k), kH200).cost_us;
                    CHECK(std::isfinite(cost) && cost > 0);
                }
            }
        }
    }
}

}  // namespace

int main() { return check::run(); }
