"""The 16-bit kernels of sm90_wgmma, each forced: every edge of a tile, every way to store D."""

import itertools

import numpy as np
import pytest
import tcgemm
from harness import COL, MODES, Lab, Layout, data, families, round_to

pytestmark = pytest.mark.gpu
FAMILY = "sm90_wgmma"
MODES_OF = {"f16": "fp16", "bf16": "bf16"}
KERNELS = [
    kernel
    for kernel in tcgemm.kernels()
    if kernel["name"].startswith((f"{FAMILY}_f16_", f"{FAMILY}_bf16_"))
] or [{"name": "none in this build", "tile": "1x1x1"}]
ODD, STEP = Layout(pad=1, offset=1), Layout(step=2)


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel["name"])
def kernel(request, monkeypatch):
    if FAMILY not in families.runnable():
        pytest.skip("no Hopper GPU")
    monkeypatch.setenv("TCGEMM_FORCE_KERNEL", request.param["name"])
    return request.param


def mode_of(kernel):
    words = kernel["name"].removeprefix(f"{FAMILY}_").split("_")
    how = {"promoted": "_promoted", "acc16": "_accumulate_fp16"}.get(words[1], "")
    return MODES[MODES_OF[words[0]] + how]


def check(kernel, m, n, k, **how):
    mode = mode_of(kernel)
    rng = np.random.default_rng(m * n + k)
    a, b = data.integers(rng, mode, (m, k), (k, n))
    c = None
    if "beta" in how:
        c = round_to(rng.integers(-8, 8, (m, n)), how.get("out_dtype", mode.default_output))
    done = Lab(tcgemm, FAMILY).check(mode, a, b, c, expect="exact", **how)
    assert done.kernel == kernel["name"]


def around(extent):
    return (extent - 1, extent, extent + 1)


def test_each_edge_of_a_tile(kernel):
    """Rows and columns below, at and above a tile's, by boxes and where rows begin anywhere."""
    rows, columns, _ = map(int, kernel["tile"].split("x"))
    for m, n in itertools.product((1, *around(64), *around(rows)), (*around(columns), 2 * columns)):
        for layout in (Layout(), ODD):
            check(kernel, m, n, 72, layouts={"out": layout})


def test_each_width_of_a_tile(kernel):
    """Narrowed tiles: from one width to the next."""
    rows, columns, _ = map(int, kernel["tile"].split("x"))
    for n in range(8, columns + 8, 8):
        check(kernel, rows, n, 136)


@pytest.mark.parametrize("out", [Layout(), ODD, COL, STEP], ids=["rows", "odd", "columns", "step"])
def test_each_store(kernel, out):
    """D by boxes, rows and elements, with and without C, in each dtype."""
    rows, columns, _ = map(int, kernel["tile"].split("x"))
    for out_dtype in ("float32", "float16", "bfloat16"):
        for how in ({}, {"beta": -1, "alpha": 2}):
            for m, n in ((rows + 3, columns + 9), (2 * rows, 2 * columns)):
                layouts = {"out": out, "c": out}
                check(kernel, m, n, 64, out_dtype=out_dtype, layouts=layouts, **how)


def test_long_k(kernel):
    """Parts of K, each of which leaves sums in the workspace, twice in the same memory."""
    for m, n, k in ((64, 64, 20_000), (200, 200, 9_001), (500, 130, 5_000)):
        for _ in range(2):
            check(kernel, m, n, k)
