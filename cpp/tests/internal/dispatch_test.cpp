#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../check.hpp"
#include "dispatch/registry.hpp"
#include "dispatch/select.hpp"
#include "tcgemm/error.hpp"
#include "tcgemm/plan.hpp"

using namespace tcgemm;

namespace {

GemmProblem square(std::int64_t size, DType dtype) {
    GemmProblem p;
    p.m = p.n = p.k = size;
    p.a = p.b = p.c = p.d = Operand::row_major(dtype, size);
    return p;
}

DeviceProperties gpu(int major, int minor) {
    DeviceProperties device;
    device.device = Device::cuda(0);
    device.name = "made-up GPU";
    device.cc_major = major;
    device.cc_minor = minor;
    device.sm_count = 80;
    device.shared_memory_per_block = major == 7 && minor == 5 ? 64 << 10 : 96 << 10;
    device.l2_bytes = 6 << 20;
    device.total_memory = std::int64_t{16} << 30;
    device.clock_khz = 1500000;
    return device;
}

TEST(knows_which_code_runs_where) {
    CHECK(runs_on("70;75;90a;90-virtual", 70));
    CHECK(!runs_on("75;80", 70));
    CHECK(runs_on("70", 75));  // a later minor of the same major runs the cubin
    CHECK(!runs_on("86", 80));
    CHECK(runs_on("90a", 90));
    CHECK(!runs_on("90a", 100));  // "a" code runs on no other
    CHECK(runs_on("90-virtual", 100));
    CHECK(!runs_on("90-virtual", 89));
    CHECK(!runs_on("", 90));
}

TEST(kernel_names_are_unique_and_begin_with_their_family) {
    const std::vector<KernelDescription> all = kernels();
    CHECK(!all.empty());
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK_EQ(all[i].name.rfind(all[i].family + "_", 0), std::size_t{0});
        for (std::size_t j = 0; j < i; ++j) CHECK(all[i].name != all[j].name);
    }
}

TEST(host_problems_go_to_the_host_family) {
    const ValidProblem problem = ValidProblem::check(square(64, DType::f32));
    const Choice choice = select(problem, properties(Device::cpu()), {});
    CHECK_EQ(std::string(choice.family->name), "host");
}

std::string refusal(const GemmProblem& problem, const DeviceProperties& device,
                    const Forced& forced) {
    try {
        select(ValidProblem::check(problem), device, forced);
    } catch (const NoKernelError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(says_each_reason_once_where_no_candidate_accepts) {
    GemmProblem problem = square(64, DType::f32);
    problem.precision = Precision::fp32_simt;
    const std::string text = refusal(problem, gpu(9, 0), {"host", ""});
    if (!runs_on(build_info().architectures, 90)) {
        return CHECK(text.find("has no code for compute capability 9.0") < text.size());
    }
    CHECK(text.find("TCGEMM_FORCE_FAMILY=host:\n  all 7 of host: takes host memory") < text.size());
    CHECK_EQ(refusal(problem, gpu(9, 0), {"", "host_float32"}),
             "no kernel computes this product on made-up GPU under "
             "TCGEMM_FORCE_KERNEL=host_float32:\n"
             "  host_float32: takes host memory, the operands are on a GPU");
    for (const char* family : {"sm80_mma", "sm90_wgmma"}) {
        const std::string message = refusal(problem, gpu(9, 0), {family, ""});
        CHECK(message.find(" more: ") != std::string::npos);
        CHECK(std::count(message.begin(), message.end(), '\n') <= 20);
    }
}

TEST(explains_that_an_empty_product_needs_no_kernel) {
    GemmProblem problem = square(8, DType::f16);
    problem.batch_rank = 1;  // and no matrix in it
    for (const DeviceProperties& device : {gpu(9, 0), properties(Device::cpu())}) {
        for (const KernelVerdict& verdict : explain(problem, device)) {
            CHECK(!verdict.chosen && !verdict.reason.empty());
        }
    }
}

TEST(an_unknown_forced_name_is_an_error) {
    setenv("TCGEMM_FORCE_FAMILY", "no_such_family", 1);
    CHECK_THROWS(InvalidArgument, Plan(square(8, DType::f32), Device::cpu()), "no_such_family");
    unsetenv("TCGEMM_FORCE_FAMILY");
    setenv("TCGEMM_FORCE_KERNEL", "no_such_kernel", 1);
    CHECK_THROWS(InvalidArgument, Plan(square(8, DType::f32), Device::cpu()), "no_such_kernel");
    unsetenv("TCGEMM_FORCE_KERNEL");
}

TEST(every_tensor_core_gpu_has_a_kernel_for_every_dtype) {
    if (build_info().cuda_version.empty()) return;  // a host-only build has none
    int covered = 0;
    for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {12, 0}}) {
        // A build for fewer architectures serves fewer cards.
        if (!runs_on(build_info().architectures, 10 * major + minor)) continue;
        ++covered;
        for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
            const ValidProblem problem = ValidProblem::check(square(2048, dtype));
            const Choice choice = select(problem, gpu(major, minor), {});
            const bool is_16_bit = dtype == DType::f16 || dtype == DType::bf16;
            const std::string expected = dtype != DType::f64 && major == 9   ? "sm90_wgmma"
                                         : is_16_bit && major >= 8           ? "sm80_mma"
                                         : dtype == DType::f64 && major >= 8 ? "sm80_mma"
                                         : dtype == DType::f32 && major == 8 && minor == 0
                                             ? "sm80_mma"
                                         : dtype == DType::f16 && major >= 7 ? "sm70_wmma"
                                                                             : "simt";
            CHECK_EQ(std::string(choice.family->name), expected);
        }
    }
    CHECK(covered > 0);
}

