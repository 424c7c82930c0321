#include "pack/halves.hpp"

#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/runtime.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/vector.cuh"
#include "pack/args.hpp"
#include "tcgemm/device.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::pack {
namespace {

using halves::power_of_two;

// A block of threads goes through strips of kRows rows of all K, and reads each twice: those that
// all blocks are at work on fit into L2, up to a K of about 6000.
constexpr int kStripThreads = 512, kRows = 8, kBlocksPerSm = 2;
constexpr int kWarpsARow = kStripThreads / 32 / kRows;
constexpr int kTileK = 512;  // k of a strip that a thread has in flight, at a time
constexpr int kHeld = kTileK * kRows / kStripThreads;  // elements of a thread
constexpr int kVector = 4;
constexpr int kPitch = kTileK + kVector;  // rows of a tile in shared memory, in different banks

// How the threads of a block read: vectors or single elements, neighbours along K or rows.
enum class Read { k_vectors, k_elements, row_vectors, row_elements };

struct Strips {
    const float* source = nullptr;
    __half* target = nullptr;
    int* exponents = nullptr;
    std::int64_t rows = 0, k = 0;
    std::int64_t row_stride = 0, k_stride = 0, target_row_stride = 0;
    BatchShape batch;
    std::int64_t source_batch_stride[kMaxBatchDims] = {};
    std::int64_t in_matrix = 0;  // strips
    Read read = Read::k_elements;
};

struct StripsArgs {
    Strips operand[2];
    std::int64_t first_strips = 0, all_strips = 0;  // of operand[0]; of both; batches counted
    halves::Report* report = nullptr;
};

struct Shared {
    alignas(16) float tile[2][kRows][kPitch];
    unsigned largest[kRows];  // bits of a magnitude: they have its order
    int nonzeros[kRows], exponent[kRows];
    int span;
};

// x 2^-exponent, exactly but below FP32's range: such numbers have no halves at all. In two steps,
// for the power itself may lie outside.
__device__ __forceinline__ float scaled(float x, int exponent) {
    const int half = exponent / 2;
    return x * power_of_two(-half) * power_of_two(half - exponent);
}
// Of a magnitude other than 0.
__device__ __forceinline__ int exponent_of(unsigned bits) {
    return bits >> 23 != 0 ? static_cast<int>(bits >> 23) - 127 : 31 - __clz(bits) - 149;
}

// What a thread reads of a strip: vectors (of one element: kWidth = 1) that begin in `row`, at `k`
// and every kStep behind it.
template <Read kRead>
struct Reader {
    static constexpr bool kAlongRows = kRead == Read::row_vectors || kRead == Read::row_elements;
    static constexpr bool kVectors = kRead == Read::k_vectors || kRead == Read::row_vectors;
    static constexpr int kWidth = kVectors ? kVector : 1;
    static constexpr int kTogether = kHeld / kWidth;                     // vectors in flight
    static constexpr int kRowVectors = kAlongRows ? kRows / kWidth : 1;  // that have one k
    static constexpr int kStep =
        kAlongRows ? kStripThreads / kRowVectors : 32 * kWarpsARow * kWidth;
    static constexpr int kThreadRows = kAlongRows ? kWidth : 1;  // of a thread
    static_assert(kTogether * kStep == kTileK);

    const float* from;  // the thread's first vector; null: none of its rows exists
    int row, k;
    std::int64_t k_stride;

    __device__ Reader(const Strips& strips, const float* source, std::int64_t first_row)
        : k_stride(strips.k_stride) {
        const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
        row = kAlongRows ? thread % kRowVectors * kWidth : warp / kWarpsARow;
        k = kAlongRows ? thread / kRowVectors : (warp % kWarpsARow * 32 + lane) * kWidth;
        const bool exists = first_row + row < strips.rows;
        from = exists ? source + (first_row + row) * strips.row_stride + k * k_stride : nullptr;
    }

