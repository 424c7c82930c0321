#include "kernels/sm80_mma/strips_kernel.cuh"
#include "kernels/whole_k/launch.cuh"

namespace tcgemm::sm80_mma {

template <class Element, int kTile>
void launch_strips(const GemmArgs& args, const Schedule&, StreamView stream) {
    const std::int64_t tiles_m = divide_up(args.m, kTile), tiles_n = divide_up(args.n, kTile);
    const std::int64_t rows = std::min<std::int64_t>(args.m, kTile);
    const std::int64_t cols = std::min<std::int64_t>(args.n, kTile);
    ImageLayout a =
        whole_k::image_of(args.a, rows, args.a.row_stride, args.k, args.a.col_stride, kStripItem,
                          args.batch.rank, whole_k::alignment_of(args.a), false);
    ImageLayout b =
        whole_k::image_of(args.b, cols, args.b.col_stride, args.k, args.b.row_stride, kStripItem,
                          args.batch.rank, whole_k::alignment_of(args.b), false);
    a.through_l1 |= whole_k::is_shared(args.a, tiles_n, args.batch);
    b.through_l1 |= whole_k::is_shared(args.b, tiles_m, args.batch);
    const bool has_rows = args.d.col_stride == 1 && args.beta == 0 && args.d.dtype != DType::f64;
    StripsParams params;
    params.args = args;
    params.tiles = {tiles_m, tiles_n, args.batch.count, tiles_m};
    params.layout = strips_layout(a, b, kTile, rows, cols, args.k, has_rows, args.d.row_stride,
                                  size_of(args.d.dtype));
    const device::LaunchConfig config =
        whole_k::launch_config(params.tiles.count(), params.layout.bytes(kTile),
                               strip_threads(kTile), strip_blocks_on_sm(kTile), stream);
    device::launch("sm80_mma strips_kernel", strips_kernel<Element, kTile>, config, params,
                   epilogue::Linear<float>(args));
}

#define TCGEMM_LAUNCH(Element, tile) \
    template void launch_strips<Element, tile>(const GemmArgs&, const Schedule&, StreamView);
TCGEMM_LAUNCH(__half, 64)
TCGEMM_LAUNCH(__half, 128)
TCGEMM_LAUNCH(__nv_bfloat16, 64)
TCGEMM_LAUNCH(__nv_bfloat16, 128)
#undef TCGEMM_LAUNCH

}  // namespace tcgemm::sm80_mma
