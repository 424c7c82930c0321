"""`python -m tcgemm demo`: the main job, in every precision, timed and checked."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from typing import Any

import tcgemm
from tcgemm._cli import accuracy, machine, timing
from tcgemm._cli.accuracy import Accuracy
from tcgemm._cli.backends import (
    Backend,
    NumpyBackend,
    add_backend_arguments,
    choose,
    compute_capability,
    gpu_of,
)
from tcgemm._cli.cases import MOST_ELEMENTS
from tcgemm._cli.modes import MODES, Mode, bounds
from tcgemm._cli.report import (
    BAD,
    Table,
    duration,
    fraction,
    heading,
    number,
    progress,
    rate,
    scientific,
)

_CPU_LADDER = (256, 512, 1024, 2048)  # NumPy operands take longer to make than to multiply
_GPU_LADDER = (*_CPU_LADDER, 4096, 8192)
_ODD = (1023, 1027, 1025)  # m, n, k
_LARGEST_SIZE = math.isqrt(MOST_ELEMENTS)  # memory is where it ends
_SIZES = f"1 to {_LARGEST_SIZE}, a whole number"
_CPU_SECONDS, _GPU_SECONDS = 0.5, 0.05  # for one product, at most
_CPU_ORACLE_OPERATIONS, _GPU_ORACLE_OPERATIONS = 4e9, 3e11  # in FP64, about 0.1 s


@dataclass(frozen=True)
class Outcome:
    mode: str
    operands: str  # "numpy", "torch"
    shape: tuple[int, int, int]
    result: str  # dtype
    kernel: str
    seconds: float
    accuracy: Accuracy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_backend_arguments(parser, default="numpy, and on a GPU also torch or cupy if installed")
    parser.add_argument(
        "--size",
        type=number("--size", int, lambda size: 1 <= size <= _LARGEST_SIZE, _SIZES),
        metavar="N",
        help="multiply N x N matrices (default: by speed)",
    )


def run(arguments: argparse.Namespace) -> int:
    chosen = choose(arguments.framework, arguments.device)
    backends = [chosen]
    if chosen.on_gpu and arguments.framework is None:
        backends.append(NumpyBackend())
    size = arguments.size
    odd = _ODD if size is None else (max(size - 1, 1), size + 3, size + 1)
    tasks = [
        (backend, name, mode, shape)
        for backend in backends
        for name, mode in MODES.items()
        for shape in (None, odd)
        if backend.has_dtype(mode.dtype) and (shape is None or name in ("fp32", "fp16"))
    ]
    heading("tcgemm demo: D = A B in every mode, checked against FP64")
    print(_where(backends))
    outcomes: list[Outcome] = []
    failures: dict[str, list[str]] = {}  # whose product failed, by message
    with progress(len(tasks)) as bar:
        for backend, name, mode, shape in tasks:
            bar.step(f"{name}, {backend.name} arrays")
            if shape is None and size is not None:
                shape = (size,) * 3
            try:
                outcomes.append(multiply(backend, name, mode, shape))
            except (tcgemm.TcgemmError, RuntimeError, MemoryError) as error:
                whose = failures.setdefault(f"{type(error).__name__}: {error}", [])
                whose.append(f"{name} ({backend.name})")
    _print(outcomes, backends)
    for backend in backends:
        missing: dict[str, list[str]] = {}
        for name, mode in MODES.items():
            if not backend.has_dtype(mode.dtype):
                missing.setdefault(backend.missing(mode.dtype), []).append(name)
        for why, names in missing.items():
            print(f"\nnot run: {', '.join(names)}: {why}")
    return _verdict(outcomes, failures)


def multiply(
    backend: Backend, name: str, mode: Mode, shape: tuple[int, int, int] | None
) -> Outcome:
    """One product, timed and compared. Without a shape: square, as large as fits the time."""
    m, n, k = shape or (_size(backend, mode),) * 3
    a = backend.random((m, k), mode.dtype, 1)
    b = backend.random((k, n), mode.dtype, 2)
    out = backend.empty((m, n), mode.result_dtype)
    backend.poison(out)
    plan = tcgemm.plan(a, b, out=out, **mode.arguments)
    seconds = _time(backend, plan)
    limits = bounds(mode, k, compute_capability(backend), family=plan.family)
    operations = _GPU_ORACLE_OPERATIONS if backend.on_gpu else _CPU_ORACLE_OPERATIONS
    rows = max(16, int(operations / (4 * n * k)))
    seen = accuracy.measure(backend, a, b, out, mode, limits, rows=rows)
    return Outcome(name, backend.name, (m, n, k), mode.result_dtype, plan.kernel, seconds, seen)


def _size(backend: Backend, mode: Mode) -> int:
    """The largest of the ladder whose product takes no longer than it may."""
    ladder = _GPU_LADDER if backend.on_gpu else _CPU_LADDER
    allowed = _GPU_SECONDS if backend.on_gpu else _CPU_SECONDS
    for size in ladder[:-1]:
        a = backend.random((size, size), mode.dtype, 1)
        out = backend.empty((size, size), mode.result_dtype)
        plan = tcgemm.plan(a, a, out=out, **mode.arguments)
        if 8 * _time(backend, plan, samples=2) > allowed:  # the next is twice as large
            return size
    return ladder[-1]


def _time(backend: Backend, plan: Any, samples: int = 5) -> float:
    """Median seconds of one product, the kernel alone on a GPU's own arrays."""

    def product() -> None:
        plan.execute()

    backend.elapsed(product)  # the first launch loads code
    once = backend.elapsed(product)
    launches = max(1, min(50, int(2e-3 / once))) if backend.on_gpu else 1

    def several() -> None:
        for _ in range(launches):
            plan.execute()

    deadline = time.perf_counter() + 1.0
    times = [once] if launches == 1 else []
    while len(times) < samples and (not times or time.perf_counter() < deadline):
        times.append(backend.elapsed(several) / launches)
    return timing.quartiles(times)[1]


