// The host family's products, on every instruction set that this CPU has, against plain loops that
// round with the C library and sum in long double.
#include "kernels/host/gemm.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "../check.hpp"
#include "host_matrix.hpp"
#include "tcgemm/error.hpp"

using namespace host_test;

namespace {

constexpr double kU16 = 0x1p-11, kUb = 0x1p-8, kU32 = 0x1p-24, kU64 = 0x1p-53;
constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};

struct ModeRow {
    Mode mode;
    DType compute;
    double unit;  // of the accumulator
};
constexpr ModeRow kModes[] = {
    {Mode::f32, DType::f32, kU32},       {Mode::f16, DType::f16, kU32},
    {Mode::f16_acc16, DType::f16, kU16}, {Mode::bf16, DType::bf16, kU32},
    {Mode::f64, DType::f64, kU64},       {Mode::i8, DType::i8, 0},
};

double unit_of(DType dtype) {
    switch (dtype) {
        case DType::f16: return kU16;
        case DType::bf16: return kUb;
        case DType::f32: return kU32;
        case DType::f64: return kU64;
        default: return 0;
    }
}
double smallest_of(DType dtype) {  // spacing of its subnormals
    switch (dtype) {
        case DType::f16: return 0x1p-24;
        case DType::bf16: return 0x1p-133;
        case DType::f32: return 0x1p-149;
        case DType::f64: return 0x1p-1074;
        default: return 0;
    }
}

GemmArgs arguments(Matrix& a, Matrix& b, Matrix* c, Matrix& d, double alpha = 1, double beta = 0) {
    GemmArgs args;
    args.m = d.rows, args.n = d.cols, args.k = a.cols;
    args.batch.rank = 1;
    args.batch.count = args.batch.extent[0] = d.batches;
    args.a = a.view(), args.b = b.view(), args.d = d.view(), args.c = args.d;
    args.c.data = nullptr;
    if (c != nullptr) args.c = c->view();
    args.alpha = alpha, args.beta = beta;
    return args;
}

// What the mode rounds an element of A or B to.
double rounded(double value, DType compute) {
    switch (compute) {
        case DType::f16: return to_float(to_half(value));
        case DType::bf16: return to_float(to_bfloat16(value));
        case DType::f32: return static_cast<float>(value);
        default: return value;
    }
}

// |D - exact| <= |alpha| c |A||B| + 2 u |beta||C| + u_out |exact|, for every element.
void check_product(const ModeRow& mode, const Matrix& a, const Matrix& b, const Matrix* c,
                   const Matrix& d, double alpha, double beta, double c_factor,
                   const std::string& what) {
    int wrong = 0;
    for (int64_t batch = 0; batch < d.batches; ++batch) {
        for (int64_t i = 0; i < d.rows; ++i) {
            for (int64_t j = 0; j < d.cols; ++j) {
                long double sum = 0, magnitude = 0;
                for (int64_t k = 0; k < a.cols; ++k) {
                    const long double product =
                        static_cast<long double>(rounded(a.get(batch, i, k), mode.compute)) *
                        rounded(b.get(batch, k, j), mode.compute);
                    sum += product;
                    magnitude += std::abs(product);
                }
                const long double c_term =
                    beta == 0 ? 0 : beta * static_cast<long double>(c->get(batch, i, j));
                const long double exact = alpha * sum + c_term;
                const long double bound =
                    std::abs(alpha) * c_factor * magnitude + 2 * mode.unit * std::abs(c_term) +
                    (unit_of(d.dtype) + mode.unit) * std::abs(exact) + smallest_of(d.dtype);
                if (!(std::abs(d.get(batch, i, j) - exact) <= bound)) ++wrong;
            }
        }
    }
    if (wrong > 0)
        check::fail(__FILE__, __LINE__,
                    what + ": " + std::to_string(wrong) + " elements are wrong");
}

double hard_factor(const ModeRow& mode, int64_t k) {
    if (mode.mode == Mode::f16_acc16) return (static_cast<double>(k) / 4 + 2) * kU16;
    return static_cast<double>(k) * mode.unit;
}

DType natural_output(const ModeRow& mode) {
    return mode.mode == Mode::i8 ? DType::i32 : mode.compute;
}

