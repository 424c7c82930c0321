"""Operands of a case: views of one pool of random numbers, in more sets than the cache holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcgemm._cli.backends import Backend
from tcgemm._cli.cases import Case
from tcgemm._cli.modes import ITEM_BYTES
from tcgemm._cli.timing import operand_sets

_ALIGNMENT = 512  # elements: no operand shares a line of the cache with the one before


@dataclass
class OperandSet:
    """D = A B + beta C: 2-D arrays, or 3-D ones where there is a batch and no broadcast."""

    a: Any
    b: Any
    c: Any  # None where it is not read; d itself where the case is in place
    d: Any


class Pool:
    """Random numbers of each dtype, made once: N(0, 1), whole numbers for int8.

    All cases and all who compute them take their operands from the start of the same numbers.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._numbers: dict[str, Any] = {}

    def numbers(self, dtype: str, count: int) -> Any:
        """The first `count` of them, 1-D."""
        held = self._numbers.get(dtype)
        if held is None or held.shape[0] < count:
            self._numbers.pop(dtype, None)
            del held  # before there is another: both may not fit
            self._numbers[dtype] = self.backend.random((count,), dtype, seed=len(dtype))
        return self._numbers[dtype][:count]


class Operands:
    """`count` sets for one contender: what is read is shared with others, results are its own.

    `scales`: those of all sets, as arguments of gemm.
    """

    def __init__(self, pool: Pool, case: Case, count: int) -> None:
        self.case, self.pool, self.backend = case, pool, pool.backend
        result = case.mode.result_dtype
        a_shape, b_shape, d_shape = shapes(case)
        self._read = [
            _View(case, case.dtype, a_shape, case.layout[0]),
            _View(case, case.dtype, b_shape, case.layout[1]),
        ]
        self._d = _View(case, result, d_shape, "n")
        if case.beta:
            self._read.append(self._d)
        totals: dict[str, int] = {}
        for view in self._read:
            totals[view.dtype] = totals.get(view.dtype, 0) + count * view.span
        numbers = {dtype: pool.numbers(dtype, total) for dtype, total in totals.items()}
        self._results = self.backend.empty((count * self._d.span,), result)
        self.scales = _scales(pool.backend, case)
        self._initial: list[Any] = []
        self.sets: list[OperandSet] = []
        places = dict.fromkeys(totals, 0)
        for index in range(count):
            arrays = []
            for view in self._read:
                arrays.append(view.of(numbers[view.dtype], places[view.dtype]))
                places[view.dtype] += view.span
            d = self._d.of(self._results, index * self._d.span)
            a, b, c = (*arrays, None)[:3]
            self._initial.append(c)
            self.sets.append(OperandSet(a, b, d if c is not None and case.in_place else c, d))
        self.reset()

    @property
    def accumulates(self) -> bool:
        """Whether a repeated product goes on from the last result."""
        return bool(self.case.beta) and self.case.in_place

    def initial_c(self, index: int) -> Any:
        """C of a set before anything was computed; None where it is not read."""
        return self._initial[index]

    def reset(self) -> None:
        """Results are NaN again, those that are C as well what they were."""
        self.backend.poison(self._results)
        if self.accumulates:
            for operand_set, c in zip(self.sets, self._initial, strict=True):
                operand_set.d[...] = c


def _scales(backend: Backend, case: Case) -> dict[str, Any]:
    """From 0.5 to 1.5, those of blocks of 128 k in the order that cuBLAS asks for."""
    if not case.scales:
        return {}
    numbers = np.random.default_rng(case.m + case.n)
    blocks_k, blocks_n = -(-case.k // 128), -(-case.n // 128)

    def uniform(*shape: int) -> Any:
        return backend.array(numbers.uniform(0.5, 1.5, shape), "float32")

    if case.scales == "matrices":
        return {"scale_a": uniform(1), "scale_b": uniform(1)}
    if case.scales == "rows":
        return {"scale_a": uniform(case.m, 1), "scale_b": uniform(1, case.n)}
    of_b = uniform(blocks_k, case.n) if case.scales == "columns" else uniform(blocks_n, blocks_k).T
    return {"scale_a": uniform(blocks_k, case.m).T, "scale_b": of_b}


@dataclass(frozen=True)
class _View:
    """A matrix, or a batch of them, within a 1-D array."""

    case: Case
    dtype: str
    shape: tuple[int, ...]
    layout: str

    @property
    def _stored(self) -> tuple[int, ...]:
        """The shape in memory, gaps between rows (columns) included."""
        *batch, rows, columns = self.shape
        if self.layout == "t":
            rows, columns = columns, rows
        return (*batch, rows, columns + self.case.padding)

    @property
    def span(self) -> int:
        """Elements from its place to the next one's."""
        return -(-(self.case.offset + math.prod(self._stored)) // _ALIGNMENT) * _ALIGNMENT

    def of(self, memory: Any, place: int) -> Any:
        start, stored = place + self.case.offset, self._stored
        padded = memory[start : start + math.prod(stored)].reshape(stored)
        view = padded[..., : stored[-1] - self.case.padding] if self.case.padding else padded
        return view.swapaxes(-1, -2) if self.layout == "t" else view


def shapes(case: Case) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Of A, B and D."""

    def batched(name: str, rows: int, columns: int) -> tuple[int, ...]:
        alone = case.batch == 1 or case.broadcast == name
        return (rows, columns) if alone else (case.batch, rows, columns)

    return (
        batched("a", case.m, case.k),
        batched("b", case.k, case.n),
        batched("d", case.m, case.n),
    )


def count_sets(backend: Backend, cases: Sequence[Case]) -> int:
    """How many sets every contender needs to find none in the cache."""
    results = (case.batch * case.m * case.n * ITEM_BYTES[case.mode.result_dtype] for case in cases)
    held = max(case.bytes for case in cases) + sum(results)  # what is read is shared
    return operand_sets(backend, min(case.bytes for case in cases), held)
