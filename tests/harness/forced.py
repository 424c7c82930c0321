"""What tests share that force one kernel by its name, in products of whole numbers."""

import itertools

import numpy as np
import pytest
import tcgemm

from . import data, families
from .check import Lab
from .formats import round_to
from .layout import COL, Layout
from .modes import MODES

ODD, ODD_COL = Layout(pad=1, offset=1), Layout("col", pad=1, offset=1)
REVERSED, STEP = Layout(reverse_rows=True), Layout(step=2)
_FAMILIES = {kernel["name"]: kernel["family"] for kernel in tcgemm.kernels()}
# By what follows the family in a kernel's name.
MODES_OF = {
    "f16_promoted": "fp16_promoted",
    "f16_acc16": "fp16_accumulate_fp16",
    "f16": "fp16",
    "bf16_promoted": "bf16_promoted",
    "bf16": "bf16",
    "e4m3_promoted": "fp8_e4m3",
    "e4m3_fast": "fp8_e4m3_fast",
    "e5m2_promoted": "fp8_e5m2",
    "tf32": "tf32",
    "i8": "int8",
    "f32": "fp32",
    "f64": "fp64",
}


def kernels(family, wanted):
    """A fixture: each kernel of this build of which wanted(name), forced. `family`, where it is
    built, has one of them."""

    its_names = [name for name in _FAMILIES if wanted(name)]
    assert its_names or family not in _FAMILIES.values(), f"no kernel of {family} is wanted"

    @pytest.fixture(params=its_names or ["none in this build"])
    def kernel(request, monkeypatch):
        if _FAMILIES.get(request.param) not in families.runnable():
            pytest.skip("its family is not on this machine")
        monkeypatch.setenv("TCGEMM_FORCE_KERNEL", request.param)
        return request.param

    return kernel


def mode_of(kernel):
    name = kernel.removeprefix(_FAMILIES[kernel] + "_")
    return MODES[next(mode for begin, mode in MODES_OF.items() if name.startswith(f"{begin}_"))]


def operands(mode, m, n, k, batch=()):
    rng = np.random.default_rng(m * n + k)
    a, b = data.integers(rng, mode, (*batch, m, k), (*batch, k, n))
    return a, b, round_to(rng.integers(-8, 8, (*batch, m, n)), mode.default_output)


def check(kernel, a, b, c=None, **how):
    done = Lab(tcgemm, _FAMILIES[kernel]).check(mode_of(kernel), a, b, c, **how)
    assert done.kernel == kernel
    return done


def check_each_size(kernel, sizes, k):
    """So many rows and columns."""
    for m, n in itertools.product(sizes, repeat=2):
        a, b, c = operands(mode_of(kernel), m, n, k)
        for layouts in ({}, {"a": ODD_COL, "b": ODD_COL, "out": ODD}):
            check(kernel, a, b, c, beta=-1, expect="exact", layouts=layouts)


def check_each_k(kernel, each_k, *shapes):
    """Of `shapes` (m, n)."""
    for k in each_k:
        for layouts in ({}, {"a": COL, "b": COL}, {"a": ODD, "b": ODD}):
            for m, n in shapes:
                a, b, _ = operands(mode_of(kernel), m, n, k)
                check(kernel, a, b, alpha=2, expect="exact", layouts=layouts)


def check_no_k(kernel):
    """A sum of nothing: C alone."""
    a, b, c = operands(mode_of(kernel), 5, 6, 1)
    check(kernel, a[:, :0], b[:0], c, beta=2, expect="exact")


def check_batches(kernel, m, n, k, batch):
    """Matrices apart from each other, thin ones, and one A for all of the first dimension."""
    a, b, c = operands(mode_of(kernel), m, n, k, batch)
    check(kernel, a, b, c, beta=1, expect="exact", layouts={"a": Layout(batch_pad=3)})
    check(kernel, a, b[:, :1], expect="exact", layouts={"b": COL})
    check(kernel, a[:1], b, expect="exact")


def check_each_layout(kernel, m, n, k):
    """What has no unit stride is packed, everything else is read where it lies."""
    layouts = (Layout(), COL, ODD, ODD_COL, REVERSED, Layout("col", reverse_cols=True), STEP)
    for of_a, of_b in itertools.product(layouts, repeat=2):
        for of_d in (Layout(), COL, STEP):
            a, b, c = operands(mode_of(kernel), m, n, k)
            how = {"a": of_a, "b": of_b, "c": of_d, "out": of_d}
            check(kernel, a, b, c, alpha=-1, beta=2, expect="exact", layouts=how)


def check_what_lies_outside(kernel, m, n, k):
    """Matrices within others of NaN and infinity, which are not multiplied."""
    for order, filler in itertools.product(("row", "col"), (0xFF, 0x7F)):
        a, b, _ = operands(mode_of(kernel), m, n, k)
        layouts = dict.fromkeys(("a", "b"), Layout(order, pad=3, offset=1))
        check(kernel, a, b, expect="exact", layouts=layouts, filler=filler)


def check_special_values(kernel, m, n, k, nan, inf):
    """A NaN at A[nan] and an infinity at B[inf] reach their row and column alone."""
    a, b, _ = operands(mode_of(kernel), m, n, k)
    a, b = a.copy(), b.copy()
    a[nan], b[inf] = np.nan, np.inf
    check(kernel, a, b)
    check(kernel, a, b, layouts={"b": COL})


def check_rounding(kernel, *shapes, **how):
    """Positive data and signed keep the bound, of `shapes` of A and B."""
    rng = np.random.default_rng(1)
    for draw in (data.positive, data.signed):
        for of_a, of_b in shapes:
            check(kernel, *draw(rng, mode_of(kernel), of_a, of_b), **how)


def check_batch_invariant_is_not_taken(kernel, m, n, k):
    """Other tiles add up K in another order, and M would choose among them."""
    a, b, _ = operands(mode_of(kernel), m, n, k)
    with pytest.raises(tcgemm.NoKernelError, match="other bits"):
        check(kernel, a, b, determinism="batch_invariant")
