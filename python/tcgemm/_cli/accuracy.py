"""The oracle: a product against FP64 (exact arithmetic for FP64 itself), componentwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcgemm._cli.backends import Backend
from tcgemm._cli.modes import (
    ACCUMULATOR_DTYPE,
    HALF_SUBNORMAL,
    LARGEST_FP8,
    LARGEST_FP16,
    UNIT_ROUNDOFF,
    Bounds,
    Mode,
)

_CHUNK_ELEMENTS = 1 << 25  # of B in FP64 at a time: 256 MiB
_PRODUCTS = 16  # of a batch, where rows are sampled
_EXACT_SIDE = 16  # rows and columns whose results are compared in exact arithmetic for FP64


@dataclass(frozen=True)
class Accuracy:
    """What was seen in the results that were compared."""

    error: float  # max |D - R| / (|A||B|), for R = A B + beta C
    over_bound: float  # max |D - R| over what docs/numerics.md promises; more than 1: broken
    over_gate: float | None
    relative: float  # Frobenius norm of D - A B over that of A B, on the operands as given
    compared: int  # elements

    @property
    def kept(self) -> bool:
        return self.over_bound <= 1.0


def sample_rows(m: int, wanted: int, seed: int = 0) -> list[int]:
    """About `wanted` rows: one of each strip of at most 64 rows, so that no tile is missed."""
    height = max(1, min(64, m // wanted))
    rng = np.random.default_rng(seed)
    rows = {min(m - 1, start + int(rng.integers(height))) for start in range(0, m, height)}
    return sorted(rows | {m - 1})


def measure(
    backend: Backend,
    a: Any,
    b: Any,
    d: Any,
    mode: Mode,
    limits: Bounds,
    *,
    rows: int | None = None,
    exact: bool = False,
) -> Accuracy:
    """Compares D = A B with the exact product on `rows` sampled rows (None: on all).

    `exact`: the data were chosen so that every result must be equal to the exact one.
    """
    return Reference(backend, a, b, mode, rows=rows).judge(d, mode, limits, exact=exact)


class Reference:
    """A B + beta C in FP64, computed once for all whose results are held against it.

    `rows`: about how many of the result's rows are computed (None: all); with a batch, of all
    products together, the last one among them.
    """

    def __init__(
        self,
        backend: Backend,
        a: Any,
        b: Any,
        mode: Mode,
        *,
        c: Any = None,
        beta: float = 0.0,
        scales: dict[str, Any] | None = None,
        rows: int | None = None,
    ) -> None:
        self._backend, self._operands = backend, (a, b, beta)
        self._products: list[int] | None = None
        self._rows: list[int] | None = None
        if a.ndim == 3 or b.ndim == 3:
            batch = int((a if a.ndim == 3 else b).shape[0])
            self._products = _spread(batch, batch if rows is None else min(rows, _PRODUCTS))
            rows = None if rows is None else max(1, rows // len(self._products))
        m, k, columns = int(a.shape[-2]), int(b.shape[-2]), int(b.shape[-1])
        if rows is not None and rows < m:
            self._rows = sample_rows(m, rows)
        a = self._sampled(a)
        if self._products is not None and b.ndim == 3:
            b = b[self._products]
        computed = backend.rounded(a, mode.compute_dtype)
        scale_b: Any = None
        if scales:  # float8 operands, which are not rounded
            scale_a = _each(backend, scales["scale_a"], m, k)
            scale_b = _each(backend, scales["scale_b"], k, columns)
            computed = computed * self._sampled(scale_a)
        self._converts = mode.dtype != mode.compute_dtype
        given = backend.float64(a) if self._converts else computed
        self._addend = beta * backend.float64(self._sampled(c)) if beta else None
        # (columns, A B + beta C, |A||B|, A B + beta C of the operands as given), by chunks
        self._chunks: list[tuple[slice, Any, Any, Any]] = []
        step = max(1, min(columns, _CHUNK_ELEMENTS // max(1, k)))
        for start in range(0, columns, step):
            part = slice(start, min(columns, start + step))
            b_part = backend.rounded(b[..., part], mode.compute_dtype)
            if scale_b is not None:
                b_part = b_part * scale_b[..., part]
            product = computed @ b_part
            unrounded = given @ backend.float64(b[..., part]) if self._converts else product
            if self._addend is not None:
                product = product + self._addend[..., part]
                unrounded = unrounded + self._addend[..., part]
            self._chunks.append((part, product, abs(computed) @ abs(b_part), unrounded))

    def judge(self, d: Any, mode: Mode, limits: Bounds, *, exact: bool = False) -> Accuracy:
        """Compares a result. `mode`: what it promises, on operands rounded as the reference's."""
        if mode.compute_dtype != "float64":
            return self._against_float64(d, mode, limits, exact)
        # FP64 arithmetic is no oracle for itself: it may be as wrong as D. So a wide look with both
        # errors allowed for, then exact arithmetic on a few elements.
        coarse = self._against_float64(d, mode, Bounds(2 * limits.hard, None), exact)
        a, b, beta = self._operands
        if beta or d.ndim == 3:
            return coarse
        fine = _against_exact(self._backend, a, b, d, mode, limits, exact)
        return replace(
            fine,
            over_bound=max(fine.over_bound, coarse.over_bound),
            compared=coarse.compared,
        )

    def _sampled(self, x: Any) -> Any:
        """The picked rows of the picked products; an operand without a batch has its rows alone."""
        if self._products is not None and x.ndim == 3:
            x = self._backend.taken(x, self._products)
        return x if self._rows is None else self._backend.taken(x, (..., self._rows, slice(None)))

    def _against_float64(self, d: Any, mode: Mode, limits: Bounds, exact: bool) -> Accuracy:
        k = int(self._operands[1].shape[-2])
        tally = _Tally(mode, limits, exact, k, self._operands[2])
        sampled = self._sampled(d)
        for part, reference, absolute, given in self._chunks:
            if mode.result_dtype in LARGEST_FP8:  # beyond it they saturate
                largest = LARGEST_FP8[mode.result_dtype]
                reference = reference.clip(-largest, largest)
            result = self._backend.float64(sampled[..., part])
            difference = abs(result - reference)
            if mode.is_exact:  # INT32 wraps: equality modulo 2^32 is promised
                difference = difference % 2.0**32
            unrounded = abs(result - given) if self._converts else difference
            for outside in _out_of_range(mode, result, reference, absolute):
                difference[outside] = unrounded[outside] = 0
            addend = None if self._addend is None else abs(self._addend[..., part])
            tally.add(difference, reference, absolute, addend)
            tally.add_relative(unrounded, given)
        return tally.result()


