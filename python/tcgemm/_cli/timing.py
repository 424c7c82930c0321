"""Times contenders side by side: interleaved rounds, rotated operands, medians with quartiles.

Two kinds of time. Kernel time: batches of launches between two events, captured into a CUDA graph
where a launch is short, so that the host is no part of it. Call time: what one call from Python
takes until its result is there, and (host time) until it returns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcgemm._cli.backends import Backend, Work

# Of launches between two events, at most: far above their resolution of 1 us, and below the time in
# which the power limit moves the clock, so that all contenders meet the same one.
_BATCH_SECONDS = 4e-3
_GRAPH_BELOW = 200e-6  # seconds a launch; longer ones hide the host by themselves
_GLANCE_SECONDS = 0.5e-3  # to look at one of many candidates
_LOADING_IS_LITTLE = 5e-3  # seconds of a launch
_FINALISTS, _LOOKS = 4, 3  # candidates that are looked at again, and how often
_MAX_ROUNDS = 50
_MAX_LAUNCHES = 2048  # in a batch


@dataclass
class Contender:
    """Somebody who computes the same products. One piece of work for each set of operands."""

    name: str
    kernels: Sequence[Work]  # as bare as it gets: a plan that exists already
    calls: Sequence[Work]  # as a user writes it; none where nobody does
    kernel_seconds: list[float] = field(default_factory=list)  # one for each round
    call_seconds: list[float] = field(default_factory=list)
    host_seconds: list[float] = field(default_factory=list)
    launches: int = 1  # in a round
    method: str = "clock"  # "graph", "events" (of the device) or "clock" (of the host)

    def timing(self) -> dict[str, Any]:
        """Microseconds, as [first quartile, median, third quartile]."""
        calls = {
            "call_us": quartiles(self.call_seconds, 1e6),
            "host_us": quartiles(self.host_seconds, 1e6),
        }
        return {
            "kernel_us": quartiles(self.kernel_seconds, 1e6),
            **(calls if self.calls else {}),
            "rounds": len(self.kernel_seconds),
            "launches_per_round": self.launches,
            "method": self.method,
        }


def quartiles(values: Sequence[float], scale: float = 1.0) -> list[float]:
    if len(values) < 2:
        return [value * scale for value in values] * 3
    return [value * scale for value in statistics.quantiles(values, n=4, method="inclusive")]


def ratio(peer: Sequence[float], ours: Sequence[float], work: float = 1.0) -> list[float]:
    """Quartiles of our speed over the peer's, round by round: clocks drift, neighbours share them.

    `work`: our operations over the peer's.
    """
    return quartiles([work * theirs / mine for theirs, mine in zip(peer, ours, strict=True)])


def operand_sets(backend: Backend, touched: int, held: int) -> int:
    """How many sets of operands exceed twice the last cache, so that none is found in it.

    `touched`: bytes of a set that one contender goes through; `held`: those of all contenders.
    """
    wanted = 2 * backend.cache_bytes() // max(1, touched) + 1
    room = int(0.6 * backend.free_bytes()) // max(1, held)
    return max(1, min(max(2, wanted), room, 512))


def fastest(backend: Backend, candidates: Sequence[Sequence[Work]]) -> int:
    """The place of the candidate that computes the same in the least time, by a short look."""
    seconds = finalists(backend, candidates)
    return min(seconds, key=seconds.__getitem__)


def finalists(
    backend: Backend,
    candidates: Sequence[Sequence[Work]],
    always: Sequence[int] = (),
    best: int = _FINALISTS,
    looks: int = _LOOKS,
) -> dict[int, float]:
    """Seconds of a launch, of the `best` candidates and those at the places `always`, by place.

    All are timed once, these again in turn: one look is enough for those that lose badly.
    """
    once = [_glance(backend, works) for works in candidates]
    places = sorted(range(len(candidates)), key=once.__getitem__)[:best]
    places += [place for place in always if place not in places]
    seconds: dict[int, list[float]] = {place: [] for place in places}
    for _ in range(looks):
        for place in places:
            seconds[place].append(_glance(backend, candidates[place]))
    return {place: statistics.median(values) for place, values in seconds.items()}


def _glance(backend: Backend, works: Sequence[Work]) -> float:
    """Seconds of one launch, without the host where it is short."""
    seconds = backend.elapsed(works[0])  # the first launch loads code
    if seconds < _LOADING_IS_LITTLE:
        seconds = backend.elapsed(works[-1])
    if seconds > _GRAPH_BELOW:
        return seconds
    turn = _Turn(works, max(4, min(64, round(_GLANCE_SECONDS / max(seconds, 1e-6)))))
    work = backend.graph(turn) or turn
    return min(backend.elapsed(work) for _ in range(2)) / turn.launches


def time_kernels(backend: Backend, contenders: Sequence[Contender], seconds: float) -> None:
    """Fills in kernel_seconds of all contenders, in about `seconds`."""
    # Short enough for five rounds in the time asked for.
    batch_seconds = min(_BATCH_SECONDS, max(1e-3, seconds / (5 * len(contenders))))
    batches = _batches(backend, contenders, batch_seconds)

    def one(index: int, _: int) -> None:
        contender = contenders[index]
        elapsed = backend.elapsed(batches[index])
        contender.kernel_seconds.append(elapsed / contender.launches)

    _rounds(backend, len(contenders), one, seconds, at_least=5)


def time_calls(backend: Backend, contenders: Sequence[Contender], seconds: float) -> None:
    """Fills in call_seconds and host_seconds of those who have calls."""
    contenders = [contender for contender in contenders if contender.calls]

    def one(index: int, number: int) -> None:
        contender = contenders[index]
        work = contender.calls[number % len(contender.calls)]
        if not backend.on_gpu:  # threads and caches have been idle while the other's came to rest
            work()
        backend.synchronize()
        start = time.perf_counter()
        work()
        returned = time.perf_counter()
        backend.synchronize()
        contender.call_seconds.append(time.perf_counter() - start)
        contender.host_seconds.append(returned - start)

    for contender in contenders:  # plans are made and kept, code is loaded
        contender.calls[0]()
    _rounds(backend, len(contenders), one, seconds, at_least=3)


def _rounds(
    backend: Backend, count: int, one: Callable[[int, int], None], seconds: float, at_least: int
) -> None:
    """Who goes first changes from round to round: the second one finds the chip warmer."""
    deadline = time.perf_counter() + seconds
    for number in range(_MAX_ROUNDS):
        order = range(count) if number % 2 == 0 else range(count - 1, -1, -1)
        for index in order:
            if count > 1:
                backend.rest()
            one(index, number)
        if number + 1 >= at_least and time.perf_counter() > deadline:
            return


def _batches(backend: Backend, contenders: Sequence[Contender], batch_seconds: float) -> list[Work]:
    """Warms up and makes the piece of work that one round times, for each contender.

    All short launches go into graphs, or none does: a contender with the host in its times would
    lose to one without.
    """
    turns, short = [], []
    for contender in contenders:
        seconds = _estimate(backend, contender.kernels)
        launches = min(_MAX_LAUNCHES, max(1, round(batch_seconds / max(seconds, 1e-7))))
        if launches > 1:  # whole turns through the sets, so that every round does the same
            sets = len(contender.kernels)
            launches = max(1, launches // sets) * sets
        contender.launches = launches
        contender.method = "events" if backend.on_gpu else "clock"
        turns.append(_Turn(contender.kernels, launches))
        short.append(backend.on_gpu and seconds < _GRAPH_BELOW)
    batches: list[Work] = list(turns)
    for place, turn in enumerate(turns):
        if short[place]:
            replay = backend.graph(turn)
            if replay is None:
                for contender in contenders:
                    contender.method = "events"
                return list(turns)
            batches[place], contenders[place].method = replay, "graph"
    return batches


def _estimate(backend: Backend, works: Sequence[Work]) -> float:
    """Seconds of one launch, roughly."""
    backend.elapsed(works[0])  # the first launch loads code
    seconds = min(backend.elapsed(works[-1]) for _ in range(2))
    if backend.on_gpu and seconds < _GRAPH_BELOW:  # the host was most of it
        seconds = backend.elapsed(_Turn(works, 32)) / 32
    return seconds


class _Turn:
    """Goes on through the sets of operands where the last round stopped."""

    def __init__(self, works: Sequence[Work], launches: int) -> None:
        self._works, self.launches, self._next = works, launches, 0

    def __call__(self) -> None:
        for _ in range(self.launches):
            self._works[self._next]()
            self._next = (self._next + 1) % len(self._works)
