"""The oracle: the exact product of the given inputs, and the error bound of each element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .formats import FORMATS, Array, bits_of, format_of, round_to, wide
from .modes import U32, Mode

# 64 bits of significand on x86, 11 more than the FP64 results that are judged by it.
_LONG = np.longdouble


@dataclass(frozen=True)
class Exact:
    """The exact result and what its error is measured against, float64 or long double."""

    c: Array
    product_abs: Array  # |A||B|
    c0: Array | float  # beta C0
    beta: float = 0.0  # as it is held; 0 where C0 is not read


@dataclass(frozen=True)
class Verdict:
    """Largest error divided by its limit, over all elements; above 1 is a fault."""

    of_hard: float
    of_gate: float | None  # None where the mode sets no gate or the data is not U(0, 1)
    elements: int


def _rounded(values: Array, compute: str) -> Array:
    return wide(values if format_of(values).name == compute else round_to(wide(values), compute))


def held(scalar: float, mode: Mode) -> float:
    """alpha or beta as the library holds it: at accumulator precision, at least FP32."""
    name = "float64" if mode.accumulator in ("float64", "int32") else "float32"
    return float(round_to(scalar, name))


def exact(mode: Mode, a: Array, b: Array, c0: Array | None, alpha: float, beta: float) -> Exact:
    """alpha A B + beta C0 of A and B rounded to the compute dtype."""
    alpha, beta = held(alpha, mode), held(beta, mode)
    a_wide, b_wide = _rounded(a, mode.compute), _rounded(b, mode.compute)
    if mode.compute == "float64":
        a_wide, b_wide = a_wide.astype(_LONG), b_wide.astype(_LONG)
    start: Array | float = 0.0
    if c0 is None:
        beta = 0.0
    with np.errstate(all="ignore"):
        if c0 is not None and beta != 0.0:  # beta = 0: C0 is not read
            start = beta * wide(c0).astype(a_wide.dtype)
        if alpha == 0.0 or a.shape[-1] == 0:  # A and B are not read
            shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
            product = product_abs = np.zeros(shape, a_wide.dtype)
        else:
            product = alpha * (a_wide @ b_wide)
            product_abs = np.abs(a_wide) @ np.abs(b_wide)
        return Exact(product + start, product_abs, start, beta)


def _limit(want: Exact, mode: Mode, c: float, alpha: float, k: int, out: str) -> Array:
    accumulator, target = FORMATS[mode.accumulator], FORMATS[out]
    # Roundings in the subnormal range have an absolute error, half the least number each: beta
    # multiplies that of C0, which is rounded to the accumulator's format.
    roundings = abs(held(alpha, mode)) * (k + 1) + abs(want.beta) + 2
    underflow = 0.5 * roundings * accumulator.smallest
    if alpha != 1 or np.any(want.c0 != 0):  # alpha, its product, the addition of C
        c += 3 * min(accumulator.unit_roundoff, U32)
    return (
        abs(held(alpha, mode)) * c * want.product_abs
        + 2 * accumulator.unit_roundoff * np.abs(want.c0)
        + target.unit_roundoff * np.abs(want.c)
        + underflow
        + 0.5 * target.smallest
    )


def judge(
    mode: Mode,
    got: Array,
    want: Exact,
    *,
    alpha: float,
    k: int,
    gate: bool,
) -> Verdict:
    """Compares a result with the contract. Infinities and NaNs must stand where C has them; a
    finite value may overflow where it is within its error of the output's range, and where a
    partial sum may leave the range of an FP16 accumulator: no partial sum is larger than |A||B|."""
    out = format_of(got)
    value = wide(got).astype(want.c.dtype)
    if mode.hard is None:
        return judge_exact(mode, got, want)
    with np.errstate(all="ignore"):
        finite = np.isfinite(want.c)
        special_ok = np.where(np.isnan(want.c), np.isnan(value), value == want.c)
        ratios = []
        for coefficient in (mode.hard(k), mode.gate(k) if gate and mode.gate else None):
            if coefficient is None:
                ratios.append(None)
                continue
            limit = _limit(want, mode, coefficient, alpha, k, out.name)
            # Overflow rounds to Inf from half a step beyond the largest finite number on.
            threshold = out.largest * (1 + out.unit_roundoff)
            reaches = (np.abs(want.c) + limit >= threshold) & (np.sign(value) == np.sign(want.c))
            overflow_ok = np.isinf(value) & reaches
            if mode.accumulator == "float16":
                accumulator = FORMATS["float16"]
                sums = want.product_abs * (1 + coefficient)
                overflow_ok |= ~np.isfinite(value) & (sums > accumulator.largest)
            ratio = np.abs(value - want.c) / limit
            ratio = np.where(np.isnan(ratio), np.inf, ratio)  # 0/0 can't be: limit > 0
            ratio = np.where(finite, np.where(overflow_ok, 0.0, ratio), ~special_ok * np.inf)
            ratio = np.where(~finite & special_ok, 0.0, ratio)
            ratios.append(float(ratio.max(initial=0.0)))
    return Verdict(ratios[0] or 0.0, ratios[1], got.size)


def judge_exact(mode: Mode, got: Array, want: Exact) -> Verdict:
    """Bit-equal to the exact result rounded once, but for the sign of zero."""
    expected = round_to(want.c.astype(np.float64), format_of(got).name)
    same = (bits_of(got) == bits_of(expected)) | ((wide(got) == 0) & (wide(expected) == 0))
    return Verdict(0.0 if bool(same.all()) else np.inf, None, got.size)


def worst_places(got: Array, want: Exact, count: int = 3) -> str:
    """For a message: the elements that are furthest off."""
    with np.errstate(all="ignore"):
        error = np.abs(wide(got) - want.c.astype(np.float64))
        error = np.where(np.isnan(error), np.inf, error)
        both_nan = np.isnan(wide(got)) & np.isnan(want.c.astype(np.float64))
        error = np.where(both_nan, 0.0, error)
    order = np.argsort(error, axis=None)[::-1][:count]
    lines = []
    for flat in order:
        index = tuple(int(i) for i in np.unravel_index(flat, got.shape))
        lines.append(f"{index}: got {wide(got)[index]!r}, exact {float(want.c[index])!r}")
    return "; ".join(lines)