    // Those of the tile that `left` k begin with; 0 where there is nothing.
    __device__ __forceinline__ void load(std::int64_t left, float (&value)[kHeld]) const {
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const bool inside = from != nullptr && k + i * kStep < left;
            const float* const its = from + i * kStep * k_stride;
            if constexpr (kVectors) {
                const float4 four =
                    inside ? *reinterpret_cast<const float4*>(its) : float4{0, 0, 0, 0};
                value[4 * i] = four.x;
                value[4 * i + 1] = four.y;
                value[4 * i + 2] = four.z;
                value[4 * i + 3] = four.w;
            } else {
                value[i] = inside ? *its : 0.0f;
            }
        }
    }
    __device__ __forceinline__ void advance() {
        if (from != nullptr) from += kTileK * k_stride;
    }

    // The same into a tile in shared memory.
    __device__ __forceinline__ void store(const float (&value)[kHeld],
                                          float (&tile)[kRows][kPitch]) const {
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const int within = i % kWidth;
            tile[row + (kAlongRows ? within : 0)]
                [k + i / kWidth * kStep + (kAlongRows ? 0 : within)] = value[i];
        }
    }
};

// First pass: the largest magnitude of each row and how many of its numbers are not 0.
template <Read kRead>
__device__ __forceinline__ void scan(Reader<kRead> reader, std::int64_t k, Shared& shared) {
    using Its = Reader<kRead>;
    unsigned largest[Its::kThreadRows] = {};
    int nonzeros[Its::kThreadRows] = {};
#pragma unroll 2
    for (std::int64_t left = k; left > 0; left -= kTileK, reader.advance()) {
        float value[kHeld];
        reader.load(left, value);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const unsigned bits = __float_as_uint(value[i]) & 0x7fffffffu;
            largest[i % Its::kThreadRows] = max(largest[i % Its::kThreadRows], bits);
            nonzeros[i % Its::kThreadRows] += bits != 0;
        }
    }
#pragma unroll
    for (int i = 0; i < Its::kThreadRows; ++i) {
        // Over the lanes that have the same row.
        for (int distance = 16; distance >= Its::kRowVectors; distance /= 2) {
            largest[i] = max(largest[i], __shfl_xor_sync(~0u, largest[i], distance));
            nonzeros[i] += __shfl_xor_sync(~0u, nonzeros[i], distance);
        }
        if (threadIdx.x % 32 < Its::kRowVectors) {
            atomicMax(&shared.largest[reader.row + i], largest[i]);
            atomicAdd(&shared.nonzeros[reader.row + i], nonzeros[i]);
        }
    }
}

// Between the passes, by the threads of the first rows: exponents, and what the rows are like.
__device__ __forceinline__ void settle(const StripsArgs& args, int operand, std::int64_t first_row,
                                       std::int64_t exponents_before, Shared& shared) {
    const int thread = threadIdx.x;
    const unsigned largest = shared.largest[thread];
    const bool finite = largest < 0x7f800000u;
    const int exponent = finite && largest != 0 ? exponent_of(largest) - halves::kTopBits : 0;
    shared.exponent[thread] = exponent;
    const Strips& strips = args.operand[operand];
    if (first_row + thread < strips.rows) {
        strips.exponents[exponents_before + first_row + thread] = exponent;
    }
    if (!finite) shared.span = halves::kNoSpan;
    int nonzeros = min(shared.nonzeros[thread], halves::kMinNonzeros);
    for (int distance = kRows / 2; distance > 0; distance /= 2) {
        nonzeros = max(nonzeros, __shfl_xor_sync((1u << kRows) - 1, nonzeros, distance));
    }
    if (thread == 0 && *static_cast<volatile int*>(&args.report->nonzeros[operand]) < nonzeros) {
        atomicMax(&args.report->nonzeros[operand], nonzeros);
    }
}

// Neighbours along K; `span` grows where one has too few bits.
template <int kBlock>
__device__ __forceinline__ void write(__half* to, const float (&value)[kVector], int exponent,
                                      int& span) {
    using Four = device::Vector<__half, kVector>;
    Four high, low;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
        const float s = scaled(value[i], exponent);
        high.element[i] = __float2half_rn(s);
        low.element[i] =
            __float2half_rn((s - __half2float(high.element[i])) * (1 << halves::kLowBits));
        if (fabsf(s) < power_of_two(halves::kTopBits - halves::kFullSpan) && value[i] != 0.0f) {
            const unsigned bits = __float_as_uint(value[i]) & 0x7fffffffu;
            span = max(span, exponent + halves::kTopBits - exponent_of(bits));
        }
    }
    *reinterpret_cast<Four*>(to) = high;
    *reinterpret_cast<Four*>(to + kBlock) = low;
}

