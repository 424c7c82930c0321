// The forms of a checked problem that kernels see: see ValidProblem.
#pragma once

#include <cstdint>
#include <optional>

#include "tcgemm/problem.hpp"

namespace tcgemm::canonical {

// Bytes: of a packed operand's rows and of its address, at least.
inline constexpr int kPackedAlignment = 16;

// D^T = B^T A^T: A and B, m and n trade places, and all strides with them.
void turn(GemmProblem& problem);

// Returns whether the problem was turned.
bool bring_into_form(GemmProblem& problem);

// Of a problem in that form: with the matrices of A as one of more rows, as packing puts them one
// below the other, where those of C and D lie like that and share B. A is described as packed. None
// where no two lie so. `problem` becomes the same with its rows in the order of the result's.
std::optional<GemmProblem> gather_rows(GemmProblem& problem);

std::int64_t count_batches(const GemmProblem& problem);

}  // namespace tcgemm::canonical
