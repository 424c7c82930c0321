// The host family's conversions, against arithmetic that knows nothing of bit patterns.
#include "kernels/host/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

#include "../check.hpp"

using namespace tcgemm::host;

namespace {

// The format: significant bits, exponent of the smallest normal number, largest finite number.
struct Format {
    int bits;
    int min_exponent;
    double largest;
};
constexpr Format kHalf{11, -14, 65504.0};
constexpr Format kBFloat16{8, -126, 0x1.fep127};
constexpr Format kTf32{11, -126, 0x1.ffcp127};
constexpr Format kE4M3{4, -6, 448.0};
constexpr Format kE5M2{3, -14, 57344.0};

// `value` rounded to nearest even by scaling it so that the last bit kept counts 1.
double rounded(double value, const Format& format) {
    if (value == 0 || !std::isfinite(value)) return value;
    const int exponent = std::max(std::ilogb(value), format.min_exponent);
    const int scale = format.bits - 1 - exponent;
    const double result = std::ldexp(std::nearbyint(std::ldexp(value, scale)), -scale);
    return std::abs(result) > format.largest
               ? std::copysign(std::numeric_limits<double>::infinity(), value)
               : result;
}

bool same(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
}

template <class From>
void check_value(From value) {
    const double wide = static_cast<double>(value);
    CHECK(same(to_float(to_half(value)), rounded(wide, kHalf)));
    CHECK(same(to_float(to_bfloat16(value)), rounded(wide, kBFloat16)));
}

// FP8: what overflows (Inf, too) saturates, or becomes Inf, which e4m3 has not: NaN.
void check_fp8(float value) {
    const double exact = static_cast<double>(value);
    const double e4m3 = rounded(exact, kE4M3), e5m2 = rounded(exact, kE5M2);
    const auto saturated = [](double result, double largest) {
        return std::isinf(result) ? std::copysign(largest, result) : result;
    };
    CHECK(same(to_float(to_e4m3(value, true)), saturated(e4m3, kE4M3.largest)));
    CHECK(same(to_float(to_e5m2(value, true)), saturated(e5m2, kE5M2.largest)));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(same(to_float(to_e4m3(value, false)), std::isinf(e4m3) ? nan : e4m3));
    CHECK(same(to_float(to_e5m2(value, false)), e5m2));
}

TEST(every_fp8_survives_the_way_there_and_back) {
    for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
        const auto byte = static_cast<std::uint8_t>(bits);
        const float e4m3 = to_float(E4M3{byte}), e5m2 = to_float(E5M2{byte});
        CHECK_EQ(std::isnan(e4m3), (bits & 0x7f) == 0x7f);
        if (!std::isnan(e4m3)) {
            const int exponent = (bits >> 3) & 15, fraction = bits & 7;
            const double magnitude =
                exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
            CHECK(same(e4m3, bits & 0x80 ? -magnitude : magnitude));
        }
        CHECK_EQ(std::isnan(e5m2), (bits & 0x7f) > 0x7c);
        for (const bool saturate : {false, true}) {
            CHECK_EQ(to_e4m3(e4m3, saturate).bits, std::isnan(e4m3) ? 0x7fu : bits);
            const bool beyond = saturate && std::isinf(e5m2);
            if (!std::isnan(e5m2)) CHECK_EQ(to_e5m2(e5m2, saturate).bits, beyond ? bits - 1 : bits);
        }
    }
}

TEST(fp8_rounds_to_nearest_even) {
    for (std::uint32_t bits = 0; bits < 0x7e; ++bits) {
        for (const float low : {to_float(E4M3{static_cast<std::uint8_t>(bits)}),
                                to_float(E5M2{static_cast<std::uint8_t>(bits)})}) {
            for (const float step : {0x1p-17f, 0x1p-10f, 0x1p-4f, 0x1p-1f, 8.0f, 16.0f, 4096.0f}) {
                for (const float at : {low + step, low - step}) {
                    check_fp8(at);
                    check_fp8(std::nextafter(at, 0.0f));
                    check_fp8(-std::nextafter(at, HUGE_VALF));
                }
            }
        }
    }
    std::mt19937 random(11);
    for (int i = 0; i < 2000000; ++i) {
        check_fp8(bit_cast<float>(static_cast<std::uint32_t>(random())));
        const float fraction = 1.0f + static_cast<float>(random() >> 9) * 0x1p-23f;
        check_fp8(std::ldexp(i & 1 ? fraction : -fraction, static_cast<int>(random() % 36) - 18));
    }
    check_fp8(464.0f), check_fp8(465.0f), check_fp8(1e9f), check_fp8(61440.0f);
}