TEST(odd_sizes_layouts_dtypes_and_threads) {
    std::mt19937 random(3);
    const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 65, 97, 100};
    const int64_t depths[] = {1, 2, 3, 8, 31, 32, 33, 64, 100, 255, 256, 257, 511, 512, 513, 600};
    const auto pick = [&](const auto& list) { return list[random() % std::size(list)]; };
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            for (int round = 0; round < 40; ++round) {
                const int64_t m = pick(sizes), n = pick(sizes), k = pick(depths);
                const bool integer = mode.mode == Mode::i8;
                const auto layout = [&](DType dtype, int64_t rows, int64_t cols, bool may_repeat) {
                    const int64_t gap = random() % 3;
                    switch (random() % (may_repeat ? 7 : 5)) {
                        case 0: return Matrix(dtype, rows, cols, cols + gap, 1);
                        case 1: return Matrix(dtype, rows, cols, 1, rows + gap);
                        case 2: return Matrix(dtype, rows, cols, -(cols + gap), 1);
                        case 3: return Matrix(dtype, rows, cols, 2 * cols + gap, -2);
                        case 4: return Matrix(dtype, rows, cols, 3, 3 * rows + gap);
                        case 5: return Matrix(dtype, rows, cols, 0, 1);
                        default: return Matrix(dtype, rows, cols, 1, 0);
                    }
                };
                const DType in_a = integer ? DType::i8 : pick(kFloats),
                            in_b = integer ? DType::i8 : pick(kFloats);
                const DType out = integer ? DType::i32 : pick(kFloats);
                Matrix a = layout(in_a, m, k, true), b = layout(in_b, k, n, true);
                Matrix c = layout(out, m, n, true), d = layout(out, m, n, false);
                a.fill(random(), -1, 1), b.fill(random(), -1, 1), c.fill(random(), -1, 1);
                const double scalars[] = {1, 0, -1, 2, integer ? 3 : 0.75};
                const double alpha = random() % 3 ? 1 : scalars[2 + random() % 3],
                             beta = pick(scalars);
                gemm((*set)[mode.mode], arguments(a, b, beta == 0 ? nullptr : &c, d, alpha, beta),
                     static_cast<int>(1 + random() % 3));
                const std::string what = std::string(set->name) + " mode " +
                                         std::to_string(static_cast<int>(mode.mode)) + " " +
                                         std::to_string(m) + "x" + std::to_string(n) + "x" +
                                         std::to_string(k) + " " + name(in_a) + " " + name(in_b) +
                                         " " + name(out);
                check_product(mode, a, b, &c, d, alpha, beta, hard_factor(mode, k), what);
                CHECK(guards_intact(d));
            }
        }
    }
}

TEST(sums_of_one_sign_keep_the_gate_for_long_k) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            if (mode.mode == Mode::f16_acc16) continue;
            const bool promotes = mode.unit == kU32;
            for (const int64_t k : {1000, 16384, 262144, 1 << 22}) {
                const bool once = set == usable_instruction_sets()[0] && mode.mode == Mode::f16;
                if (k > 262144 && !once) continue;  // the plain loops take seconds
                Matrix a = row_major(mode.compute, 3, k), b = row_major(mode.compute, k, 5);
                Matrix d = row_major(mode.mode == Mode::i8    ? DType::i32
                                     : mode.mode == Mode::f64 ? DType::f64
                                                              : DType::f32,
                                     3, 5);
                a.fill(1, 0, mode.mode == Mode::i8 ? 0.5 : 1),
                    b.fill(2, 0, mode.mode == Mode::i8 ? 0.5 : 1);
                gemm((*set)[mode.mode], arguments(a, b, nullptr, d), 2);
                const double fp32_gate = std::max(8.0, 2 * std::sqrt(static_cast<double>(k)));
                const double gate = (promotes ? std::min(64.0, fp32_gate) : fp32_gate) * mode.unit;
                check_product(mode, a, b, nullptr, d, 1, 0, gate,
                              std::string(set->name) + " K=" + std::to_string(k));
            }
        }
    }
}

TEST(fp16_accumulation_rounds_after_every_fourth_product) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const double scale : {1.0, 0x1p-9, 90.0}) {  // usual, subnormal and overflowing sums
            Matrix a = row_major(DType::f16, 9, 702), b = row_major(DType::f16, 702, 50),
                   d = row_major(DType::f16, 9, 50);
            a.fill(1, -scale / 4, scale), b.fill(2, -scale / 4, scale);
            gemm((*set)[Mode::f16_acc16], arguments(a, b, nullptr, d), 2);
            for (int64_t i = 0; i < d.rows; ++i) {
                for (int64_t j = 0; j < d.cols; ++j) {
                    float sum = 0;
                    for (int64_t k = 0; k < a.cols; ++k) {
                        const float product =
                            static_cast<float>(a.get(0, i, k)) * static_cast<float>(b.get(0, k, j));
                        sum += product;
                        if (k % 4 == 3 || k == a.cols - 1) sum = to_float(to_half(sum));
                    }
                    CHECK_EQ(to_half(sum).bits, to_half(d.get(0, i, j)).bits);
                }
            }
        }
    }
}

