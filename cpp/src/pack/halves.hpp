// Packing of float32 operands into halves (kernels/halves.hpp): two passes over a strip of rows
// while it is in L2, one that finds the rows' exponents and one that writes halves.
#pragma once

#include "kernels/halves.hpp"
#include "pack/pack.hpp"

namespace tcgemm::pack {

// One operand. Rows are those of A or the columns of B.
struct HalvesTask {
    MatrixView source;
    bool is_b = false;
    std::int64_t rows = 0, k = 0;
    int block = 0;             // of k whose high halves lie together: 32 or 64
    PackLayout target;         // of packed_k(k, block) along K
    int* exponents = nullptr;  // for each row of each matrix in `target`
};

// All but the addresses. `source`: m x k (A) or k x n (B).
HalvesTask halves_task(const MatrixView& source, bool is_b, std::int64_t rows, std::int64_t k,
                       int block, const BatchShape& batch);
std::int64_t exponents_bytes(const HalvesTask& task);

// Packs A and B on `stream` and reports on them. Overlaps neighbours as pack::launch does.
void launch_halves(const HalvesTask& a, const HalvesTask& b, halves::Report* report,
                   StreamView stream);

}  // namespace tcgemm::pack