TEST(tf32_rounds_to_nearest_even) {
    std::mt19937 random(12);
    for (int i = 0; i < 2000000; ++i) {
        const auto bits = static_cast<std::uint32_t>(random());
        for (const std::uint32_t near : {bits, bits & ~0xfffu, (bits & ~0x1fffu) | 0x1000u}) {
            const float value = bit_cast<float>(near);
            CHECK(same(to_tf32(value), rounded(static_cast<double>(value), kTf32)));
        }
    }
    CHECK_EQ(to_tf32(1.0f + 0x1.8p-11f), 1.0f + 0x1p-10f);
    CHECK_EQ(to_tf32(to_float_odd(1.0 + 0x1p-11 + 0x1p-40)), 1.0f + 0x1p-10f);
}

TEST(every_half_survives_the_way_there_and_back) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const Half half{static_cast<std::uint16_t>(bits)};
        const float value = to_float(half);
        const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
        const double magnitude =
            exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31 && fraction != 0) {
            CHECK(std::isnan(value));
            CHECK_EQ(to_half(value).bits, bits | 0x200u);  // quiet, payload and sign kept
            CHECK_EQ(to_half(static_cast<double>(value)).bits, bits | 0x200u);
            continue;
        }
        const double expected =
            exponent == 31 ? std::numeric_limits<double>::infinity() : magnitude;
        CHECK(same(value, bits & 0x8000 ? -expected : expected));
        CHECK_EQ(to_half(value).bits, bits);
        CHECK_EQ(to_half(static_cast<double>(value)).bits, bits);
    }
}

TEST(every_bfloat16_survives_the_way_there_and_back) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = to_float(BFloat16{static_cast<std::uint16_t>(bits)});
        const bool nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
        CHECK_EQ(std::isnan(value), nan);
        CHECK_EQ(to_bfloat16(value).bits, nan ? bits | 0x40u : bits);
        CHECK_EQ(to_bfloat16(static_cast<double>(value)).bits, nan ? bits | 0x40u : bits);
    }
}

TEST(ties_and_their_neighbours_round_once) {
    for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
        const auto at = [](std::uint32_t b) {
            return std::make_pair(to_float(Half{static_cast<std::uint16_t>(b)}),
                                  to_float(BFloat16{static_cast<std::uint16_t>(b)}));
        };
        const auto [half, bfloat] = at(bits);
        const auto [next_half, next_bfloat] = at(bits + 1);
        for (const auto& [low, high] :
             {std::pair{half, next_half}, std::pair{bfloat, next_bfloat}}) {
            if (!std::isfinite(low) || std::isnan(high)) continue;
            double tie = (static_cast<double>(low) + high) / 2;
            if (std::isinf(high))
                tie = low == 65504.0f ? 65520.0 : 0x1.ffp127;  // from there on: Inf
            for (const double sign : {1.0, -1.0}) {
                check_value(sign * tie);
                check_value(sign * std::nextafter(tie, 0.0));
                check_value(sign * std::nextafter(tie, HUGE_VAL));
                check_value(static_cast<float>(sign * tie));
                check_value(std::nextafter(static_cast<float>(sign * tie), 0.0f));
                check_value(std::nextafter(static_cast<float>(sign * tie), HUGE_VALF));
            }
        }
    }
}

TEST(random_floats_and_doubles_of_every_magnitude) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000000; ++i) {
        const std::uint64_t bits = random();
        check_value(bit_cast<float>(static_cast<std::uint32_t>(bits)));
        check_value(bit_cast<double>(bits));
        // Around the numbers of both formats, where random exponents seldom fall.
        const double fraction = 1.0 + static_cast<double>(bits >> 12) * 0x1p-52;
        check_value(std::ldexp(bits & 1 ? fraction : -fraction, static_cast<int>(bits % 48) - 28));
    }
}

TEST(a_double_is_not_rounded_twice) {
    // Just above a tie: a detour by float loses the excess, and the tie goes to even.
    const double above_half_tie = 1.0 + 0x1p-11 + 0x1p-40;
    CHECK_EQ(to_half(above_half_tie).bits, 0x3c01);
    CHECK_EQ(to_half(static_cast<float>(above_half_tie)).bits, 0x3c00);
    const double above_bfloat16_tie = 1.0 + 0x1p-8 + 0x1p-40;
    CHECK_EQ(to_bfloat16(above_bfloat16_tie).bits, 0x3f81);
    CHECK_EQ(to_bfloat16(static_cast<float>(above_bfloat16_tie)).bits, 0x3f80);
}

}  // namespace

int main() { return check::run(); }