TEST(knows_which_code_a_device_takes) {
    CHECK_EQ(code_for("80;86;89;90;90-virtual", 89), 89);
    CHECK_EQ(code_for("86", 89), 86);  // rows that need code for 8.9 are not in it
    CHECK_EQ(code_for("70", 75), 70);
    CHECK_EQ(code_for("90;90-virtual", 120), 90);
    CHECK_EQ(code_for("90a", 120), 0);
}

TEST(int8_goes_to_tensor_cores_from_turing_on) {
    for (const auto& [major, minor] : {std::pair{7, 0}, {7, 5}, {8, 0}}) {
        const DeviceProperties card = gpu(major, minor);
        if (!runs_on(build_info().architectures, card.cc())) continue;
        for (const DType out : {DType::i32, DType::f32}) {
            for (const auto determinism : {Determinism::run_to_run, Determinism::batch_invariant}) {
                GemmProblem problem = square(2048, DType::i8);
                problem.c = problem.d = Operand::row_major(out, 2048);
                problem.determinism = determinism;
                const ValidProblem valid = ValidProblem::check(problem);
                const Choice choice = select(valid, card, {});
                CHECK_EQ(std::string(choice.family->name), major == 8   ? "sm80_mma"
                                                           : minor == 5 ? "sm70_wmma"
                                                                        : "simt");
                if (card.cc() == 70) {
                    CHECK_THROWS(NoKernelError, select(valid, card, {"sm70_wmma", ""}),
                                 "needs a Turing GPU or a newer one (compute capability 7.5), the "
                                 "device has 7.0");
                }
            }
        }
    }
}

TEST(turing_gets_tiles_of_eight_warps) {  // its shared memory holds one block with four
    const DeviceProperties card = gpu(7, 5);
    if (!runs_on(build_info().architectures, card.cc())) return;
    GemmProblem problem = square(4096, DType::f16);
    CHECK_EQ(std::string(select(ValidProblem::check(problem), card, {}).kernel->name),
             "sm70_wmma_f16_128x256x32");
    problem = square(4096, DType::i8);
    problem.c = problem.d = Operand::row_major(DType::i32, 4096);
    CHECK_EQ(std::string(select(ValidProblem::check(problem), card, {}).kernel->name),
             "sm70_wmma_i8_128x256x64");
}

