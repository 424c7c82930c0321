// The forms of a checked problem that kernels see: see ValidProblem.
#pragma once

#include <cstdint>
#include <optional>

#include "tcgemm/problem.hpp"

namespace tcgemm::canonical {

// Bytes: of a packed operand's rows and of its address, at least.
inline constexpr int kPackedAlignment = 16;

// D^T = B^T A^T: A and B, m and n trade places, and all strides with them.
void transpose(GemmProblem& problem);

// Returns whether the problem was transposed.
bool bring_into_form(GemmProblem& problem);

// Of a problem in that form: the form that it would have with a packed A, its matrices one below
// the other, where that has more rows: those of C and D that share B lie so, or change places with
// rows. `problem` becomes the same with rows and matrices in the order in which A is packed.
std::optional<GemmProblem> gather_rows(GemmProblem& problem);
// Elements from a row of such an A to the next. All its strides but the columns' are multiples.
std::int64_t packed_row(const GemmProblem& problem);

std::int64_t count_batches(const GemmProblem& problem);

}  // namespace tcgemm::canonical