// D's memory, for a comparison of bits.
std::vector<std::byte> bits_of(const InstructionSet& set, const ModeRow& mode, int64_t m, int64_t n,
                               int64_t k, int threads) {
    Matrix a = row_major(mode.compute, m, k), b = row_major(mode.compute, k, n),
           d = row_major(natural_output(mode), m, n);
    a.fill(11, -1, 1), b.fill(12, -1, 1);
    gemm(set[mode.mode], arguments(a, b, nullptr, d), threads);
    return d.memory;
}

TEST(bits_depend_neither_on_threads_nor_on_the_instruction_set) {
    for (const ModeRow& mode : kModes) {
        const bool inexact = mode.mode == Mode::f32 || mode.mode == Mode::f64;
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{150, 210, 700},
                                      {20, 30, 20000},
                                      {1, 1, 50000},
                                      {500, 3, 9000}}) {
            const auto expected = bits_of(*usable_instruction_sets()[0], mode, m, n, k, 1);
            for (const InstructionSet* set : usable_instruction_sets()) {
                // Without fused multiply-add, products of full width are rounded once more.
                if (inexact && std::string(set->name) == "generic") continue;
                for (const int threads : {1, 2, 3, 16})
                    CHECK(bits_of(*set, mode, m, n, k, threads) == expected);
            }
        }
    }
}

// A along K is packed line by line, across it several register tiles at a time.
TEST(bits_do_not_depend_on_how_operands_lie) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            for (const auto& [m, n, k] :
                 {std::array<int64_t, 3>{150, 70, 300}, {48, 48, 128}, {49, 5, 33}, {7, 97, 131}}) {
                Matrix a = row_major(mode.compute, m, k), b = row_major(mode.compute, k, n),
                       a_columns(mode.compute, m, k, 1, m + 3),
                       b_columns(mode.compute, k, n, 1, k + 5);
                for (Matrix* const its : {&a, &a_columns, &b, &b_columns}) its->fill(11, -1, 1);
                const auto bits = [&](Matrix& its_a, Matrix& its_b) {
                    Matrix d = row_major(natural_output(mode), m, n);
                    gemm((*set)[mode.mode], arguments(its_a, its_b, nullptr, d), 1);
                    return d.memory;
                };
                const std::vector<std::byte> expected = bits(a, b);
                CHECK(bits(a_columns, b) == expected && bits(a, b_columns) == expected);
                CHECK(bits(a_columns, b_columns) == expected);
            }
        }
    }
}

// What determinism batch_invariant promises, of every mode: K beyond a slab, blocks of any height.
// Also where so few columns are computed as rows, unless there are as few rows, and where a B that
// lies along K is multiplied in place, which it is by few rows.
TEST(a_row_of_d_depends_on_its_row_of_a_only) {
    const int64_t m = 100, k = 4500;
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            for (const auto& [n, along_k] : {std::pair<int64_t, bool>{1, false},
                                             {3, false},
                                             {7, false},
                                             {120, false},
                                             {7, true},
                                             {120, true}}) {
                Matrix a = row_major(mode.compute, m, k),
                       b = along_k ? Matrix(mode.compute, k, n, 1, k + 3)
                                   : row_major(mode.compute, k, n),
                       all = row_major(natural_output(mode), m, n);
                a.fill(1, -1, 1), b.fill(2, -1, 1);
                gemm((*set)[mode.mode], arguments(a, b, nullptr, all), 1);
                for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 1},
                                                  {1, 1},
                                                  {50, 3},
                                                  {90, 5},
                                                  {92, 8},
                                                  {99, 1},
                                                  {7, 64},
                                                  {0, 17}}) {
                    Matrix some = row_major(natural_output(mode), rows, n);
                    GemmArgs args = arguments(a, b, nullptr, some);
                    args.a.data = a.as<std::byte>() + a.at(0, first, 0) * size_of(mode.compute);
                    gemm((*set)[mode.mode], args, 2);
                    for (int64_t i = 0; i < rows; ++i)
                        for (int64_t j = 0; j < n; ++j)
                            CHECK_EQ(some.get(0, i, j), all.get(0, first + i, j));
                }
            }
        }
    }
}

