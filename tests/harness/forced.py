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
_MODES = {
    "f32": "fp32",
    "tf32": "tf32",
    "f16": "fp16",
    "bf16": "bf16",
    "f64": "fp64",
    "i8": "int8",
}


def names(wanted):
    """Of this build, those of which wanted(name); never none, for a fixture needs parameters."""
    return [name for name in _FAMILIES if wanted(name)] or ["none in this build"]


def force(kernel, monkeypatch):
    if _FAMILIES.get(kernel) not in families.runnable():
        pytest.skip("its family is not on this machine")
    monkeypatch.setenv("TCGEMM_FORCE_KERNEL", kernel)
    return kernel


def mode_of(kernel):
    return MODES[_MODES[kernel.removeprefix(_FAMILIES[kernel] + "_").split("_")[0]]]


def operands(mode, m, n, k, batch=()):
    rng = np.random.default_rng(m * n + k)
    a, b = data.integers(rng, mode, (*batch, m, k), (*batch, k, n))
    return a, b, round_to(rng.integers(-8, 8, (*batch, m, n)), mode.default_output)


def check(kernel, a, b, c=None, **how):
    done = Lab(tcgemm, _FAMILIES[kernel]).check(mode_of(kernel), a, b, c, **how)
    assert done.kernel == kernel
    return done


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


def check_batch_invariant_is_not_taken(kernel, m, n, k):
    """Other tiles add up K in another order, and M would choose among them."""
    a, b, _ = operands(mode_of(kernel), m, n, k)
    with pytest.raises(tcgemm.NoKernelError, match="other bits"):
        check(kernel, a, b, determinism="batch_invariant")
