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

template <class Math>
void launch(const GemmArgs& args, const Schedule&, StreamView stream) {
    using Epilogue = epilogue::Linear<typename Math::Acc>;
    constexpr Shape kShape = Math::kShape;
    const std::int64_t tiles_m = divide_up(args.m, kShape.tile);
    const std::int64_t tiles_n = divide_up(args.n, kShape.tile);
    const auto alignment = [](const MatrixView& view) {
        return std::gcd(reinterpret_cast<std::intptr_t>(view.data), std::intptr_t{kVectorBytes});
    };
    Params params;
    params.args = args;
    params.tiles = {tiles_m, tiles_n, args.batch.count, tiles_m};
    params.a = image_of(args.a, args.m, args.a.row_stride, args.k, args.a.col_stride, kShape,
                        args.batch.rank, alignment(args.a));
    params.b = image_of(args.b, args.n, args.b.col_stride, args.k, args.b.row_stride, kShape,
                        args.batch.rank, alignment(args.b));
    params.a.through_l1 |= is_shared(args.a, tiles_n, args.batch);
    params.b.through_l1 |= is_shared(args.b, tiles_m, args.batch);
    params.stage_bytes = stage_bytes(params.a, params.b, kShape);

    // No more blocks than are at work at once, with as many tiles each.
    const DeviceProperties& device = properties(Device::cuda(runtime::current_device()));
    const std::int64_t most = device.sm_count * blocks_on_sm(params.stage_bytes, kShape, device);
    const std::int64_t rounds = divide_up(params.tiles.count(), most);
    device::LaunchConfig config;
    config.blocks = static_cast<unsigned>(divide_up(params.tiles.count(), rounds));
    config.threads = 32 * kShape.warps();
    config.shared_bytes = 2 * static_cast<std::size_t>(params.stage_bytes);
    config.stream = stream;
    config.overlaps_predecessor = true;
    device::launch(Math::name, whole_k_kernel<Math, Epilogue>, config, params, Epilogue(args));
}

}  // namespace tcgemm::whole_k
