"""Operands where they lie, in every layout, by every kernel; and tiles that lie across D."""

import itertools

import numpy as np
import pytest
import tcgemm
from harness import COL, Layout, data, round_to

ORDERS = [Layout(order, align=16) for order in ("row", "col")]
LAYOUTS = [
    {"a": a, "b": b, "c": ORDERS[0], "out": ORDERS[0]}
    for a, b in itertools.product(ORDERS, repeat=2)
]


def test_every_layout_by_every_kernel(lab, mode, rng, monkeypatch):
    """Ragged tiles, C and a batch, with rows that vectors can be loaded from and with others."""
    shapes = ((200, 136, 100), (72, 328, 264), (131, 77, 67))
    accepted = 0
    for _ in lab.force_each(monkeypatch):
        for (m, n, k), layouts in itertools.product(shapes, LAYOUTS):
            a, b = data.integers(rng, mode, (2, m, k), (2, k, n))
            c = round_to(rng.integers(-8, 8, (2, m, n)), mode.default_output)
            try:
                lab.check(mode, a, b, c, alpha=2, beta=3, layouts=layouts, expect="exact")
            except tcgemm.NoKernelError:
                break
            lab.check(mode, a[0], b[0], layouts=layouts, expect="exact")
            accepted += 1
    assert accepted > 0


@pytest.mark.modes(only=lambda mode: mode.name == "tf32")
def test_tf32_packs_as_little_as_it_can(lab, mode, rng):
    """Hopper's tensor cores take TF32 with contiguous k, but one operand, which comes through
    registers, with any layout."""
    if lab.family != "sm90_wgmma":
        pytest.skip("of sm90_wgmma")
    a, b = data.signed(rng, mode, (512, 256), (256, 1024))
    packed = []
    for layouts in LAYOUTS:
        lab.check(mode, a, b, layouts=layouts)
        text = str(lab.prepare(mode, a, b, layouts=layouts).plan)
        packed.append([operand for operand in "AB" if f"pack       {operand} " in text])
    assert packed == [[], [], ["A"], []]  # of B the pass would read twice as much
    # Also where the copy engine can't store D.
    a, b = data.signed(rng, mode, (64, 1024), (1024, 4096))
    c = rng.standard_normal((64, 4096)).astype(np.float32)
    for out in (Layout(pad=1), Layout(offset=1)):
        lab.check(mode, a, b, layouts={"out": out})
        lab.check(mode, a, b, c, beta=2, layouts={"out": out})
        assert "pack" not in str(lab.prepare(mode, a, b, layouts={"out": out}).plan)