def _out_of_range(mode: Mode, result: Any, reference: Any, absolute: Any) -> Iterator[Any]:
    """Elements beyond FP16: results that are Inf as they must be, and sums that promise nothing."""
    if mode.result_dtype == "float16":
        yield (abs(reference) > LARGEST_FP16) & (result * reference == math.inf)
    if mode.accumulate_name == "fp16":
        yield absolute > LARGEST_FP16


def _each(backend: Backend, scales: Any, rows: int, columns: int) -> Any:
    """Scales for each of so many rows and columns, in FP64: of all of them, of each or of 128."""
    given = backend.float64(scales)
    given = given.reshape(given.shape if given.ndim == 2 else (1, 1))
    of_rows, of_columns = (
        [0 if count == 1 else place // (1 if extent == count else 128) for place in range(extent)]
        for extent, count in zip((rows, columns), given.shape, strict=True)
    )
    each = backend.taken(given, of_rows)
    return backend.taken(each, (slice(None), of_columns))


def _spread(count: int, wanted: int) -> list[int]:
    """`wanted` places below `count`, evenly, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, wanted))})


class _Tally:
    """Maxima over the parts of a result, held against the bound of docs/numerics.md; takes FP64
    arrays of any framework."""

    def __init__(self, mode: Mode, limits: Bounds, exact: bool, k: int, beta: float = 0.0) -> None:
        self._exact = exact or mode.is_exact
        self._limits = limits
        self._unit = UNIT_ROUNDOFF[mode.result_dtype]
        accumulator = ACCUMULATOR_DTYPE[mode.accumulate_name]
        self._accumulator = UNIT_ROUNDOFF[accumulator]
        roundings = k + 3 + abs(beta)
        self._tiny = HALF_SUBNORMAL[mode.result_dtype] + roundings * HALF_SUBNORMAL[accumulator]
        self._error = self._over_bound = self._over_gate = 0.0
        self._square_error = self._square = 0.0
        self._compared = 0

    def add(self, difference: Any, reference: Any, absolute: Any, addend: Any = None) -> None:
        """|D - R|, R = A B + beta C, |A||B| and |beta C| of some elements."""
        self._compared += math.prod(difference.shape)
        self._error = max(self._error, _largest(difference / (absolute + 1e-300)))
        if self._exact:
            wrong = _largest(difference) > 0
            self._over_bound = max(self._over_bound, math.inf if wrong else 0.0)
            self._over_gate = self._over_bound
            return
        rounding = self._unit * abs(reference) + self._tiny
        if addend is not None:
            rounding = rounding + 2 * self._accumulator * addend
        over = difference / (self._limits.hard * absolute + rounding)
        self._over_bound = max(self._over_bound, _largest(over))
        if self._limits.gate is not None:
            over = difference / (self._limits.gate * absolute + rounding)
            self._over_gate = max(self._over_gate, _largest(over))

    def add_relative(self, difference: Any, given: Any) -> None:
        """|D - A B| and A B on the operands as they were given, before the mode rounds them."""
        self._square_error += float((difference**2).sum())
        self._square += float((given**2).sum())

    def result(self) -> Accuracy:
        if self._square > 0:
            relative = math.sqrt(self._square_error / self._square)
        else:
            relative = 0.0 if self._square_error == 0 else math.inf
        return Accuracy(
            self._error,
            self._over_bound,
            None if self._limits.gate is None else self._over_gate,
            math.inf if math.isnan(relative) else relative,
            self._compared,
        )


def _largest(values: Any) -> float:
    """The maximum; NaN counts as infinity: a wrong result wherever the data are finite."""
    largest = float(values.max())
    return math.inf if math.isnan(largest) else largest


def _against_exact(
    backend: Backend, a: Any, b: Any, d: Any, mode: Mode, limits: Bounds, exact: bool
) -> Accuracy:
    rows = _grid(int(a.shape[0]), seed=1)
    columns = _grid(int(b.shape[1]), seed=2)
    a_rows = backend.to_numpy(backend.float64(a[rows]))
    b_columns = backend.to_numpy(backend.float64(b[:, columns]))
    results = backend.to_numpy(backend.float64(d[rows][:, columns]))
    reference, difference = np.empty(results.shape), np.empty(results.shape)
    for i, j in np.ndindex(*results.shape):
        terms = _exact_terms(a_rows[i], b_columns[:, j])
        reference[i, j] = math.fsum(terms)
        result = float(results[i, j])
        finite = math.isfinite(result)
        difference[i, j] = abs(math.fsum([*terms, -result])) if finite else math.inf
    tally = _Tally(mode, limits, exact, int(b.shape[0]))
    tally.add(difference, reference, np.abs(a_rows) @ np.abs(b_columns))
    tally.add_relative(difference, reference)
    return tally.result()


def _grid(extent: int, seed: int) -> list[int]:
    """At most _EXACT_SIDE indices below `extent`, spread over it, with the last."""
    rows = sample_rows(extent, _EXACT_SIDE, seed)
    places = np.linspace(0, len(rows) - 1, min(len(rows), _EXACT_SIDE)).round().astype(int)
    return sorted({rows[place] for place in places})


def _exact_terms(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Terms whose sum is exactly the dot product: each product and its rounding error (Dekker)."""
    product = x * y
    splitter = 134217729.0  # 2^27 + 1: halves a 53-bit significand
    x_high = splitter * x - (splitter * x - x)
    y_high = splitter * y - (splitter * y - y)
    x_low, y_low = x - x_high, y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return [*product.tolist(), *error.tolist()]
