#include "kernels/d_traffic.hpp"

#include <algorithm>
#include <numeric>

#include "core/l2.hpp"
#include "core/math.hpp"

namespace tcgemm {
namespace {

// More bytes that each line of a tile seems to have. Kernels that only store lines of 128, 256, 512
// and 1,024 bytes reach 1.0, 1.5, 1.9 and 2.3 TB/s on an H100, and 3.15 where lines begin at
// sectors; 0.7, 1.0, 1.4 and 1.8 TB/s where tiles below each other follow. Products lie between.
constexpr double kAmidSectorsBytes = 400;

}  // namespace

double stored_bytes(const ValidProblem& problem, std::int64_t rows, std::int64_t columns,
                    const DeviceProperties& device) {
    const Operand& d = problem->d;
    const std::int64_t item = size_of(d.dtype);
    const double bytes = static_cast<double>(problem->m) * static_cast<double>(problem->n) *
                         static_cast<double>(problem.batch_count()) * static_cast<double>(item);
    const bool has_rows = d.col_stride == 1;
    if (bytes == 0 || (!has_rows && d.row_stride != 1)) return bytes;
    const std::int64_t step = (has_rows ? d.row_stride : d.col_stride) * item;
    const auto at_sectors =  // the share of the lines; no alignment above 16 is known
        static_cast<double>(std::gcd(step, kSectorBytes)) / kSectorBytes;
    const double amid = at_sectors < 1 || d.alignment >= 16 ? 1 - at_sectors : 1;
    const std::int64_t line = has_rows ? problem->n : problem->m;
    const std::int64_t parts = divide_up(line, has_rows ? columns : rows);
    const double beyond_l2 = std::max(bytes - static_cast<double>(device.l2_bytes) / 2, 0.0);
    // Whole lines that follow each other go out as one.
    const bool follow = parts == 1 && step == line * item;
    const double together = follow ? static_cast<double>(has_rows ? rows : columns) : 1;
    return bytes + beyond_l2 * amid * kAmidSectorsBytes * static_cast<double>(parts) /
                       (static_cast<double>(line * item) * together);
}

bool walks_along_rows(const GemmArgs& args) {
    // Bytes: of a B that every L2 keeps, and of a D that none does.
    constexpr double kStays = 4 << 20, kLarge = 16 << 20;
    const auto bytes = [](std::int64_t rows, std::int64_t columns, DType dtype) {
        return static_cast<double>(rows) * static_cast<double>(columns) * size_of(dtype);
    };
    return args.d.col_stride == 1 && bytes(args.k, args.n, args.b.dtype) <= kStays &&
           bytes(args.m, args.n, args.d.dtype) * static_cast<double>(args.batch.count) >= kLarge;
}

}  // namespace tcgemm