def test_matrices_that_share_b_are_gathered(lab, mode, rng):
    """Groups of heads with queries of a few tokens by the keys of each group: D's matrices follow
    each other, A's do not. Packed one below the other, they are one matrix of more rows."""
    heads, group, n, k = (2, 8, 8200, 136) if lab.on_gpu else (2, 2, 24, 17)
    apart = [Layout(batch_pad=5), COL, Layout("col", pad=1, reverse_rows=True, outer_batch_pad=3)]
    gathered = 0
    for m, layout in itertools.product((2, 8, 24), apart):
        a, b = data.integers(rng, mode, (heads, group, m, k), (heads, 1, k, n))
        c = round_to(rng.integers(-8, 8, (heads, group, m, n)), mode.default_output)
        for of_b in ORDERS:
            layouts = {"a": layout, "b": of_b}
            lab.check(mode, a, b, c, alpha=2, beta=3, layouts=layouts, expect="exact")
            gathered += "gathered into" in str(lab.prepare(mode, a, b, layouts=layouts).plan)
        lab.check(mode, a, b[0, 0], layouts={"a": layout, "b": COL}, expect="exact")
        lab.check(mode, a[:1], b, layouts={"a": layout, "b": COL}, expect="exact")
    # Where each of the inner dimension has a B, rows and the outer matrices change places.
    a, b = data.integers(rng, mode, (40, 2, 3, k), (2, k, n // 8))
    for layout in apart:
        lab.check(mode, a, b, layouts={"a": layout, "b": COL}, expect="exact")
    assert gathered > 0 or lab.family != "sm90_wgmma"


def test_columns_that_share_both_operands(lab, mode, rng):
    """a @ x.expand(8, k, 1): one matrix by one column, eight times."""
    for m, k in ((300, 257), (130, 64)):
        a, b = (x.repeat(8, 0) for x in data.integers(rng, mode, (1, m, k), (1, k, 1)))
        c = round_to(rng.integers(-8, 8, (8, m, 1)), mode.default_output)
        shared = Layout(broadcast_batch=True)
        layouts = {"a": shared, "b": shared}
        lab.check(mode, a, b, layouts=layouts, expect="exact")
        lab.check(mode, a, b, c, alpha=2, beta=3, layouts=layouts, expect="exact")


@pytest.mark.modes(only=lambda mode: mode.name in ("fp16", "bf16_promoted"))
def test_operands_with_few_bytes_a_row(lab, mode, rng):
    """Few columns side by side, or rows of A^T: of those the copy engine brings a few bytes at a
    time. They are packed with contiguous k where all tiles would ask for them again and again."""
    if lab.family != "sm90_wgmma":
        pytest.skip("of sm90_wgmma")
    row, col = (Layout(order, align=8) for order in ("row", "col"))
    for layouts, few_a, few_b in (
        ({"a": row, "b": row}, False, True),
        ({"a": col, "b": col}, True, False),
        ({"a": col, "b": row}, True, True),
        ({"a": col, "b": row, "out": Layout("col")}, True, True),
        ({"a": Layout("col", pad=1), "b": Layout(pad=1)}, True, True),
    ):
        for (many, k), (few, batch) in itertools.product(
            ((2048, 1024), (131072, 256), (4096, 8192)), ((8, ()), (24, ()), (40, (2,)))
        ):
            m, n = few if few_a else many, few if few_b else many
            a, b = data.integers(rng, mode, (*batch, m, k), (*batch, k, n))
            rows = [*range(0, m, 301), m - 1]
            lab.check(mode, a, b, layouts=layouts, rows=rows, expect="exact")
            # There the pass may cost more than it saves, or about as much.
            if batch or (few_a and few_b) or k == 8192:
                continue
            text = str(lab.prepare(mode, a, b, layouts=layouts).plan)
            packed = [f"pack       {operand} " in text for operand in "AB"]
            asks_often = many > 2048
            assert packed == [few_a and asks_often, few_b and asks_often], text


def test_tiles_across_the_output(lab, mode, rng, monkeypatch):
    """Where D has few more rows than a tile and many columns, a kernel may compute D^T = B^T A^T
    and store it transposed; C comes in likewise. Tiles are as narrow as fills the GPU, as where D
    has as few columns. By every kernel."""
    n, k = (4104, 136) if lab.on_gpu else (72, 24)
    narrow = ("float16", "bfloat16", "float32")
    outs = [out for out in mode.outputs if out in narrow] or mode.outputs[:1]
    across = accepted = 0
    for _ in lab.force_each(monkeypatch):
        few = (136, 264, 320, 384, 440, 500) if lab.on_gpu else (40,)
        for m, out in itertools.product(few, outs):
            rows = [*range(0, m, 13), m - 1]
            a, b = data.integers(rng, mode, (2, m, k), (2, k, n))
            c = round_to(rng.integers(-8, 8, (1, m, n)).repeat(2, 0), out)
            how = {"out_dtype": out, "expect": "exact", "rows": rows}
            layouts = {"b": Layout("col"), "c": Layout(broadcast_batch=True)}
            try:
                lab.check(mode, a, b, c, alpha=2, beta=3, layouts=layouts, **how)
            except tcgemm.NoKernelError:
                break
            lab.check(mode, a, b, c, alpha=2, beta=3, layouts={"c": layouts["c"]}, **how)
            lab.check(mode, a[0], b[0], layouts={"out": Layout(pad=24, align=16)}, **how)
            of_columns = {"out_dtype": out, "expect": "exact", "rows": [*range(0, n, 131), n - 1]}
            lab.check(mode, b[0].T, a[0].T, **of_columns)
            lab.check(mode, b[0].T, a[0].T, layouts={"b": Layout("col")}, **of_columns)
            across += "D^T" in str(lab.prepare(mode, a[0], b[0], out_dtype=out).plan)
            accepted += 1
    assert accepted > 0
    assert across > 0 or lab.family != "sm90_wgmma" or mode.name not in ("fp16", "bf16", "tf32")


def test_long_k_across_the_output(lab, mode, rng):
    """The same where K is split among blocks, which add their sums up and store them."""
    shape = (136, 1032, 16384) if lab.on_gpu else (12, 24, 300)
    m, n, k = shape
    a, b = data.signed(rng, mode, (m, k), (k, n))
    for determinism in ("run_to_run", "batch_invariant"):
        how = {"rows": [0, 5, m // 2, m - 1], "layouts": {"b": Layout("col")}}
        try:
            lab.check(mode, a, b, determinism=determinism, **how)
        except tcgemm.NoKernelError:
            assert determinism == "batch_invariant"