TEST(float32_goes_to_tensor_cores_in_halves_where_that_is_worth_the_packing) {
    const DeviceProperties card = gpu(9, 0);
    if (!runs_on(build_info().architectures, card.cc())) return;
    const auto choose = [&](const GemmProblem& problem, const Forced& forced = {}) {
        return select(ValidProblem::check(problem), card, forced);
    };
    const auto family = [&](const GemmProblem& problem) {
        return std::string(choose(problem).family->name);
    };
    for (const std::int64_t size : {2048, 4095, 4096, 16384}) {
        const Choice choice = choose(square(size, DType::f32));
        CHECK_EQ(std::string(choice.family->name), "sm90_wgmma");
        CHECK(choice.kernel->needs.halves());
        CHECK(choice.fallback != nullptr);
        CHECK(choice.schedule.cost_us < choice.fallback_schedule.cost_us);
    }
    CHECK_EQ(family(square(64, DType::f32)), "simt");
    CHECK_EQ(family(square(256, DType::f32)), "simt");
    // Of fewer than 32 products none fits: the pass would be in vain.
    for (const std::int64_t k : {1, 19, 31}) {
        GemmProblem problem = square(8192, DType::f32);
        problem.k = k;
        problem.a = Operand::row_major(DType::f32, k);
        const Choice choice = choose(problem);
        CHECK_EQ(std::string(choice.family->name), "simt");
        CHECK(choice.fallback == nullptr);
    }
    // By name, a small product too, with what computes operands that do not fit.
    const Choice forced = choose(square(64, DType::f32), {"sm90_wgmma", ""});
    CHECK(forced.kernel->needs.halves());
    CHECK_EQ(std::string(forced.fallback->name).substr(0, 8), "simt_f32");

    GemmProblem problem = square(4096, DType::f32);
    problem.precision = Precision::fp32_simt;
    CHECK_EQ(family(problem), "simt");
    problem.precision = Precision::fp32;
    CHECK_EQ(family(problem), "sm90_wgmma");
    problem.accumulate = Accumulate::promoted;
    CHECK_EQ(family(problem), "sm90_wgmma");
    problem.determinism = Determinism::batch_invariant;  // all of A decides: see rejects
    CHECK_EQ(family(problem), "simt");
    problem = square(4096, DType::f16);
    CHECK(choose(problem).fallback == nullptr);
}

// Nothing is packed for the kernel that computes what does not fit halves.
TEST(a_fallback_takes_operands_where_they_lie) {
    const DeviceProperties card = gpu(9, 0);
    if (!runs_on(build_info().architectures, card.cc())) return;
    for (const std::int64_t k : {4, 16, 300}) {
        for (const std::int64_t size : {16, 64, 8192}) {
            GemmProblem problem = square(size, DType::f32);
            problem.k = k;
            problem.a = Operand::row_major(DType::f32, k);
            const auto fallback = [&] {
                return select(ValidProblem::check(problem), card, {"sm90_wgmma", ""}).fallback;
            };
            CHECK(fallback() != nullptr);
            problem.a.row_stride = 2 * k;
            problem.a.col_stride = 2;
            CHECK_EQ(fallback()->needs.vector_bytes, 0);
            problem.a = Operand::row_major(DType::f32, k);
            problem.b.row_stride = 3 * size;
            problem.b.col_stride = 3;
            CHECK_EQ(fallback()->needs.vector_bytes, 0);
        }
    }
}

// The fallback, too, which reads what was converted.
TEST(operands_of_other_dtypes_are_converted_for_halves) {
    const DeviceProperties card = gpu(9, 0);
    if (!runs_on(build_info().architectures, card.cc())) return;
    const auto choose = [&](DType a, DType b) {
        GemmProblem problem = square(4096, DType::f32);
        problem.precision = Precision::fp32;
        problem.a.dtype = a;
        problem.b.dtype = b;
        problem.b.row_stride = 2 * 4096;
        return select(ValidProblem::check(problem), card, {});
    };
    const double in_float32 = choose(DType::f32, DType::f32).schedule.cost_us;
    for (const DType other : {DType::f16, DType::bf16, DType::f64}) {
        for (const Choice& choice : {choose(other, DType::f32), choose(DType::f32, other)}) {
            CHECK(choice.kernel->needs.halves());
            CHECK(choice.fallback != nullptr);
            CHECK(choice.schedule.cost_us > in_float32);  // by the pass that converts
        }
        CHECK(choose(other, other).kernel->needs.halves());
    }
}

