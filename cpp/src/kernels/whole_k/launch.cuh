// Launches the kernel; included by the files of families that instantiate it.
#pragma once

#include <cstdint>

#include "core/runtime.hpp"
#include "kernels/epilogue/linear.hpp"
#include "kernels/whole_k/kernel.cuh"
#include "kernels/whole_k/whole_k.hpp"

namespace tcgemm::whole_k {

// Whether tiles share an operand, of which there are `others` in the direction that it lacks.
inline bool is_shared(const MatrixView& view, std::int64_t others, const BatchShape& batch) {
    for (int dim = 0; dim < batch.rank; ++dim) {
        if (view.batch_stride[dim] == 0) return true;
    }
    return others > 1;
}

// An address is a multiple of so many bytes, up to a vector.
inline std::int64_t alignment_of(const MatrixView& view) {
    return std::gcd(reinterpret_cast<std::intptr_t>(view.data), std::intptr_t{kVectorBytes});
}

// No more blocks than are at work at once, with as many tiles each.
inline device::LaunchConfig launch_config(std::int64_t tiles, int shared_bytes, int threads,
                                          int blocks_per_sm, StreamView stream) {
    const DeviceProperties& device = properties(Device::cuda(runtime::current_device()));
    const std::int64_t most = device.sm_count * blocks_on_sm(shared_bytes, blocks_per_sm, device);
    const std::int64_t rounds = divide_up(tiles, most);
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(divide_up(tiles, rounds));
    config.threads = static_cast<unsigned>(threads);
    config.shared_bytes = static_cast<std::size_t>(shared_bytes);
    config.most_shared_bytes = static_cast<std::size_t>(device.shared_memory_per_block);
    config.stream = stream;
    config.overlaps_predecessor = true;
    return config;
}

template <class Math>
void launch(const GemmArgs& args, const Schedule&, StreamView stream) {
    using Epilogue = epilogue::Linear<typename Math::Acc>;
    constexpr Shape kShape = Math::kShape;
    constexpr int kWarp = 32;  // a block
    const int rows = tile_rows(kShape, args.k);
    const std::int64_t tiles_m = divide_up(args.m, rows);
    const std::int64_t tiles_n = divide_up(args.n, kShape.cols);
    Params params;
    params.args = args;
    params.rows = rows;
    params.tiles = {tiles_m, tiles_n, args.batch.count, walks_along_rows(args) ? 1 : tiles_m};
    params.a = image_of(args.a, std::min<std::int64_t>(args.m, rows), args.a.row_stride, args.k,
                        args.a.col_stride, kShape.element_bytes, args.batch.rank,
                        alignment_of(args.a), spread_of_a(kShape));
    params.b =
        image_of(args.b, std::min<std::int64_t>(args.n, kShape.cols), args.b.col_stride, args.k,
                 args.b.row_stride, kShape.element_bytes, args.batch.rank, alignment_of(args.b));
    params.a.through_l1 |= is_shared(args.a, tiles_n, args.batch);
    params.b.through_l1 |= is_shared(args.b, tiles_m, args.batch);
    if (kShape.lanes_have_rows) params.a.walked_by(kWarp);
    params.stage_bytes = stage_bytes(params.a, params.b, kShape);

    const device::LaunchConfig config = launch_config(
        params.tiles.count(), 2 * params.stage_bytes + staged_b_bytes(kShape, args.n, args.k),
        kWarp, kShape.blocks_per_sm, stream);
    device::launch(Math::name, whole_k_kernel<Math, Epilogue>, config, params, Epilogue(args));
}

}  // namespace tcgemm::whole_k
