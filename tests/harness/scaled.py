"""Products with scales, FP8 results or int8 to floats: run between guards, and judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from .check import Lab
from .formats import FORMATS, Array, round_to, wide
from .layout import ROW, Layout
from .modes import FP8_HARD, INT8_HARD, U32

BLOCK = 128


def spread(scales: Array | None, outer: int, k: int) -> Array | float:
    """Scales of A, outer x K, one for each element."""
    if scales is None:
        return 1.0
    s = wide(scales)
    if s.ndim < 2:
        s = s.reshape(-1, 1)
    for axis, extent in ((-2, outer), (-1, k)):
        blocks = -(-extent // BLOCK)
        if s.shape[axis] == blocks and blocks not in (1, extent):
            s = np.repeat(s, BLOCK, axis)
            s = s[..., :extent, :] if axis == -2 else s[..., :extent]
    return np.broadcast_to(s, (*s.shape[:-2], outer, k))


def saturated(values: Array, dtype: str, overflow: str) -> Array:
    """Rounded to `dtype`; an FP8 one overflows as `overflow` says."""
    if overflow == "saturate" and dtype.startswith("float8"):
        largest = FORMATS[dtype].largest
        values = np.clip(values, -largest, largest)
    return round_to(values, dtype)


def run(
    lab: Lab,
    a: Array,
    b: Array,
    *,
    out_dtype: str,
    scales: dict[str, Array] | None = None,
    c: Array | None = None,
    layouts: dict[str, Layout] | None = None,
    **how: Any,
) -> tuple[str, Array]:
    """The kernel and D. `a` is M x K, `b` K x N; scales as gemm takes them."""
    layouts, scales = layouts or {}, scales or {}
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    given = {"a": a, "b": b, **({} if c is None else {"c": c})}
    placed = {name: lab.place(x, layouts.get(name, ROW)) for name, x in given.items()}
    for name, values in scales.items():
        values = np.asarray(values, np.float32)
        matrix = np.atleast_2d(values)
        guarded = lab.place(matrix, layouts.get(name, ROW))
        placed[name] = guarded
    out = lab.place_output(shape, out_dtype, layouts.get("out", ROW))
    arrays = {name: guarded.array for name, guarded in placed.items()}
    plan = lab.library.plan(
        arrays.pop("a"), arrays.pop("b"), arrays.pop("c", None), out=out.array,
        out_dtype=out_dtype, **arrays, **how,
    )  # fmt: skip
    assert plan.family == lab.family, plan.kernel
    plan.execute()
    for name, guarded in placed.items():
        guarded.read(name)  # its guards
    got = out.read("out")
    assert out.unwritten(got) == 0, plan.kernel
    return plan.kernel, got


def check(
    lab: Lab,
    a: Array,
    b: Array,
    *,
    out_dtype: str,
    scales: dict[str, Array] | None = None,
    c: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    limit: float | None = None,
    overflow: str = "saturate",
    **how: Any,
) -> Array:
    """Runs, and holds each element against FP64. Returns D."""
    scales = scales or {}
    kernel, got = run(
        lab, a, b, out_dtype=out_dtype, scales=scales, c=c, alpha=alpha, beta=beta,
        **({"overflow": overflow} if overflow != "saturate" else {}), **how,
    )  # fmt: skip
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    scale_b = scales.get("scale_b")
    if scale_b is not None and np.ndim(scale_b) >= 2:
        scale_b = np.swapaxes(scale_b, -1, -2)
    scaled_a = wide(a) * spread(scales.get("scale_a"), m, k)
    scaled_b = wide(b) * np.swapaxes(np.asarray(spread(scale_b, n, k)) * np.ones((n, k)), -1, -2)
    factor = float(np.ravel(wide(scales["scale_d"]))[0]) if "scale_d" in scales else 1.0
    start = 0.0 if beta == 0 else np.float32(beta) * wide(c)
    want = factor * (np.float32(alpha) * (scaled_a @ scaled_b) + start)
    if limit is None:
        limit = INT8_HARD if a.dtype == np.int8 else FP8_HARD
    form = FORMATS[out_dtype]
    off = abs(factor) * (
        abs(alpha) * limit * (abs(scaled_a) @ abs(scaled_b)) + 2 * U32 * abs(start)
    )
    off = off + 4 * U32 * abs(want)
    low = wide(saturated(want - off, out_dtype, overflow))
    high = wide(saturated(want + off, out_dtype, overflow))
    value = wide(got)
    inside = ((value >= low) & (value <= high)) | np.isnan(value) & (np.isnan(low) | np.isnan(high))
    bad = np.argwhere(~inside)
    assert not bad.size, (
        f"{kernel}: {len(bad)} of {got.size} elements, first {tuple(bad[0])}: "
        f"{value[tuple(bad[0])]} not in [{low[tuple(bad[0])]}, {high[tuple(bad[0])]}]; {form.name}"
    )
    return got