// Second pass: a warp has a part of each tile of its row, and a lane neighbours along K, as they
// were read or through shared memory. `to`: the strip's first row. Returns the largest span.
template <int kBlock, Read kRead>
__device__ __forceinline__ int split(const Strips& strips, Reader<kRead> reader, __half* to,
                                     std::int64_t first_row, Shared& shared) {
    constexpr int kPart = kTileK / kWarpsARow, kVectors = kPart / (32 * kVector);
    const int row = threadIdx.x / 32 / kWarpsARow;
    const int first = threadIdx.x / 32 % kWarpsARow * kPart + threadIdx.x % 32 * kVector;
    constexpr bool kDirect = kRead == Read::k_vectors;
    const bool exists = first_row + row < strips.rows;
    const int exponent = shared.exponent[row];
    to += row * strips.target_row_stride;
    int span = 0, turn = 0;
    float next[kHeld];
    reader.load(strips.k, next);
    for (std::int64_t k0 = 0; k0 < strips.k; k0 += kTileK, turn ^= 1) {
        float value[kHeld];
#pragma unroll
        for (int i = 0; i < kHeld; ++i) value[i] = next[i];
        reader.advance();
        if (k0 + kTileK < strips.k) reader.load(strips.k - k0 - kTileK, next);
        if constexpr (!kDirect) {
            reader.store(value, shared.tile[turn]);
            // The other tile's readers are behind the barrier of the turn before.
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
            const int in_tile =
                kDirect ? reader.k + i * Reader<kRead>::kStep : first + i * 32 * kVector;
            float four[kVector];
            if constexpr (!kDirect) {
                const float4 packed =
                    *reinterpret_cast<const float4*>(&shared.tile[turn][row][in_tile]);
                value[4 * i] = packed.x;
                value[4 * i + 1] = packed.y;
                value[4 * i + 2] = packed.z;
                value[4 * i + 3] = packed.w;
            }
#pragma unroll
            for (int j = 0; j < kVector; ++j) four[j] = value[kVector * i + j];
            // Up to the end of the block that K ends in; a tile holds whole blocks.
            const int in_block = in_tile % kBlock;
            if (exists && k0 + (in_tile - in_block) < strips.k) {
                write<kBlock>(to + 2 * k0 + (2 * in_tile - in_block), four, exponent, span);
            }
        }
    }
    return span;
}

template <int kBlock, Read kRead>
__device__ __forceinline__ void pack_strip(const StripsArgs& args, int operand, std::int64_t batch,
                                           std::int64_t first_row, Shared& shared) {
    const Strips& strips = args.operand[operand];
    const Reader<kRead> reader(
        strips, strips.source + batch_offset(strips.batch, strips.source_batch_stride, batch),
        first_row);
    scan(reader, strips.k, shared);
    __syncthreads();
    if (threadIdx.x < kRows) settle(args, operand, first_row, batch * strips.rows, shared);
    __syncthreads();
    __half* const to = strips.target + (batch * strips.rows + first_row) * strips.target_row_stride;
    const int span = split<kBlock>(strips, reader, to, first_row, shared);
    if (span > shared.span) atomicMax(&shared.span, span);
}

