"""Operands where they lie: every layout of A and B, by every kernel, and what a plan must pack."""

import itertools

import pytest
import tcgemm
from harness import Layout, data, round_to

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