def _where(backends: list[Backend]) -> str:
    gpu = gpu_of(backends[0])
    if gpu is not None:
        arrays = " and ".join(backend.name for backend in backends)
        return f"on {gpu['name']}, with arrays of {arrays}\n"
    reason = tcgemm.cuda_unavailable_reason()
    why = f"no usable GPU: {reason}\n" if reason else ""
    return f"{why}on the CPU, {machine.cpu_name()}, {machine.cpu_count()} threads\n"


def _print(outcomes: list[Outcome], backends: list[Backend]) -> None:
    columns = ["<mode", "<arrays", "size", "<D", "<kernel", "time", "speed"]
    table = Table([*columns, "rel. error", "error/bound", "<kept"])
    for outcome in outcomes:
        m, n, k = outcome.shape
        seen = outcome.accuracy
        table.add(
            outcome.mode,
            outcome.operands,
            str(m) if m == n == k else f"{m}x{n}x{k}",
            outcome.result,
            outcome.kernel,
            duration(outcome.seconds),
            rate(2 * m * n * k, outcome.seconds, MODES[outcome.mode].unit),
            scientific(seen.relative),
            fraction(seen.over_bound),
            "yes" if seen.kept else "NO",
            style="" if seen.kept else BAD,
        )
    table.print()
    print(
        "\nrel. error   |D - A B| / |A B| (Frobenius), with A and B as given: what rounding them"
        " to a\n             lower precision costs is in it"
        "\nerror/bound  largest error of an element over what the precision promises for it,"
        "\n             c |A||B| + u |D| (at most 1; 'exact' for integers)"
    )
    if gpu_of(backends[-1]) is not None and not backends[-1].on_gpu:
        print(
            "time         NumPy arrays: copies to and from the GPU included; others: the kernels"
            " alone"
        )


def _verdict(outcomes: list[Outcome], failures: dict[str, list[str]]) -> int:
    broken = [outcome for outcome in outcomes if not outcome.accuracy.kept]
    for message, whose in failures.items():
        print(f"\nFAILED: {', '.join(dict.fromkeys(whose))}: {message}")
    if broken or failures:
        failed = sum(map(len, failures.values()))
        print(f"\n{len(broken)} promises broken, {failed} products failed")
        return 1
    print(f"\nall {len(outcomes)} products keep their promise")
    return 0
