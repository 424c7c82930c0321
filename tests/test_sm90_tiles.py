"""The kernels of sm90_wgmma, each forced: every edge of a tile, every way to add C and store D."""

import itertools

import numpy as np
import pytest
import tcgemm
from harness import COL, Lab, Layout, cuda, data, forced, round_to, scaled, wide
from harness.forced import MODES_OF, mode_of

pytestmark = pytest.mark.gpu
FAMILY = "sm90_wgmma"
ODD, STEP = Layout(pad=1, offset=1), Layout(step=2)


def kernels(*begins):
    begins = tuple(f"{FAMILY}_{begin}_" for begin in begins)
    return forced.kernels(FAMILY, lambda name: name.startswith(begins))


kernel = kernels("f16", "bf16")
kernel_of_any_mode = kernels(*MODES_OF)
kernel_of_fp8 = kernels("e4m3_promoted", "e4m3_fast", "e5m2_promoted")


def tile_of(kernel):
    tile = next(each["tile"] for each in tcgemm.kernels() if each["name"] == kernel)
    return map(int, tile.split("x"))


def check(kernel, m, n, k, batch=(), **how):
    mode = mode_of(kernel)
    rng = np.random.default_rng(m * n + k)
    a, b = data.integers(rng, mode, (*batch, m, k), (*batch, k, n))
    c = None
    if "beta" in how:
        c = round_to(rng.integers(-8, 8, (*batch, m, n)), how.get("out_dtype", mode.default_output))
        if how.get("layouts", {}).get("c", Layout()).broadcast_batch:
            c[:] = c[0]
    done = Lab(tcgemm, FAMILY).check(mode, a, b, c, expect="exact", **how)
    assert done.kernel == kernel
    return done


def around(extent):
    return (extent - 1, extent, extent + 1)


def test_each_edge_of_a_tile(kernel):
    """Rows and columns below, at and above a tile's, by boxes and where rows begin anywhere."""
    rows, columns, _ = tile_of(kernel)
    for m, n in itertools.product((1, *around(64), *around(rows)), (*around(columns), 2 * columns)):
        for layout in (Layout(), ODD):
            check(kernel, m, n, 72, layouts={"out": layout})


def test_each_width_of_a_tile(kernel):
    """Narrowed tiles: from one width to the next."""
    rows, columns, _ = tile_of(kernel)
    for n in range(8, columns + 8, 8):
        check(kernel, rows, n, 136)


@pytest.mark.parametrize("out", [Layout(), ODD, COL, STEP], ids=["rows", "odd", "columns", "step"])
def test_each_store(kernel, out):
    """D by boxes, rows and elements, with and without C, in each dtype."""
    rows, columns, _ = tile_of(kernel)
    for out_dtype in ("float32", "float16", "bfloat16"):
        for how in ({}, {"beta": -1, "alpha": 2}):
            for m, n in ((rows + 3, columns + 9), (2 * rows, 2 * columns)):
                layouts = {"out": out, "c": out}
                check(kernel, m, n, 64, out_dtype=out_dtype, layouts=layouts, **how)


def test_fp8_results(kernel_of_fp8):
    """Boxes of 128 columns, whole and cut; rows that begin at each byte of a word; elements."""
    rows, columns, _ = tile_of(kernel_of_fp8)
    sizes = [(2 * rows, 2 * columns), (rows + 1, columns + 16), (3, 130), (1, columns)]
    sizes += [(rows + rest, columns + rest) for rest in (1, 2, 3, 9)]
    outs = Layout(), ODD, Layout(pad=2, offset=3), Layout(pad=3, offset=2), COL, STEP
    for out_dtype in ("float8_e4m3fn", "float8_e5m2"):
        for (m, n), out, how in itertools.product(sizes, outs, ({}, {"beta": -1})):
            how = {"out_dtype": out_dtype, "layouts": {"out": out, "c": out}, **how}
            check(kernel_of_fp8, m, n, 64, alpha=0.25, **how)
        for n in (13 * columns + 16, 13 * columns + 5):  # several tiles of a block
            check(kernel_of_fp8, 11 * rows + 5, n, 64, alpha=0.25, out_dtype=out_dtype)


