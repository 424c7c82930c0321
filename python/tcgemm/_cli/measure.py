"""Measures one case: times ours beside the peers, and checks what was timed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import tcgemm
from tcgemm._cli import accuracy, timing
from tcgemm._cli.backends import Backend, Work, compute_capability
from tcgemm._cli.cases import Case
from tcgemm._cli.modes import ITEM_BYTES, Mode, bounds
from tcgemm._cli.peers import Peer, peers
from tcgemm._cli.timing import Contender

_CHECK_ROWS = 64  # at least; accuracy.sample_rows takes more of a tall result

# What this build or this machine does not have: such a row is shown as not run, with the reason.
_NOT_HERE = (tcgemm.NoKernelError, tcgemm.UnsupportedError, MemoryError)

Row = dict[str, Any]


@contextmanager
def forced_family(family: str | None) -> Iterator[None]:
    """Plans made inside take this family or none."""
    before = os.environ.get("TCGEMM_FORCE_FAMILY")
    if family is not None:
        os.environ["TCGEMM_FORCE_FAMILY"] = family
    try:
        yield
    finally:
        if family is not None:
            os.environ.pop("TCGEMM_FORCE_FAMILY")
            if before is not None:
                os.environ["TCGEMM_FORCE_FAMILY"] = before


def measure(backend: Backend, case: Case, seconds: float, with_peers: bool = True) -> Row:
    """A row of the results, as the JSON file has it. `seconds`: about how long to time."""
    row: Row = {"case": case.to_json()}
    try:
        if not backend.has_dtype(case.dtype):
            raise tcgemm.UnsupportedError(backend.missing(case.dtype))
        if case.family not in (None, *(kernel["family"] for kernel in tcgemm.kernels())):
            raise tcgemm.NoKernelError(f"family {case.family} is not in this build")
        with forced_family(case.family):
            row.update(_measure_gemm(backend, case, seconds, with_peers))
    except _NOT_HERE as error:
        row["not_run"] = str(error)
    except RuntimeError as error:  # PyTorch's out of memory is one of these
        if "out of memory" not in str(error).lower():
            raise
        row["not_run"] = str(error).splitlines()[0]
    return row


class _Operands:
    """Sets of A, B and a result for each contender: one set, until there are to be more."""

    def __init__(self, backend: Backend, case: Case, result_dtypes: Sequence[str]) -> None:
        self._backend, self._case, self._dtypes = backend, case, result_dtypes
        self.a: list[Any] = []
        self.b: list[Any] = []
        self.results: list[list[Any]] = [[] for _ in result_dtypes]
        self._add()

    @property
    def count(self) -> int:
        return len(self.a)

    def fill(self) -> None:
        """More sets, until they exceed the cache."""
        case = self._case
        result_bytes = sum(case.m * case.n * ITEM_BYTES[dtype] for dtype in self._dtypes)
        wanted = timing.operand_sets(self._backend, case.bytes + result_bytes)
        while self.count < wanted:
            self._add()

    def _add(self) -> None:
        backend, case, seed = self._backend, self._case, 2 * self.count
        self.a.append(backend.matrix(case.m, case.k, case.dtype, case.layout[0], seed))
        self.b.append(backend.matrix(case.k, case.n, case.dtype, case.layout[1], seed + 1))
        for made, dtype in zip(self.results, self._dtypes, strict=True):
            made.append(backend.empty((case.m, case.n), dtype))
            backend.poison(made[-1])


def _measure_gemm(backend: Backend, case: Case, seconds: float, with_peers: bool) -> Row:
    rivals, refused = _willing(backend, case, peers(backend, case) if with_peers else [])
    operands = _Operands(
        backend, case, [case.mode.result_dtype, *(rival.result_dtype for rival in rivals)]
    )
    plan, ours = _ours(case, operands)
    contenders = [ours]
    for rival, results in zip(rivals, operands.results[1:], strict=True):
        works = _peer_works(rival, operands, results)
        contenders.append(Contender(rival.name, works, works))

    def check(place: int, mode: Mode) -> accuracy.Accuracy:
        # The first set of operands: every round of kernels and the first call went through it.
        result = operands.results[place][0]
        limits = bounds(mode, case.k, compute_capability(backend))
        return accuracy.measure(
            backend, operands.a[0], operands.b[0], result, mode, limits, rows=_CHECK_ROWS
        )

    timing.time_kernels(backend, contenders, 0.7 * seconds)
    seen = check(0, case.mode)
    rival_checks = [check(place, rival.mode) for place, rival in enumerate(rivals, start=1)]
    for result in operands.results[0]:
        backend.poison(result)
    timing.time_calls(backend, contenders, 0.3 * seconds)
    seen_call = check(0, case.mode)

    over_bound = max(seen.over_bound, seen_call.over_bound)
    row: Row = {
        "kernel": plan.kernel,
        "family": plan.family,
        "precision": plan.precision,
        "accumulate": plan.accumulate,
        "split_k": plan.split_k,
        "workspace_bytes": plan.workspace_bytes,
        "operand_sets": operands.count,
        "ours": _with_rate(case, ours),
        "error": finite(max(seen.error, seen_call.error)),
        "error_over_bound": finite(over_bound),
        "elements_checked": seen.compared,
        "kept": over_bound <= 1,
        "peers": {},
        "peers_refused": refused,
    }
    for rival, contender, checked in zip(rivals, contenders[1:], rival_checks, strict=True):
        row["peers"][rival.name] = {
            "how": rival.how,
            **_with_rate(case, contender),
            "error": finite(checked.error),
            "error_over_bound": finite(checked.over_bound),
            "ratio": timing.ratio(contender.kernel_seconds, ours.kernel_seconds),
            "call_ratio": timing.ratio(contender.call_seconds, ours.call_seconds),
        }
    if rivals:  # the fair one is first
        row["peer"] = rivals[0].name
        row["ratio"] = row["peers"][rivals[0].name]["ratio"][1]
        row["lost"] = row["ratio"] < 1
    return row


def _ours(case: Case, operands: _Operands) -> tuple[Any, Contender]:
    """A plan, made before there is more than one set of operands: it may be refused."""
    arguments, results = case.mode.arguments, operands.results[0]
    plan = tcgemm.plan(operands.a[0], operands.b[0], out=results[0], **arguments)
    if case.family is not None and plan.family != case.family:
        raise tcgemm.NoKernelError(f"family {case.family} was forced, but {plan.family} was taken")

    def execute(a: Any, b: Any, d: Any) -> None:
        plan.execute(a, b, None, d)

    def call(a: Any, b: Any, d: Any) -> None:
        tcgemm.matmul(a, b, out=d, **arguments)

    operands.fill()
    sets = list(zip(operands.a, operands.b, results, strict=True))
    kernels: list[Work] = [partial(execute, *operand_set) for operand_set in sets]
    calls: list[Work] = [partial(call, *operand_set) for operand_set in sets]
    return plan, Contender("tcgemm", kernels, calls)


def _willing(
    backend: Backend, case: Case, rivals: Sequence[Peer]
) -> tuple[list[Peer], dict[str, str]]:
    """The peers that take the dtypes and layouts of a case, and why others do not."""
    willing, refused = [], {}
    for rival in rivals:
        m, n, k = (min(size, 64) + size % 8 for size in (case.m, case.n, case.k))
        a = backend.matrix(m, k, case.dtype, case.layout[0], 0)
        b = backend.matrix(k, n, case.dtype, case.layout[1], 1)
        try:
            rival.product(a, b, backend.empty((m, n), rival.result_dtype))
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            refused[rival.name] = str(error).splitlines()[0]
        else:
            willing.append(rival)
    return willing, refused


def _peer_works(rival: Peer, operands: _Operands, results: Sequence[Any]) -> list[Work]:
    return [
        partial(rival.product, *operand_set)
        for operand_set in zip(operands.a, operands.b, results, strict=True)
    ]


def _with_rate(case: Case, contender: Contender) -> Row:
    timed = contender.timing()
    return {**timed, "tflops": case.operations / timed["kernel_us"][1] * 1e-6}


def finite(value: float) -> float | None:
    """For JSON, which has no infinity: null."""
    return value if math.isfinite(value) else None