TEST(sums_in_fp32_serve_where_those_in_fp16_are_no_faster) {
    for (const auto& [major, minor] : {std::pair{8, 0}, {8, 6}, {9, 0}, {12, 0}}) {
        DeviceProperties card = gpu(major, minor);
        card.shared_memory_per_block = 99 << 10;
        if (!runs_on(build_info().architectures, card.cc())) continue;
        const auto kernel = [&](std::int64_t m, Determinism determinism) {
            GemmProblem problem = square(4096, DType::f16);
            problem.m = m;
            problem.accumulate = Accumulate::fp16;
            problem.determinism = determinism;
            return std::string(select(ValidProblem::check(problem), card, {}).kernel->name);
        };
        const bool in_fp16 = kernel(16, Determinism::run_to_run).find("acc16") != std::string::npos;
        // Those of GeForce cards may be.
        CHECK_EQ(in_fp16, card.cc() != 80 && card.cc() != 90);
        CHECK(kernel(16, Determinism::batch_invariant).find("acc16") != std::string::npos);
    }
}

// Their FP32 units are slow beside their tensor cores, those of other cards with mma.sync are not.
TEST(float32_goes_to_tensor_cores_in_halves_on_a100_but_not_on_consumer_cards) {
    const std::pair<int, int> cards[] = {{8, 0}, {8, 6}, {8, 9}, {12, 0}};
    for (const auto& [major, minor] : cards) {
        const DeviceProperties card = gpu(major, minor);
        if (!runs_on(build_info().architectures, card.cc())) continue;
        const ValidProblem problem = ValidProblem::check(square(4096, DType::f32));
        const Choice choice = select(problem, card, {});
        const bool in_halves = card.cc() == 80;
        CHECK_EQ(std::string(choice.family->name), in_halves ? "sm80_mma" : "simt");
        CHECK_EQ(choice.fallback != nullptr, in_halves);
        if (in_halves) CHECK_EQ(std::string(choice.fallback->name).substr(0, 8), "simt_f32");
        CHECK_EQ(std::string(
                     select(ValidProblem::check(square(128, DType::f32)), card, {}).family->name),
                 "simt");
    }
}

// There few FP64 lanes bound every kernel, so that all else must tell them apart.
TEST(a_turing_card_does_not_compute_large_fp64_products_row_by_row) {
    const DeviceProperties card = gpu(7, 5);
    if (!runs_on(build_info().architectures, card.cc())) return;
    for (const std::int64_t size : {1024, 4096}) {
        const ValidProblem problem = ValidProblem::check(square(size, DType::f64));
        CHECK(select(problem, card, {}).kernel->tile.block_m >= 32);
    }
}