TEST(batches_strided_broadcast_and_tiny) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            for (const auto& [m, n, k] : {std::array<int64_t, 3>{2, 3, 4}, {1, 1, 1}, {5, 50, 9}}) {
                const int64_t count = 301;
                Matrix a = row_major(mode.compute, m, k, count),
                       b(mode.compute, k, n, n, 1, count, 0);
                Matrix d(natural_output(mode), m, n, n + 1, 1, count, m * (n + 1) + 3);
                a.fill(1, -1, 1), b.fill(2, -1, 1);
                gemm((*set)[mode.mode], arguments(a, b, nullptr, d), 3);
                check_product(mode, a, b, nullptr, d, 1, 0, hard_factor(mode, k),
                              std::string(set->name) + " batch");
                CHECK(guards_intact(d));
            }
        }
    }
}

TEST(an_empty_sum_gives_beta_c_without_reading_a_or_b) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            Matrix none(mode.compute, 1, 1, 1, 1), c = row_major(natural_output(mode), 11, 53),
                                                   d = c;
            c.fill(1, -1, 1);
            for (const double beta : {0.0, 1.0, 2.0}) {
                GemmArgs args = arguments(none, none, beta == 0 ? nullptr : &c, d, 0, beta);
                args.k = 0, args.a.data = args.b.data = nullptr;
                gemm((*set)[mode.mode], args, 2);
                for (int64_t i = 0; i < d.rows; ++i)
                    for (int64_t j = 0; j < d.cols; ++j)
                        CHECK_EQ(d.get(0, i, j), beta * c.get(0, i, j));
            }
        }
    }
}

TEST(inf_and_nan_stay_in_their_rows_and_columns) {
    const double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            if (mode.mode == Mode::i8) continue;
            Matrix a = row_major(mode.compute, 13, 70), b = row_major(mode.compute, 70, 61),
                   d = row_major(mode.compute, 13, 61);
            a.fill(1, 0.5, 1), b.fill(2, 0.5, 1);
            a.set(0, 3, 69, nan), a.set(0, 5, 0, inf), b.set(0, 7, 60, -inf), a.set(0, 8, 7, 0);
            gemm((*set)[mode.mode], arguments(a, b, nullptr, d), 2);
            for (int64_t i = 0; i < d.rows; ++i) {
                for (int64_t j = 0; j < d.cols; ++j) {
                    const double value = d.get(0, i, j);
                    if (i == 3 || (j == 60 && (i == 5 || i == 8)))
                        CHECK(std::isnan(value));  // Inf - Inf, 0 * Inf
                    else if (i == 5)
                        CHECK_EQ(value, inf);
                    else if (j == 60)
                        CHECK_EQ(value, -inf);
                    else
                        CHECK(std::isfinite(value));
                }
            }
        }
    }
}

TEST(int8_sums_are_exact_and_wrap) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const int64_t k : {131071, 131072, 140001}) {
            Matrix a = row_major(DType::i8, 2, k), b = row_major(DType::i8, k, 2),
                   c = row_major(DType::i32, 2, 2), d = c;
            std::fill(a.memory.begin(), a.memory.end(), std::byte{0x80}),
                std::fill(b.memory.begin(), b.memory.end(), std::byte{0x80});
            c.fill(1, -1, 1);
            gemm((*set)[Mode::i8], arguments(a, b, &c, d, -3, 70000), 2);
            const int64_t value = -3 * 16384 * k + 70000 * static_cast<int64_t>(c.get(0, 1, 1));
            CHECK_EQ(d.get(0, 1, 1), static_cast<std::int32_t>(static_cast<std::uint32_t>(value)));
        }
    }
}

