// What memory moves for D, and in which order its tiles are stored.
#pragma once

#include <cstdint>

#include "kernels/gemm_args.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/device.hpp"

namespace tcgemm {

// Bytes that memory moves for D, of which so many rows and columns are stored together. Where lines
// of D (rows, or columns where those are contiguous) begin amid sectors of L2, so does what is
// stored of one, and L2 fetches a sector that it does not hold and that is written in parts.
double stored_bytes(const ValidProblem& problem, std::int64_t rows, std::int64_t columns,
                    const DeviceProperties& device);

// Whether tiles are stored along the rows of D, one row of tiles after the other: memory takes long
// rows sooner than pieces of many. Where rows begin amid sectors, what a block leaves of one is
// completed by its neighbour at about the same time. Not where L2 holds all of D anyway, or each
// row of tiles would read B from memory again.
bool walks_along_rows(const GemmArgs& args);

}  // namespace tcgemm
