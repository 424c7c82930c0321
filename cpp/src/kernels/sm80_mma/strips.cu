#include "kernels/sm80_mma/strips_kernel.cuh"
#include "kernels/whole_k/launch.cuh"

namespace tcgemm::sm80_mma {

template <class Element, int kTile, bool kAnyK>
void launch_strips(const GemmArgs& args, const Schedule& schedule, StreamView stream) {
    constexpr const char* kName = "sm80_mma strips_kernel";  // in errors
    const auto launch = [&](const GemmArgs& what, const KRange& split) {
        const std::int64_t tiles_m = divide_up(what.m, kTile), tiles_n = divide_up(what.n, kTile);
        const std::int64_t rows = std::min<std::int64_t>(what.m, kTile);
        const std::int64_t cols = std::min<std::int64_t>(what.n, kTile);
        const std::int64_t k = std::min<std::int64_t>(what.k, whole_k::kMaxK);
        ImageLayout a =
            whole_k::image_of(what.a, rows, what.a.row_stride, k, what.a.col_stride, kStripItem,
                              what.batch.rank, whole_k::alignment_of(what.a), Spread::none);
        ImageLayout b =
            whole_k::image_of(what.b, cols, what.b.col_stride, k, what.b.row_stride, kStripItem,
                              what.batch.rank, whole_k::alignment_of(what.b), Spread::none);
        a.through_l1 |= whole_k::is_shared(what.a, tiles_n, what.batch);
        b.through_l1 |= whole_k::is_shared(what.b, tiles_m, what.batch);
        StripsParams params;
        params.args = what;
        params.tiles = {tiles_m, tiles_n, what.batch.count * split.split_k,
                        walks_along_rows(what) ? 1 : tiles_m};
        params.layout =
            strips_layout(a, b, kTile, rows, cols, k, strips_of_d(what.d, what.beta != 0));
        params.split = split;
        const device::LaunchConfig config =
            whole_k::launch_config(params.tiles.count(), params.layout.bytes(kTile),
                                   strip_threads(kTile), strip_blocks_on_sm(kTile, kAnyK), stream);
        device::launch(kName, strips_kernel<Element, kTile, kAnyK>, config, params,
                       epilogue::Linear<float>(what));
    };
    launch_split(args, schedule, whole_k::kMaxK, DType::f32, stream, kName, launch);
}

#define TCGEMM_LAUNCH(Element, tile, any_k) \
    template void launch_strips<Element, tile, any_k>(const GemmArgs&, const Schedule&, StreamView);
TCGEMM_LAUNCH(__half, 64, false)
TCGEMM_LAUNCH(__half, 64, true)
TCGEMM_LAUNCH(__half, 128, false)
TCGEMM_LAUNCH(__nv_bfloat16, 64, false)
TCGEMM_LAUNCH(__nv_bfloat16, 64, true)
TCGEMM_LAUNCH(__nv_bfloat16, 128, false)
#undef TCGEMM_LAUNCH

}  // namespace tcgemm::sm80_mma