def test_short_tiles(kernel):
    """Several of a block: boxes of D, of C beside them, take turns in the stagings from tile to
    tile, where short tiles have more of those than long ones."""
    rows, columns, block_k = tile_of(kernel)
    m, n = 17 * rows + 3, 17 * columns + 8
    for k_blocks, how in (
        (1, {}),
        (3, {"out_dtype": "float32", "beta": -1}),
        (4, {"beta": 1, "layouts": {"out": COL, "c": COL}}),
        (6, {"out_dtype": "float32"}),
    ):
        check(kernel, m, n, k_blocks * block_k, **how)


def test_tiles_begun_ahead(kernel_of_fp8):
    """Several of a block, whose next one large promoted kernels begin while they store: of one
    k-block and of many, of each width, of narrow results in boxes and of others."""
    rows, columns, block_k = tile_of(kernel_of_fp8)
    m = 12 * rows - 60
    for width in (columns, columns - 16, columns - 32):
        n = 2560 // width * width + width - 40
        for k in (16, block_k, block_k + 16, 2 * block_k, 3 * block_k, 11 * block_k + 48):
            check(kernel_of_fp8, m, n, k, out_dtype="bfloat16")
        for how in (
            {"out_dtype": "float16", "alpha": 0.5},
            {"out_dtype": "bfloat16", "layouts": {"out": COL}},
            {"out_dtype": "bfloat16", "beta": 1},
            {"out_dtype": "float32"},
        ):
            check(kernel_of_fp8, m, n, 5 * block_k, **how)
        for out in ("float8_e4m3fn", "float8_e5m2"):
            for its_n, k in ((n // 16 * 16, 40), (n // 16 * 16, 5 * block_k), (n, 2 * block_k)):
                check(kernel_of_fp8, m, its_n, k, out_dtype=out, alpha=2.0**-5)
        check(kernel_of_fp8, rows + 9, n // 2, 2 * block_k, batch=(2, 7), out_dtype="bfloat16")


def test_scales_of_several_tiles(kernel_of_fp8):
    """One factor for all elements where scales are of matrices, one for each where they are not."""
    rows, columns, block_k = tile_of(kernel_of_fp8)
    m, n, k = 12 * rows - 60, 2560 // columns * columns, 3 * block_k
    mode, rng, lab = mode_of(kernel_of_fp8), np.random.default_rng(k), Lab(tcgemm, FAMILY)
    a, b = data.integers(rng, mode, (m, k), (k, n))
    for a_shape, b_shape in (((1, 1), (1, 1)), ((m, 1), (1, n)), ((1, 1), (1, n)), ((m, 1), None)):
        scales = {"scale_a": rng.uniform(0.5, 2, a_shape).astype(np.float32)}
        if b_shape:
            scales["scale_b"] = rng.uniform(0.5, 2, b_shape).astype(np.float32)
        for out in ("bfloat16", "float32", "float8_e4m3fn"):
            how = {"out_dtype": out, "alpha": 0.04, "accumulate": mode.accumulate}
            scaled.check(lab, a, b, scales=scales, **how)
            of_d = scales | {"scale_d": np.full((1, 1), 0.3, np.float32)}
            scaled.check(lab, a, b, scales=of_d, **how)


def test_factors_too_large_to_be_multiplied_with_each_other(kernel_of_fp8):
    """Their product is infinite; sums of 0 stay 0."""
    rows, columns, block_k = tile_of(kernel_of_fp8)
    m, n, k = 12 * rows - 60, 2560 // columns * columns, 2 * block_k
    mode = mode_of(kernel_of_fp8)
    a, b = (round_to(np.ones(shape), mode.operand) for shape in ((m, k), (k, n)))
    a[::3] = 0
    scale = np.full((1, 1), 1e30, np.float32)
    for scales in ({"scale_a": scale}, {"scale_d": scale}):
        for out in ("bfloat16", "float32"):
            how = {"out_dtype": out, "alpha": 1e30, "accumulate": mode.accumulate}
            with np.errstate(all="ignore"):
                _, d = scaled.run(Lab(tcgemm, FAMILY), a, b, scales=scales, **how)
            assert (wide(d[::3]) == 0).all()
            assert np.isposinf(wide(d[1::3])).all()


def test_long_k(kernel_of_any_mode):
    """Parts of K, each of which leaves sums in the workspace, twice in the same memory."""
    for m, n, k in ((64, 64, 20_000), (200, 200, 9_001), (500, 130, 5_000)):
        for _ in range(2):
            check(kernel_of_any_mode, m, n, k)


def test_long_k_of_narrowed_tiles(kernel_of_any_mode):
    """Parts of K leave the sums of the columns that there are: fours of eight of them."""
    rows, columns, block_k = tile_of(kernel_of_any_mode)
    for n in (*range(8, columns + 8, 24), columns - 1):
        for layout in (Layout(), ODD):
            layouts = {"c": layout, "out": layout}
            check(kernel_of_any_mode, rows - 3, n, 90 * block_k + 5, beta=2, layouts=layouts)


def test_tiles_behind_the_last_wave(kernel_of_any_mode):
    """Those alone have parts of K, where others would leave most SMs idle."""
    rows, columns, block_k = tile_of(kernel_of_any_mode)
    for m, n in ((12 * rows, 11 * columns + 8), (13 * rows + 1, 21 * columns - 1)):
        for layout in (Layout(), ODD):
            check(kernel_of_any_mode, m, n, 24 * block_k + 3, layouts={"out": layout})


# Kernels whose warpgroups share a tile: whole tiles of rows, tiles of columns and k-blocks, where
# of the tiles of 132 SMs the last ones have parts of K, of no more stages than a block holds.
RESTS = {
    f"{FAMILY}_f16_acc16_128x256": (3, 34, 20),
    f"{FAMILY}_f16_128x256": (4, 28, 32),
    f"{FAMILY}_f16_192x208": (56, 7, 36),
    f"{FAMILY}_f16_promoted_128x192": (4, 56, 24),
    f"{FAMILY}_e4m3_promoted_128x208": (42, 37, 20),
    f"{FAMILY}_i8_128x256": (3, 34, 20),
}
kernel_of_shared_tiles = forced.kernels(FAMILY, RESTS.get)


def test_parts_behind_tiles_of_few_rows(kernel_of_shared_tiles):
    """A warpgroup that has no rows to store leaves sums of a part while another one stores: none
    may take the one's barrier for the other's."""
    rows, columns, block_k = tile_of(kernel_of_shared_tiles)
    of_rows, of_columns, of_k = RESTS[kernel_of_shared_tiles]
    m, n, k = of_rows * rows + 64, of_columns * columns, of_k * block_k
    for out in (Layout(), ODD, STEP):
        layouts = {"out": out}
        done = check(kernel_of_shared_tiles, m, n, k, layouts=layouts, rows=range(0, m, 7))
    assert done.split_k > 1 or cuda.sm_count() != 132


def test_each_c(kernel_of_any_mode):
    """As C and D lie, of blocks that go through many tiles or have one."""
    kernel, mode = kernel_of_any_mode, mode_of(kernel_of_any_mode)
    rows, columns, block_k = tile_of(kernel)
    many = 11 * rows + 5, 13 * columns + 16
    for out_dtype in {mode.default_output, *mode.outputs} & {"float32", "float16", "int32"}:
        how = {"alpha": 2, "beta": -1, "out_dtype": out_dtype}
        plain = Layout()
        for c, out in ((plain, plain), (plain, ODD), (ODD, plain), (ODD, ODD), (STEP, ODD)):
            check(kernel, *many, block_k + 8, layouts={"c": c, "out": out}, **how)
        for m, n, k in (
            (*many, 5 * block_k),
            (rows, 2 * columns, block_k),
            (7, 200, 9),
            (40, 1000, 300),
            (rows - 3, columns - 3, 50),
        ):
            for of_both in (Layout(), COL, ODD):
                check(kernel, m, n, k, layouts={"c": of_both, "out": of_both}, **how)
        one_c = {"c": Layout(broadcast_batch=True)}
        check(kernel, rows + 8, columns, 2 * block_k, batch=(3,), layouts=one_c, **how)
