// A kernel as the registry sees it: a constant row of data. A family is an ordered list of rows.
#pragma once

#include <cassert>
#include <cstddef>
#include <string>

#include "kernels/gemm_args.hpp"
#include "problem/valid_problem.hpp"
#include "tcgemm/device.hpp"
#include "tcgemm/stream.hpp"

namespace tcgemm {

// Sizes in elements; zeros for a kernel without tiles. The value that the kernel was compiled with.
struct TileConfig {
    int block_m = 0, block_n = 0, block_k = 0;
    int warp_m = 0, warp_n = 0;
    int threads = 0;  // a block
};

// The form in which a kernel takes A and B. What does not have it is packed by the plan first.
struct OperandNeeds {
    // true: any dtype, the kernel rounds to compute_dtype() by itself. false: exactly
    // compute_dtype().
    bool any_dtype = false;
    // 0: any strides. Otherwise one stride is 1, and the address, the other stride and all batch
    // strides are multiples of so many bytes (where their extent is more than 1).
    int vector_bytes = 0;
    // Besides, strides are positive (those of batches may be 0) and below 2^40 bytes: what a tensor
    // map of sm_90 can say.
    bool tensor_map = false;
    // Rows (or columns) of an operand that is packed start at multiples of so many bytes. Tiles
    // want lines of L2: of a row that begins amid them a tile's part comes out of two, of one that
    // begins amid sectors out of more sectors.
    int packed_row_bytes = 16;
    // FP8 operands come as they are, each in its own format, not as compute_dtype().
    bool fp8 = false;
    // Of a TF32 product, float32 comes as it is: the kernel rounds.
    bool rounds_to_tf32 = false;
    // Neighbours along K are neighbours in memory: of the kernel's A unit column stride, of its B
    // unit row stride. Where it computes D^T (Schedule::transposed), the problem's B is its A.
    bool k_major_a = false, k_major_b = false;
    // Not 0: operands come as float32 in halves (halves.hpp), in blocks of so many k; what is not
    // float32 is converted before. Not all fit: the plan has a fallback ready, the kernel of a
    // later family, and both find out on the device which of them is wanted. Selection takes such a
    // kernel only where it costs less than that one; its cost includes the packing.
    int halves_block = 0;
    constexpr bool halves() const { return halves_block != 0; }
};

// What a kernel with these needs gets an operand of dtype `given` in.
inline DType operand_dtype(const OperandNeeds& needs, const ValidProblem& problem, DType given) {
    const bool as_it_is = needs.any_dtype || (needs.fp8 && is_fp8(given));
    return as_it_is ? given : problem.compute_dtype();
}

struct Schedule {
    int split_k = 1;
    int part_step = 0;  // k that parts hold whole, where more than a k-block
    std::size_t workspace_bytes = 0;
    double cost_us = 0;        // the family's cost model, packing included, to compare rows
    bool in_cluster = false;   // the parts of K are the blocks of a cluster: no workspace
    bool splits_rest = false;  // only the tiles behind the last whole wave have parts of K
    int tile_n = 0;            // columns of a tile, where less than the kernel's
    // The blocks of a cluster load B together, however few tiles there are; or A.
    bool shares_b = false, shares_a = false;
    // What comes to the kernel as A or B is packed with contiguous k, whether it must be packed or
    // not.
    bool packs_a_k_major = false, packs_b_k_major = false;
    // The kernel computes D^T = B^T A^T: tiles lie across D. No schedule of a product with scales.
    bool transposed = false;

    constexpr bool splits_all() const { return split_k > 1 && !splits_rest; }  // every tile's K
};

struct KernelInfo {
    const char* name;  // family_dtype_tile..., unique
    TileConfig tile;
    OperandNeeds needs;
    // Why the kernel can't compute the problem there; empty: it can. The one predicate: selection,
    // forcing, tests and the support table all ask it, of devices from least_cc on (rejection(),
    // dispatch/select.hpp). Sees the operands before packing, and must not judge what packing mends
    // (dtype, strides, alignment of A and B).
    std::string (*rejects)(const ValidProblem& problem, const DeviceProperties& device);
    // A pure function of problem and device.
    Schedule (*schedule)(const ValidProblem& problem, const DeviceProperties& device);
    // A and B have the form that `needs` asks for. Where the schedule is `transposed`, `args` are
    // of D^T = B^T A^T: launch_kernel() sees to that. The current device is the right one. On a
    // GPU: launches only, errors by throwing (runtime::launch); never called for an empty problem.
    void (*launch)(const GemmArgs& args, const Schedule& schedule, StreamView stream);
    // Shared memory of a block that a launch asks for, where so many share an SM as the kernel is
    // made for: the most over the layouts. Not in the code.
    int dynamic_shared_bytes = 0;
    // Devices of a lower compute capability (86 is 8.6) are refused: code for one traps. A newer
    // device may run older code.
    int least_cc = 0;
    // Selection takes it before a kernel of the families in front where its cost is less.
    bool competes = false;
};

// The product `args`, by a kernel in a schedule that it has made for it.
inline void launch_kernel(const KernelInfo& kernel, const GemmArgs& args, const Schedule& schedule,
                          StreamView stream) {
    if (!schedule.transposed) return kernel.launch(args, schedule, stream);
    assert(args.scales == nullptr);  // they would stay as they are
    kernel.launch(transposed(args), schedule, stream);
}

// Each family's family.cu (or .cpp) defines `Family <family>::family()`; kernels/CMakeLists.txt
// puts the families in order of preference.
struct Family {
    const KernelInfo* kernels;
    int kernel_count;
    bool on_cpu;  // takes host memory; all others take device memory
};

}  // namespace tcgemm