// kBlock: k of a block of halves.
template <int kBlock>
__global__ void __launch_bounds__(kStripThreads, kBlocksPerSm)
    pack_halves_kernel(const __grid_constant__ StripsArgs args) {
    __shared__ Shared shared;
    // So early: blocks wait before they access memory, and the successor for the end of them all.
    device::release_successor();
    device::wait_for_predecessor();
    const int thread = threadIdx.x;
    for (std::int64_t strip = blockIdx.x; strip < args.all_strips; strip += gridDim.x) {
        const int operand = strip >= args.first_strips;
        const std::int64_t index = operand != 0 ? strip - args.first_strips : strip;
        const std::int64_t in_matrix = args.operand[operand].in_matrix, batch = index / in_matrix;
        const std::int64_t first_row = (index - batch * in_matrix) * kRows;
        if (thread < kRows) {
            shared.largest[thread] = 0;
            shared.nonzeros[thread] = 0;
        }
        if (thread == 0) shared.span = 0;
        __syncthreads();
        switch (args.operand[operand].read) {
            case Read::k_vectors:
                pack_strip<kBlock, Read::k_vectors>(args, operand, batch, first_row, shared);
                break;
            case Read::k_elements:
                pack_strip<kBlock, Read::k_elements>(args, operand, batch, first_row, shared);
                break;
            case Read::row_vectors:
                pack_strip<kBlock, Read::row_vectors>(args, operand, batch, first_row, shared);
                break;
            case Read::row_elements:
                pack_strip<kBlock, Read::row_elements>(args, operand, batch, first_row, shared);
                break;
        }
        __syncthreads();
        if (thread == 0 && shared.span > 0) atomicMax(&args.report->span[operand], shared.span);
    }
}

Read choose_read(const Strips& strips) {
    const bool along_rows = std::abs(strips.row_stride) < std::abs(strips.k_stride);
    const std::int64_t inner_stride = along_rows ? strips.row_stride : strips.k_stride;
    const std::int64_t outer_stride = along_rows ? strips.k_stride : strips.row_stride;
    const std::int64_t inner = along_rows ? strips.rows : strips.k;
    bool vectors = reinterpret_cast<std::uintptr_t>(strips.source) % sizeof(float4) == 0 &&
                   inner_stride == 1 && inner % kVector == 0 && outer_stride % kVector == 0;
    for (int dim = 0; dim < strips.batch.rank; ++dim) {
        vectors = vectors && strips.source_batch_stride[dim] % kVector == 0;
    }
    if (along_rows) return vectors ? Read::row_vectors : Read::row_elements;
    return vectors ? Read::k_vectors : Read::k_elements;
}

Strips strips_of(const HalvesTask& task) {
    const MatrixView &source = task.source, &target = task.target.view;
    Strips strips;
    strips.source = static_cast<const float*>(source.data);
    strips.target = static_cast<__half*>(target.data);
    strips.exponents = task.exponents;
    strips.rows = task.rows;
    strips.k = task.k;
    strips.row_stride = task.is_b ? source.col_stride : source.row_stride;
    strips.k_stride = task.is_b ? source.row_stride : source.col_stride;
    strips.target_row_stride = task.is_b ? target.col_stride : target.row_stride;
    strips.batch = task.target.batch;
    std::copy(source.batch_stride, source.batch_stride + kMaxBatchDims, strips.source_batch_stride);
    strips.in_matrix = divide_up(task.rows, kRows);
    strips.read = choose_read(strips);
    return strips;
}

}  // namespace

void launch_halves(const HalvesTask& a, const HalvesTask& b, halves::Report* report,
                   StreamView stream) {
    StripsArgs args;
    args.operand[0] = strips_of(a);
    args.operand[1] = strips_of(b);
    args.first_strips = args.operand[0].in_matrix * args.operand[0].batch.count;
    args.all_strips = args.first_strips + args.operand[1].in_matrix * args.operand[1].batch.count;
    args.report = report;
    runtime::clear_async(report, sizeof(*report), stream.get());
    const int sm_count = properties(Device::cuda(runtime::current_device())).sm_count;
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(
        std::min<std::int64_t>(args.all_strips, std::int64_t{sm_count} * kBlocksPerSm));
    config.threads = kStripThreads;
    config.stream = stream;
    config.overlaps_predecessor = true;
    switch (a.block) {
        case 32: return device::launch("pack halves", pack_halves_kernel<32>, config, args);
        case 64: return device::launch("pack halves", pack_halves_kernel<64>, config, args);
        default:
            throw UnsupportedError("no packing of halves in blocks of " + std::to_string(a.block));
    }
}

}  // namespace tcgemm::pack
