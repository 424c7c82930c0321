"""Measures one case: times ours beside the peers, and checks what was timed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import tcgemm
from tcgemm._cli import accuracy, timing
from tcgemm._cli.backends import Work, compute_capability
from tcgemm._cli.cases import Case, refuse_too_large
from tcgemm._cli.modes import bounds
from tcgemm._cli.operands import Operands, Pool, count_sets
from tcgemm._cli.peers import REFUSALS, Peer, library, peers
from tcgemm._cli.timing import Contender

_CHECK_ROWS = 64  # at least; accuracy.sample_rows takes more of a tall result

# What this build or this machine does not have: such a row is shown as not run, with the reason.
# One of several rows may ask for what there is not: the others are measured.
_NOT_HERE = (
    tcgemm.NoKernelError,
    tcgemm.UnsupportedError,
    tcgemm.InvalidArgument,
    tcgemm.DTypeError,
    MemoryError,
)

Row = dict[str, Any]


def forced_family(family: str | None) -> AbstractContextManager[None]:
    """Plans made inside take this family or none."""
    return nullcontext() if family is None else _forced("TCGEMM_FORCE_FAMILY", family)


def forced_kernel(kernel: str) -> AbstractContextManager[None]:
    """Plans made inside take this kernel or none."""
    return _forced("TCGEMM_FORCE_KERNEL", kernel)


@contextmanager
def _forced(variable: str, name: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = name
    try:
        yield
    finally:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


def measure(pool: Pool, case: Case, seconds: float, with_peers: bool = True) -> Row:
    """A row of the results, as the JSON file has it. `seconds`: about how long to time."""
    row: Row = {"case": case.to_json()}
    backend = pool.backend
    try:
        if not backend.has_dtype(case.dtype):
            raise tcgemm.UnsupportedError(backend.missing(case.dtype))
        if case.family not in (None, *(kernel["family"] for kernel in tcgemm.kernels())):
            raise tcgemm.NoKernelError(f"family {case.family} is not in this build")
        refuse_too_large(case.m, case.n, case.k, case.batch)
        with forced_family(case.family):
            row.update(_measure_gemm(pool, case, seconds, with_peers))
    except _NOT_HERE as error:
        row["not_run"] = str(error)
    except RuntimeError as error:  # PyTorch's out of memory is one of these, on CPUs as well
        said = str(error).lower()
        if "out of memory" not in said and "can't allocate memory" not in said:
            raise
        row["not_run"] = str(error).splitlines()[0]
    return row


@dataclass
class _Side:
    """One of those who are measured: what it computes, with whose arrays."""

    peer: Peer
    operands: Operands
    contender: Contender
    facts: Row
    error: float = 0.0
    over_bound: float = 0.0
    compared: int = 0

    @property
    def case(self) -> Case:
        return self.peer.case


def _measure_gemm(pool: Pool, case: Case, seconds: float, with_peers: bool) -> Row:
    backend = pool.backend
    rivals = peers(backend, case) if with_peers else []
    sets = count_sets(backend, [case, *(rival.case for rival in rivals)])
    ours = _side(pool, library(case), sets)
    sides, refused = [ours], {}
    for rival in rivals:
        try:
            sides.append(_side(pool, rival, sets))
        except REFUSALS as error:
            refused[rival.name] = str(error).splitlines()[0]
    contenders = [side.contender for side in sides]
    references: dict[str, accuracy.Reference] = {}

    for side in sides:
        side.operands.reset()
    timing.time_kernels(backend, contenders, 0.7 * seconds)
    for side in sides:
        _check(side, references, side.contender.kernels)
        side.operands.reset()
    timing.time_calls(backend, contenders, 0.3 * seconds)
    for side in sides:
        _check(side, references, side.contender.calls)

    row: Row = {
        **ours.facts,
        "operand_sets": sets,
        "ours": _with_rate(ours),
        "error": finite(ours.error),
        "error_over_bound": finite(ours.over_bound),
        "elements_checked": ours.compared,
        "kept": ours.over_bound <= 1,
        "peers": {side.peer.name: _compared(ours, side) for side in sides[1:]},
        "peers_refused": refused,
    }
    products = [side.peer for side in sides[1:] if side.peer.checked]
    judges = [peer.name for peer in products if peer.fair] or [peer.name for peer in products[:1]]
    if judges:  # the fastest of those who do equal work
        row["peer"] = min(judges, key=lambda name: row["peers"][name]["ratio"][1])
        row["ratio"] = row["peers"][row["peer"]]["ratio"][1]
        row["lost"] = row["ratio"] < 1
    return row


def _side(pool: Pool, peer: Peer, sets: int) -> _Side:
    """Ready to be timed; raises what it refuses its operands with."""
    operands = Operands(pool, peer.case, sets)
    prepared = peer.prepare(operands)
    prepared.kernels[0]()
    pool.backend.synchronize()
    contender = Contender(peer.name, prepared.kernels, prepared.calls)
    return _Side(peer, operands, contender, prepared.facts)


def _check(side: _Side, references: dict[str, accuracy.Reference], works: Sequence[Work]) -> None:
    """Compares the results of the first set of operands: every kind of timing went through it."""
    if not side.peer.checked or not works:
        return
    backend, case = side.operands.backend, side.case
    if side.operands.accumulates:  # over and over: what is checked is one product more
        side.operands.reset()
        works[0]()
    key = repr(replace(case, accumulate=None, determinism=None, against=None, group=""))
    first = side.operands.sets[0]
    if key not in references:
        c = side.operands.initial_c(0)
        references[key] = accuracy.Reference(
            backend,
            first.a,
            first.b,
            case.mode,
            c=c,
            beta=case.beta,
            scales=side.operands.scales,
            rows=_CHECK_ROWS,
        )
    limits = bounds(
        case.mode,
        case.k,
        compute_capability(backend),
        family=side.facts.get("family", ""),
        adds=bool(case.beta),
    )
    seen = references[key].judge(first.d, case.mode, limits)
    side.error = max(side.error, seen.error)
    side.over_bound = max(side.over_bound, seen.over_bound)
    side.compared = seen.compared


def _with_rate(side: _Side) -> Row:
    timed = side.contender.timing()
    per_second = 1e6 / timed["kernel_us"][1]
    return {
        **timed,
        "tflops": side.case.operations * per_second * 1e-12,
        "gbps": side.case.bytes * per_second * 1e-9,
    }


def _compared(ours: _Side, rival: _Side) -> Row:
    """Ratios of speed: of the times, where both do the same number of operations."""
    work = ours.case.operations / rival.case.operations
    mine, theirs = ours.contender, rival.contender
    row: Row = {
        "how": rival.peer.how,
        **rival.facts,
        **_with_rate(rival),
        "ratio": timing.ratio(theirs.kernel_seconds, mine.kernel_seconds, work),
    }
    if theirs.call_seconds:
        row["call_ratio"] = timing.ratio(theirs.call_seconds, mine.call_seconds, work)
    if rival.peer.checked:
        row["error"] = finite(rival.error)
        row["error_over_bound"] = finite(rival.over_bound)
    return row


def finite(value: float) -> float | None:
    """For JSON, which has no infinity: null."""
    return value if math.isfinite(value) else None
