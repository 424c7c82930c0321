// Every tile is walked once, whatever the sizes, and divisions by a known number are exact.
#include <cstdint>
#include <set>
#include <tuple>

#include "kernels/device/fast_divisor.hpp"
#include "kernels/device/tile_scheduler.cuh"

#include "../check.hpp"

using namespace tcgemm;

namespace {

template <class Divisor>
void check_divisor() {
    constexpr std::uint32_t kMost = 0x7fffffff;
    for (const std::int64_t by :
         {1,     2,     3,       5,          7,          8,          9,          10,
          11,    13,    127,     128,        129,        132,        641,        65535,
          65536, 65537, 1000003, 0x3fffffff, 0x40000000, 0x40000001, 0x7ffffffe, 0x7fffffff}) {
        const Divisor divisor(by);
        const auto check = [&](std::int64_t n) {
            if (n < 0 || n > kMost) return;
            CHECK_EQ(divisor.divide(static_cast<std::uint32_t>(n)), n / by);
        };
        // Around multiples, where a rounded multiplier would show.
        for (const std::int64_t quotient : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2},
                                            kMost / by / 3, kMost / by - 1, kMost / by}) {
            for (int beside = -2; beside <= 2; ++beside) check(quotient * by + beside);
        }
        for (int beside = 0; beside < 5; ++beside) check(kMost - beside);
    }
    CHECK_EQ(Divisor().divide(kMost), kMost);
}

TEST(a_divisor_divides_as_the_processor_does) {
    check_divisor<device::Divisor>();
    check_divisor<device::FastDivisor>();
}

template <class Index>
void check_walk(int tiles_m, int tiles_n, int slices, int band) {
    const device::TileScheduler scheduler(tiles_m, tiles_n, slices, band);
    std::set<std::tuple<int, int, std::int64_t>> seen;
    CHECK_EQ(scheduler.count(), std::int64_t{tiles_m} * tiles_n * slices);
    for (std::int64_t index = 0; index < scheduler.count(); ++index) {
        const device::Tile tile = scheduler.tile(static_cast<Index>(index));
        CHECK(tile.m >= 0 && tile.m < tiles_m);
        CHECK(tile.n >= 0 && tile.n < tiles_n);
        CHECK(tile.slice >= 0 && tile.slice < slices);
        // Neighbours in the order lie in one band.
        CHECK_EQ(tile.m / band, index % (std::int64_t{tiles_m} * tiles_n) / tiles_n / band);
        seen.insert({tile.m, tile.n, tile.slice});
    }
    CHECK_EQ(static_cast<std::int64_t>(seen.size()), scheduler.count());
}

TEST(each_tile_is_walked_once) {
    for (const int tiles_m : {1, 2, 7, 8, 9, 17, 33}) {
        for (const int tiles_n : {1, 3, 8, 29}) {
            for (const int slices : {1, 5}) {
                for (const int band : {1, 4, 8, 16}) {
                    check_walk<unsigned>(tiles_m, tiles_n, slices, band);
                    check_walk<std::int64_t>(tiles_m, tiles_n, slices, band);
                }
            }
        }
    }
}

}  // namespace

int main() { return check::run(); }
