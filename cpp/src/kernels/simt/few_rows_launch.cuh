// Launches the kernel for few rows; included by the files that instantiate it.
#pragma once

#include "kernels/epilogue/linear.hpp"
#include "kernels/simt/few_rows_kernel.cuh"
#include "kernels/tile_launch.cuh"

namespace tcgemm::simt {

template <class Policy, Major kMajor>
void launch_few_rows_of(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    using Epilogue = epilogue::Linear<typename Policy::Numbers::Result>;
    const device::TileScheduler tiles(
        divide_up(args.m, Policy::kRows), divide_up(args.n, Threads<Policy, kMajor>::kBlockCols),
        args.batch.count * schedule.split_k, divide_up(args.m, Policy::kRows));
    KRange split(args.k, schedule.split_k, Policy::kBlockK);
    if (split.split_k > 1) split.epoch = next_epoch();
    launch_blocks<Policy>(few_rows_kernel<Policy, kMajor, Epilogue>, 0, args, Epilogue(args), tiles,
                          split, stream, true);
}

template <class Policy>
void launch_few_rows(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    if (lies_along_n(args.b.row_stride, args.b.col_stride, args.n)) {
        launch_few_rows_of<Policy, Major::mn>(args, schedule, stream);
    } else {
        launch_few_rows_of<Policy, Major::k>(args, schedule, stream);
    }
}

}  // namespace tcgemm::simt
