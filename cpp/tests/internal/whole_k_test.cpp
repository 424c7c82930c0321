#include <cstdint>
#include <vector>

#include "../check.hpp"
#include "kernels/sm80_mma/strips.hpp"
#include "kernels/whole_k/whole_k.hpp"
#include "simt_products.hpp"

using namespace tcgemm;
using whole_k::Spread;

namespace {

// Copies a part of a matrix as the kernel does, looks for each of its elements where the kernel
// reads it, and for an element in each vector that is read. Strides in elements, `address` in
// bytes. `its_outer`, `its_k`: of a matrix's last part, which may be smaller than those before it.
template <class Element>
bool holds_all(int outer, std::int64_t outer_stride, int k, std::int64_t k_stride, int address,
               Spread spread, int its_outer, int its_k) {
    constexpr int kItem = sizeof(Element);
    constexpr int kThreads = 32;
    whole_k::ImageLayout image =
        whole_k::image_layout(outer, outer_stride, k, k_stride, kItem, address, spread);
    image.walked_by(kThreads);
    // Around address 0 of global memory, where bytes tell where they lie.
    constexpr std::int64_t kAround = 1 << 14;
    std::vector<std::int64_t> shared(static_cast<std::size_t>(image.bytes()), -1);
    const int head = (address % 16 + 16) % 16;
    const int lines = image.lines_of(its_outer, its_k);
    const int line_bytes = image.line_bytes(its_outer, its_k, kItem);
    // Vectors of global memory that have elements of the matrix.
    constexpr std::int64_t kVectorsAround = 1 << 14;
    std::vector<bool> has_elements(2 * kVectorsAround);
    for (int i = its_outer < outer ? -outer : 0; i < its_outer; ++i) {
        for (int j = its_k < k ? -k : 0; j < its_k; ++j) {
            const std::int64_t at = address + (i * outer_stride + j * k_stride) * kItem;
            has_elements[static_cast<std::size_t>(kVectorsAround + (at >> 4))] = true;
        }
    }
    const auto bring = [&](int to, std::int64_t from) {
        if ((address + from) % 16 != 0 || to % 16 != 0) return false;
        const std::int64_t vector = kVectorsAround + (address + from) / 16;
        if (!has_elements[static_cast<std::size_t>(vector)]) return false;
        if (image.swizzle) to = image.swizzled(to / 16) * 16;
        for (int byte = 0; byte < 16; ++byte) {
            const auto at = static_cast<std::size_t>(to + byte);
            if (at >= shared.size() || shared[at] != -1) return false;  // outside, or another's
            shared[at] = kAround + address + from + byte;
        }
        return true;
    };
    for (int thread = 0; thread < kThreads; ++thread) {
        if (image.merged) {
            for (int at = thread * 16 - head; at < line_bytes; at += kThreads * 16) {
                if (!bring(head + at, at)) return false;
            }
            continue;
        }
        whole_k::ImageWalk walk(image, head, static_cast<unsigned>(thread));
        for (int v = thread; walk.line() < lines; walk.next(), v += kThreads) {
            const bool exists = walk.in_line() < line_bytes;
            const whole_k::ImageWalk at(image, head, static_cast<unsigned>(v));
            if (at.to() != walk.to() || at.from() != walk.from() ||
                at.in_line() != walk.in_line()) {
                return false;
            }
            if (exists && !bring(walk.to(), walk.from())) return false;
        }
    }
    const std::int64_t outer_step = image.along_k ? image.pitch : kItem;
    const std::int64_t k_step = image.along_k ? kItem : image.pitch;
    for (int i = 0; i < its_outer; ++i) {
        for (int j = 0; j < its_k; ++j) {
            const std::int64_t from = address + (i * outer_stride + j * k_stride) * kItem;
            const std::int64_t plain = head + i * outer_step + j * k_step;
            const auto at = static_cast<std::size_t>(
                image.swizzle ? image.swizzled(static_cast<int>(plain / 16)) * 16 + plain % 16
                              : plain);
            for (int byte = 0; byte < kItem; ++byte) {
                if (shared[at + static_cast<std::size_t>(byte)] != kAround + from + byte) {
                    return false;
                }
            }
        }
    }
    return true;
}
template <class Element>
bool holds_all(int outer, std::int64_t outer_stride, int k, std::int64_t k_stride, int address,
               Spread spread = Spread::padding) {
    return holds_all<Element>(outer, outer_stride, k, k_stride, address, spread, outer, k);
}

template <class Element>
void check_images() {
    for (const int outer : {1, 2, 15, 16, 31, 32, 33, 64}) {
        for (const int k : {0, 1, 2, 7, 16, 17, 33, 64}) {
            for (const int more : {0, 1, 2, 3, 5, 8, 16, 100}) {
                for (const int offset : {0, 1, 2, 3, 7}) {
                    const int address = 256 + offset * static_cast<int>(sizeof(Element));
                    CHECK(holds_all<Element>(outer, k + more, k, 1, address));
                    CHECK(holds_all<Element>(outer, 1, k, outer + more, address));
                    for (const Spread spread : {Spread::none, Spread::swizzle}) {
                        CHECK(holds_all<Element>(outer, k + more, k, 1, address, spread));
                        CHECK(holds_all<Element>(outer, 1, k, outer + more, address, spread));
                    }
                }
                CHECK(holds_all<Element>(outer, -(k + more), k, 1, 1 << 13));
                CHECK(holds_all<Element>(outer, 0, k, 1, 256));
            }
        }
    }
}

TEST(an_image_holds_each_element_of_any_layout_and_alignment) {
    check_images<std::int8_t>();
    check_images<std::int16_t>();
    check_images<float>();
    check_images<double>();
}

// Lines begin as far apart as whole parts are long, or farther or less far: they overlap.
template <class Element>
void check_last_parts() {
    for (const int outer : {2, 16, 33, 64}) {
        for (const int k : {2, 16, 33, 64}) {
            for (const int its_outer : {1, 2, 15, outer}) {
                for (const int its_k : {1, 2, 15, k}) {
                    if (its_outer > outer || its_k > k) continue;
                    for (const int more : {-1, 0, 1}) {
                        for (const int offset : {0, 1, 7}) {
                            const int address = offset * static_cast<int>(sizeof(Element));
                            for (const Spread spread :
                                 {Spread::none, Spread::padding, Spread::swizzle}) {
                                CHECK(holds_all<Element>(outer, k + more, k, 1, address, spread,
                                                         its_outer, its_k));
                                CHECK(holds_all<Element>(outer, 1, k, outer + more, address, spread,
                                                         its_outer, its_k));
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(nothing_is_read_behind_the_last_part_of_an_operand_that_overlaps) {
    check_last_parts<std::int8_t>();
    check_last_parts<std::int16_t>();
    check_last_parts<float>();
    check_last_parts<double>();
}

TEST(lines_that_begin_at_vectors_bring_nothing_else) {
    CHECK_EQ(whole_k::image_layout(32, 32, 32, 1, 2, 256).line_vectors, 4);
    CHECK_EQ(whole_k::image_layout(32, 32, 32, 1, 2, 2).line_vectors, 5);
    CHECK_EQ(whole_k::image_layout(32, 33, 32, 1, 2, 256).line_vectors, 5);
    CHECK_EQ(whole_k::image_layout(32, 32, 0, 1, 2, 2).vectors(), 0);
}

TEST(lines_that_follow_each_other_are_brought_as_one) {
    CHECK_EQ(whole_k::image_layout(33, 33, 33, 1, 2, 256).vectors(), 137);  // 2,178 bytes
    CHECK_EQ(whole_k::image_layout(33, 34, 33, 1, 2, 256).vectors(), 33 * 5);
    // Of whole vectors only where lines are not read side by side.
    CHECK(!whole_k::image_layout(32, 32, 32, 1, 2, 256).merged);
    CHECK(whole_k::image_layout(32, 32, 32, 1, 2, 256, Spread::none).merged);
}

// Whole vectors of lines that follow each other are read eight lines at once, without a conflict.
TEST(swizzled_vectors_of_eight_lines_lie_in_different_banks) {
    for (const int vectors : {1, 2, 4, 8, 16, 32, 3, 5, 15}) {
        const int k = vectors * 4;
        const whole_k::ImageLayout image =
            whole_k::image_layout(64, k, k, 1, 4, 256, Spread::swizzle);
        CHECK(image.merged);
        for (int line = 0; line < 64; line += 8) {
            for (int vector = 0; vector < vectors; ++vector) {
                unsigned places = 0;
                for (int i = 0; i < 8; ++i) {
                    places |= 1u << image.swizzled((line + i) * vectors + vector) % 8;
                }
                CHECK_EQ(places, 0xffu);
            }
        }
    }
    CHECK(!whole_k::image_layout(64, 24, 24, 1, 4, 256, Spread::swizzle).merged);  // six vectors
    // Lines across K are read along, where nothing meets.
    CHECK(whole_k::image_layout(32, 1, 16, 32, 4, 256, Spread::swizzle).merged);
    CHECK_EQ(whole_k::image_layout(32, 1, 16, 32, 4, 256, Spread::swizzle).swizzle, 0);
    CHECK(!whole_k::image_layout(64, 32, 32, 1, 4, 4, Spread::swizzle).merged);  // misaligned
}

// FP16 on tensor cores, in tiles of 16 x 16 and 32 x 32.
constexpr whole_k::Shape kSmall = {16, 16, 2, 4, 28, 8, 16, 0};
constexpr whole_k::Shape kLarge = {32, 32, 2, 4, 16, 8, 16, 0};

GemmProblem batch_of(std::int64_t size, std::int64_t count) {
    GemmProblem problem;
    problem.m = problem.n = problem.k = size;
    problem.a = problem.b = problem.c = problem.d = Operand::row_major(DType::f16, size);
    problem.batch_rank = 1;
    problem.batch_shape[0] = count;
    for (Operand* const operand : {&problem.a, &problem.b, &problem.c, &problem.d}) {
        operand->batch_stride[0] = size * size;
    }
    return problem;
}
double us(const whole_k::Shape& kernel, const GemmProblem& problem) {
    DeviceProperties device = simt_test::h200();
    device.shared_memory_per_block = 227 << 10;
    return whole_k::squares_us(kernel, ValidProblem::check(problem), device);
}

TEST(a_tile_as_large_as_the_matrices_costs_least) {
    CHECK(us(kSmall, batch_of(8, 16384)) < us(kLarge, batch_of(8, 16384)));
    CHECK(us(kSmall, batch_of(16, 16384)) < us(kLarge, batch_of(16, 16384)));
    CHECK(us(kLarge, batch_of(17, 16384)) < us(kSmall, batch_of(17, 16384)));
    CHECK(us(kLarge, batch_of(32, 16384)) < us(kSmall, batch_of(32, 16384)));
}

TEST(many_matrices_cost_no_less_than_reading_and_storing_them) {
    for (const std::int64_t size : {8, 16, 24, 32}) {
        const GemmProblem problem = batch_of(size, 100'000);
        const double memory_us = 3.0 * static_cast<double>(size * size) * 2 * 100'000 / 4.2e6;
        CHECK(us(kLarge, problem) > memory_us);
        GemmProblem one_for_all = problem;
        one_for_all.a.batch_stride[0] = 0;
        CHECK(us(kLarge, one_for_all) <= us(kLarge, problem));
    }
}

TEST(a_misaligned_operand_costs_more) {
    GemmProblem problem = batch_of(32, 4096);
    const double aligned = us(kLarge, problem);
    problem.a.alignment = 2;
    CHECK(us(kLarge, problem) > aligned);
}

// Whatever its strides are, as packing mends them.
TEST(an_operand_that_is_packed_costs_what_packing_leaves) {
    GemmProblem problem = batch_of(2, 1);
    problem.precision = Precision::fp64;
    problem.accumulate = Accumulate::fp64;
    constexpr whole_k::Shape kDoubles = {16, 16, 8, 8, 16, 14, 16, 0};
    const double usual = us(kDoubles, problem);
    problem.a.row_stride = std::int64_t{1} << 60;
    CHECK_EQ(us(kDoubles, problem), usual);
}

TEST(what_does_not_fit_is_refused_with_a_reason) {
    const auto reason = [](const GemmProblem& problem, const whole_k::Shape& kernel) {
        return whole_k::rejects_size(ValidProblem::check(problem), kernel);
    };
    CHECK_EQ(reason(batch_of(128, 10), kSmall), "");
    CHECK(reason(batch_of(129, 10), kSmall).find("K up to 128") != std::string::npos);
    constexpr whole_k::Shape kDoubles = {32, 32, 8, 8, 8, 14, 16, 0};
    CHECK_EQ(reason(batch_of(32, 10), kDoubles), "");
    CHECK(reason(batch_of(64, 10), kDoubles).find("bytes of shared memory") != std::string::npos);
    GemmProblem invariant = batch_of(16, 10);
    invariant.determinism = Determinism::batch_invariant;
    CHECK(reason(invariant, kSmall).find("batch_invariant") != std::string::npos);
    GemmProblem endless = batch_of(16, std::int64_t{1} << 31);
    CHECK(reason(endless, kSmall).find("2^30 tiles") != std::string::npos);
}

// FP32 on CUDA cores, a row or two a lane.
constexpr whole_k::Shape kRows = {128, 8, 4, 4, 16, 0, 1, 128, true};

double rows_us(std::int64_t m, std::int64_t n, std::int64_t k) {
    DeviceProperties device = simt_test::h200();
    device.shared_memory_per_block = 227 << 10;
    return whole_k::rows_us(kRows, whole_k::with_more_rows(simt_test::product(m, n, k)), device);
}

TEST(many_rows_of_few_columns_cost_little_more_than_reading_them) {
    for (const std::int64_t k : {16, 32, 64, 128}) {
        const double reading_us = 1e6 * static_cast<double>(k + 1) * 4 / 4.2e6;
        CHECK(rows_us(1000000, 1, k) > reading_us);
        CHECK(rows_us(1000000, 1, k) < 1.6 * reading_us);
    }
    CHECK(rows_us(144061, 19, 1) > 25);  // scattered over sectors: 35 us on an H200
}

TEST(more_rows_columns_or_k_cost_more) {
    for (std::int64_t k = 1; k < 96; k += 3) {  // some lines are merged, others are not
        CHECK(rows_us(100000, 3, k + 32) > rows_us(100000, 3, k));
    }
    for (std::int64_t n = 1; n < 32; ++n) {
        CHECK(rows_us(100000, n + 8, 8) > rows_us(100000, n, 8));
        CHECK(rows_us(50000, n, 8) < rows_us(100000, n, 8));
    }
}

TEST(small_matrices_are_for_square_tiles) {
    DeviceProperties device = simt_test::h200();
    device.shared_memory_per_block = 227 << 10;
    const ValidProblem batch = ValidProblem::check(batch_of(8, 16384));
    constexpr whole_k::Shape kHalves = {128, 8, 2, 4, 16, 0, 1, 128, true};
    CHECK(whole_k::rows_us(kHalves, batch, device) >
          us(kSmall, batch_of(8, 16384)));  // 28 of 16 us
}

// Nothing is brought of operands that may be null.
TEST(without_k_there_are_no_lines) {
    for (const int stride : {1, 3, 5, 8, 33}) {
        for (const Spread spread : {Spread::none, Spread::padding, Spread::swizzle}) {
            CHECK_EQ(whole_k::image_layout(130, stride, 0, 1, 4, 4, spread).lines, 0);
        }
    }
}

// Whatever the strides and alignments are.
TEST(the_most_shared_memory_of_rows_is_enough) {
    for (const int item : {1, 2, 4, 8}) {
        const int sum = item == 8 ? 8 : 4;
        const whole_k::Shape rows = {item == 8 ? 64 : 128, 8, item, sum, 16, 0, 1, 128, true};
        for (std::int64_t k = 1; k <= 128; k += k < 16 ? 1 : 5) {
            int most = 0;
            for (const std::int64_t more : {0, 1, 2, 3, 5, 7, 8, 9, 15, 16}) {
                for (const int alignment : {item, 16}) {
                    const auto largest = [&](std::int64_t outer, Spread spread) {
                        return std::max(
                            whole_k::image_layout(outer, k + more, k, 1, item, alignment, spread)
                                .bytes(),
                            whole_k::image_layout(outer, 1, k, outer + more, item, alignment,
                                                  spread)
                                .bytes());
                    };
                    most = std::max(most, largest(whole_k::tile_rows(rows, k), Spread::swizzle) +
                                              largest(8, Spread::padding));
                }
            }
            const int asked = 2 * most + whole_k::staged_b_bytes(rows, 8, k);
            CHECK(asked <= whole_k::most_shared_bytes(rows, 1000, 1000, k));
        }
    }
}

TEST(long_rows_leave_a_lane_one) {
    CHECK_EQ(whole_k::tile_rows(kRows, 8), 128);
    CHECK_EQ(whole_k::tile_rows(kRows, 9), 64);
    CHECK_EQ(whole_k::tile_rows(kRows, 32), 64);
    CHECK_EQ(whole_k::tile_rows(kRows, 33), 32);
    CHECK_EQ(whole_k::tile_rows(kLarge, 128), 32);
}

DeviceProperties with_shared_memory(int bytes) {
    DeviceProperties device = simt_test::h200();
    device.shared_memory_per_block = bytes;
    return device;
}
template <int kTile>
double us_in_strips(const GemmProblem& problem) {
    return sm80_mma::schedule_strips<kTile, false>(ValidProblem::check(problem),
                                                   with_shared_memory(227 << 10))
        .cost_us;
}

TEST(strips_are_chosen_by_the_size_of_the_matrices) {
    CHECK(us_in_strips<64>(batch_of(33, 4096)) < us(kLarge, batch_of(33, 4096)));
    CHECK(us_in_strips<64>(batch_of(33, 4096)) < us_in_strips<128>(batch_of(33, 4096)));
    CHECK(us_in_strips<128>(batch_of(100, 2000)) < us_in_strips<64>(batch_of(100, 2000)));
    CHECK(us(kSmall, batch_of(16, 16384)) < us_in_strips<64>(batch_of(16, 16384)));
    GemmProblem misaligned = batch_of(100, 2000);
    misaligned.a.row_stride = 101;
    CHECK(us_in_strips<128>(misaligned) > us_in_strips<128>(batch_of(100, 2000)));
}

// So that a plan turns the product, and says so.
TEST(few_rows_are_the_columns_of_strips_that_take_any_k) {
    const auto transposed = [](auto schedule_of, std::int64_t m, std::int64_t n) {
        GemmProblem p = batch_of(n, 1);  // K, too
        p.m = m;
        return schedule_of(ValidProblem::check(p), with_shared_memory(227 << 10)).transposed;
    };
    CHECK(transposed(sm80_mma::schedule_strips<64, true>, 20, 50));
    CHECK(!transposed(sm80_mma::schedule_strips<64, true>, 50, 20));
    CHECK(!transposed(sm80_mma::schedule_strips<64, false>, 20, 50));
}

TEST(strips_are_refused_where_shared_memory_may_not_be_enough) {
    const auto reason = [](std::int64_t size, int tile, int bytes) {
        return sm80_mma::rejects_strips_size(ValidProblem::check(batch_of(size, 10)),
                                             with_shared_memory(bytes), tile, false);
    };
    CHECK_EQ(reason(128, 128, 163 << 10), "");
    CHECK(reason(128, 128, 99 << 10).find("bytes of shared memory") != std::string::npos);
    CHECK_EQ(reason(64, 128, 99 << 10), "");
    CHECK_EQ(reason(128, 64, 99 << 10), "");
    CHECK(reason(129, 64, 163 << 10).find("K up to 128") != std::string::npos);
}

// No less than any layout and alignment takes.
TEST(the_most_shared_memory_of_strips_is_enough) {
    const auto image = [](std::int64_t outer, std::int64_t k, bool along_k, std::int64_t more,
                          std::int64_t address) {
        const std::int64_t line = (along_k ? k : outer) + more;
        return whole_k::image_layout(outer, along_k ? line : 1, k, along_k ? 1 : line, 2, address,
                                     Spread::none);
    };
    for (const int size : {17, 33, 64, 100, 128}) {
        for (const int k : {1, 15, 64, 127, 128}) {
            for (const bool along_k : {false, true}) {
                for (const int more : {0, 1, 3, 7, 8, 12, 15}) {
                    for (const int address : {256, 2, 14}) {
                        const auto its = image(size, k, along_k, more, address);
                        for (const int bytes : {2, 4}) {
                            for (const bool rows : {false, true}) {
                                const std::int64_t ld = size + more;
                                const sm80_mma::StripsOfD d = {rows ? ld : 1, rows ? 1 : ld, bytes};
                                const auto layout =
                                    sm80_mma::strips_layout(its, its, 128, size, size, k, d);
                                const int most = sm80_mma::most_strips_bytes(size, size, k, 128, d);
                                CHECK(layout.bytes(128) <= most);
                            }
                        }
                    }
                }
            }
        }
    }
}

}  // namespace

int main() { return check::run(); }