// A warp for each of many small matrices, which a tile of tensor cores' kernels would hardly fill.
TEST(batches_of_small_matrices_have_kernels_of_their_own) {
    for (const auto& [major, minor] : {std::pair{8, 0}, {9, 0}}) {
        const DeviceProperties card = gpu(major, minor);
        if (!runs_on(build_info().architectures, card.cc())) continue;
        const auto is_whole_k = [&](std::int64_t size, DType dtype, std::int64_t count,
                                    Accumulate accumulate = Accumulate::automatic) {
            GemmProblem problem = square(size, dtype);
            problem.accumulate = accumulate;
            problem.batch_rank = 1;
            problem.batch_shape[0] = count;
            for (Operand* const operand : {&problem.a, &problem.b, &problem.c, &problem.d}) {
                operand->batch_stride[0] = size * size;
            }
            const Choice choice = select(ValidProblem::check(problem), card, {});
            return std::string(choice.kernel->name).find("_whole_k_") != std::string::npos;
        };
        for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
            CHECK(is_whole_k(8, dtype, 10'000));
            CHECK(is_whole_k(16, dtype, 10'000));
            CHECK(!is_whole_k(256, dtype, 100));
            if (dtype == DType::f64) continue;
            CHECK(is_whole_k(16, dtype, 10'000, Accumulate::promoted));  // one partial sum
        }
        CHECK(is_whole_k(31, DType::f16, 4096));
    }
}

// Packing costs more than reading B, which is most of what few rows cost.
TEST(few_rows_of_what_others_pack_go_to_cuda_cores) {
    for (const auto& [major, minor] : {std::pair{8, 0}, {9, 0}}) {
        const DeviceProperties card = gpu(major, minor);
        if (!runs_on(build_info().architectures, card.cc())) continue;
        const auto choose = [&](const GemmProblem& problem, const Forced& forced = {}) {
            const Choice choice = select(ValidProblem::check(problem), card, forced);
            return std::string(choice.kernel->name);
        };
        const auto is_tensor = [&](const GemmProblem& problem, const Forced& forced = {}) {
            return choose(problem, forced).rfind("simt", 0) != 0;
        };
        for (const DType dtype : {DType::f16, DType::bf16}) {
            GemmProblem odd = square(8191, dtype);
            CHECK(is_tensor(odd));
            const std::string kernel = dtype == DType::f16 ? "simt_f16" : "simt_bf16";
            odd.m = 1;
            CHECK_EQ(choose(odd), kernel + "_1x32x256");
            CHECK(is_tensor(odd, {major == 9 ? "sm90_wgmma" : "sm80_mma", ""}));
            odd.m = 128;
            CHECK(is_tensor(odd));
            odd.m = 8191;
            odd.n = 1;
            odd.b = Operand::row_major(dtype, 1);
            CHECK(!is_tensor(odd));
            odd.determinism = Determinism::batch_invariant;
            CHECK(is_tensor(odd));
            GemmProblem whole = square(8192, dtype);
            whole.m = 1;
            CHECK(is_tensor(whole));
        }
        GemmProblem rounded = square(8191, DType::f32);
        rounded.precision = Precision::tf32;
        CHECK(is_tensor(rounded));
        rounded.m = 3;
        CHECK_EQ(choose(rounded), std::string("simt_tf32_8x32x256"));
    }
}

// Its elements are as large as the smallest piece that is copied without registers.
TEST(float64_of_odd_strides_is_not_packed) {
    DeviceProperties h200 = gpu(9, 0);
    if (!runs_on(build_info().architectures, h200.cc())) return;
    h200.sm_count = 132;
    h200.shared_memory_per_block = 227 << 10;
    h200.clock_khz = 1980000;
    h200.memory_gb_per_s = 4802;
    const auto choose = [&](std::int64_t m, std::int64_t size) {
        GemmProblem problem = square(size, DType::f64);
        problem.m = m;
        for (Operand* const operand : {&problem.a, &problem.b, &problem.c, &problem.d}) {
            operand->alignment = 16;
        }
        const Choice choice = select(ValidProblem::check(problem), h200, {});
        return std::string(choice.kernel->name);
    };
    CHECK_EQ(choose(1, 8191), std::string("simt_f64_1x32x256"));
    CHECK_EQ(choose(8, 8191), std::string("simt_f64_8x32x256"));
    CHECK_EQ(choose(39, 4097), std::string("sm80_mma_f64_unaligned_64x64x16"));
    CHECK_EQ(choose(4097, 4097), std::string("sm80_mma_f64_unaligned_128x128x16"));
    CHECK_EQ(choose(4096, 4096), std::string("sm80_mma_f64_128x128x16"));
    CHECK_EQ(choose(256, 256), std::string("sm80_mma_f64_32x32x32"));
    CHECK_EQ(choose(768, 768), std::string("sm80_mma_f64_32x64x16"));
    CHECK_EQ(choose(257, 257), std::string("sm80_mma_f64_unaligned_32x32x32"));
}

TEST(neither_m_nor_the_batch_takes_a_batch_invariant_product_to_another_family) {
    const DeviceProperties hopper = gpu(9, 0);
    if (!runs_on(build_info().architectures, hopper.cc())) return;
    const auto family = [&](const GemmProblem& problem, const Forced& forced = {}) {
        return std::string(select(ValidProblem::check(problem), hopper, forced).family->name);
    };
    GemmProblem problem = square(1, DType::f16);
    problem.determinism = Determinism::batch_invariant;
    const std::string of_a_row = family(problem);
    CHECK(of_a_row != "simt");
    problem.m = std::int64_t{1} << 32;  // more rows than a tensor map has
    CHECK_THROWS(NoKernelError, family(problem), "a single row goes to " + of_a_row);
    CHECK_EQ(family(problem, {"simt", ""}), "simt");
    CHECK_EQ(family(problem, {"", "simt_f16_32x32x8"}), "simt");
    problem.determinism = Determinism::run_to_run;
    CHECK(family(problem) != of_a_row);
}

// Parts take turns along K by stages, which are of one k-block or of two: it shows in the bits.
TEST(m_does_not_choose_how_a_batch_invariant_product_deals_out_k) {
    DeviceProperties h200 = gpu(9, 0);
    if (!runs_on(build_info().architectures, h200.cc())) return;
    h200.sm_count = 132;
    h200.shared_memory_per_block = 227 << 10;
    GemmProblem problem;
    problem.n = 40;
    problem.k = 20000;
    problem.a = Operand::row_major(DType::f16, problem.k);
    problem.b = problem.c = problem.d = Operand::row_major(DType::f16, problem.n);
    const auto deals_by_pairs = [&](std::int64_t m) {
        problem.m = m;
        const Choice choice = select(ValidProblem::check(problem), h200, {});
        const std::string name = choice.kernel->name;
        CHECK(choice.schedule.split_k > 1);
        return name == "sm90_wgmma_f16_64x64_pp" || name == "sm90_wgmma_f16_64x128_pp";
    };
    CHECK(deals_by_pairs(64));
    problem.determinism = Determinism::batch_invariant;
    for (const std::int64_t m : {1, 16, 64, 200, 1000, 100000}) CHECK(!deals_by_pairs(m));
    CHECK_THROWS(NoKernelError,
                 select(ValidProblem::check(problem), h200, {"", "sm90_wgmma_f16_64x64_pp"}),
                 "splits K at other places");
    problem.k = 16000;  // in one piece
    CHECK_EQ(std::string(select(ValidProblem::check(problem), h200, {"", "sm90_wgmma_f16_64x64_pp"})
                             .kernel->name),
             "sm90_wgmma_f16_64x64_pp");
}

TEST(no_family_takes_more_tiles_than_it_counts) {
    for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {9, 0}}) {
        const DeviceProperties card = gpu(major, minor);
        if (!runs_on(build_info().architectures, card.cc())) continue;
        GemmProblem problem = square(1, DType::f16);
        problem.m = std::int64_t{1} << 40;
        const ValidProblem valid = ValidProblem::check(problem);
        CHECK_THROWS(NoKernelError, select(valid, card, {"simt", ""}), "at most 2^31 - 1 tiles");
        CHECK_THROWS(NoKernelError, select(valid, card, {}), "at most 2^31 - 1 tiles");
    }
}

bool share(const GemmProblem& p, const Operand& x, std::int64_t x_at, const Operand& y,
           std::int64_t y_at) {
    static float memory[4096];
    return overlaps(memory + 2048 + x_at, footprint(p, x, 4, 6, "X"), memory + 2048 + y_at,
                    footprint(p, y, 4, 6, "Y"));
}

TEST(tells_interleaved_views_from_overlapping_ones) {
    const GemmProblem one;  // no batch
    const Operand wide = Operand::row_major(DType::f32, 12);
    CHECK(share(one, wide, 0, wide, 0));
    CHECK(share(one, wide, 0, wide, 5));
    CHECK(!share(one, wide, 0, wide, 6));  // the left and the right half of the rows
    CHECK(share(one, wide, 0, wide, 7));   // wraps into the next row
    CHECK(!share(one, wide, 6, wide, 0));
    CHECK(!share(one, wide, 0, wide, 42));  // behind it
    CHECK(share(one, wide, 0, Operand::row_major(DType::f32, 7), 6));
    const Operand reversed = {DType::f32, -12, 1, {}, 16};
    CHECK(!share(one, reversed, 36, wide, 6));
    CHECK(share(one, reversed, 36, wide, 3));
    const Operand spread = {DType::f32, 24, 2, {}, 16};
    CHECK(share(one, spread, 0, spread, 2));
    CHECK(!share(one, spread, 0, spread, 1));  // even and odd elements
}

}  // namespace

int main() { return check::run(); }