TEST(results_round_to_even_overflow_to_inf_and_keep_subnormals) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const auto& [x, y, out, expected] : {std::tuple{2049.0, 1.0, DType::f16, 2048.0},
                                                  {2051.0, 1.0, DType::f16, 2052.0},
                                                  {65520.0, 1.0, DType::f16, HUGE_VAL},
                                                  {65519.0, -1.0, DType::f16, -65504.0},
                                                  {0x1p-12, 0x1p-12, DType::f16, 0x1p-24},
                                                  {0x1p-12, 0x1.8p-12, DType::f16, 0x1p-23},
                                                  {0x1p-70, 0x1p-70, DType::f32, 0x1p-140},
                                                  {0x1p-70, 0x1p-63, DType::bf16, 0x1p-133},
                                                  {257.0, 1.0, DType::bf16, 256.0}}) {
            Matrix a = row_major(DType::f32, 1, 1), b = row_major(DType::f32, 1, 1),
                   d = row_major(out, 1, 1);
            a.set(0, 0, 0, x), b.set(0, 0, 0, y);
            gemm((*set)[Mode::f32], arguments(a, b, nullptr, d), 1);
            CHECK_EQ(d.get(0, 0, 0), expected);
        }
    }
}

TEST(operands_are_rounded_once_whatever_their_dtype) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        // Just above the tie between 1 and its successor, by less than a float can tell.
        for (const auto& [mode, value, expected] :
             {std::tuple{Mode::f16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
              {Mode::f16_acc16, 1 + 0x1p-11, 1.0},
              {Mode::bf16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
              {Mode::bf16, 1 + 0x1p-8, 1.0},
              {Mode::f32, 1 + 0x1p-24 + 0x1p-50, 1 + 0x1p-23},
              {Mode::f64, 1 + 0x1p-52, 1 + 0x1p-52}}) {
            for (const int64_t size : {1, 70}) {  // short runs and whole vectors
                Matrix a = row_major(DType::f64, size, 1), one = row_major(DType::f16, 1, size),
                       d = row_major(DType::f64, size, size);
                for (int64_t i = 0; i < size; ++i) a.set(0, i, 0, value), one.set(0, 0, i, 1);
                gemm((*set)[mode], arguments(a, one, nullptr, d), 1);
                CHECK_EQ(d.get(0, size - 1, 0), expected);
                CHECK_EQ(d.get(0, 0, size - 1), expected);
            }
        }
    }
}

TEST(the_callers_floating_point_settings_change_nothing) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        for (const ModeRow& mode : kModes) {
            const auto expected = bits_of(*set, mode, 40, 50, 60, 1);
            std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
            _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
            const unsigned before = _mm_getcsr();
#endif
            Matrix a = row_major(mode.compute, 40, 60), b = row_major(mode.compute, 60, 50),
                   d = row_major(natural_output(mode), 40, 50);
            Matrix tiny = row_major(DType::f32, 1, 1), one = tiny, result = tiny;
            std::fesetround(FE_TONEAREST);
            a.fill(11, -1, 1), b.fill(12, -1, 1);
            tiny.as<std::uint32_t>()[tiny.at(0, 0, 0)] = 3, one.set(0, 0, 0, 1);  // 3 * 2^-149
            std::fesetround(FE_UPWARD);
            gemm((*set)[mode.mode], arguments(a, b, nullptr, d), 1);
            gemm((*set)[Mode::f32], arguments(tiny, one, nullptr, result), 1);
            CHECK_EQ(std::fegetround(), FE_UPWARD);
#if defined(__SSE2__)
            CHECK_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu);
            _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
            std::fesetround(FE_TONEAREST);
            CHECK(d.memory == expected);
            CHECK_EQ(result.as<std::uint32_t>()[result.at(0, 0, 0)], 3u);
        }
    }
}

TEST(many_threads_call_at_once_and_so_does_a_forked_child) {
    const InstructionSet& set = *usable_instruction_sets()[0];
    const auto expected = bits_of(set, kModes[0], 150, 210, 700, 1);
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 16; ++i) {
        callers.emplace_back([&] {
            for (int round = 0; round < 5; ++round)
                wrong += bits_of(set, kModes[0], 150, 210, 700, 4) != expected;
        });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK_EQ(wrong.load(), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(bits_of(set, kModes[0], 150, 210, 700, 4) == expected ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(the_instruction_set_can_be_named) {
    for (const InstructionSet* set : usable_instruction_sets()) {
        setenv("TCGEMM_HOST_ISA", set->name, 1);
        CHECK_EQ(std::string(chosen_instruction_set().name), set->name);
    }
    setenv("TCGEMM_HOST_ISA", "mmx", 1);
    CHECK_THROWS(InvalidArgument, chosen_instruction_set(), "generic");
    unsetenv("TCGEMM_HOST_ISA");
    CHECK_EQ(std::string(chosen_instruction_set().name), usable_instruction_sets()[0]->name);
}

}  // namespace

int main() { return check::run(); }
