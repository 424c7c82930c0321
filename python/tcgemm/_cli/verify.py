"""`python -m tcgemm verify`: the accuracy contract, mode by mode, on data that finds faults."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tcgemm
from tcgemm._cli import accuracy, machine
from tcgemm._cli.backends import (
    Backend,
    add_backend_arguments,
    choose,
    compute_capability,
    gpu_of,
)
from tcgemm._cli.bench_report import where
from tcgemm._cli.cases import (
    MOST_ELEMENTS,
    Case,
    parse_names,
    parse_sizes,
    refuse_too_large,
)
from tcgemm._cli.measure import finite, forced_family
from tcgemm._cli.modes import MODES, Mode, bounds, verified
from tcgemm._cli.peers import multiply
from tcgemm._cli.report import (
    BAD,
    Table,
    UsageError,
    blame,
    check_can_write,
    fraction,
    heading,
    number,
    progress,
    read_results,
    refuse_beside,
    rehearse,
    write_json,
)

# A hard bound is proven and holds for any data; the gate is a regression limit for U(0,1).
DATA = ("U(0,1)", "U(-1,1)", "wide", "integers")
_LADDER = (16, 64, 256, 1024, 4096, 16384, 65536, 262144)
_ALWAYS = 16384  # K up to which every case runs; longer ones only where they are quick
_QUICK_SECONDS = 1.0
_M, _N = 48, 40
# What is shown of a result that was measured.
_SHOWN = {"error", "error_over_bound", "error_over_gate", "gate_kept", "hard", "kept"}

EPILOG = """\
data sets:
  U(0,1)    one sign, so that errors of truncation add up; checked against the gate, too
  U(-1,1)   both signs
  wide      both signs, magnitudes from 2^-8 to 2^8
  integers  every result must be exact

Each number is the largest error of an element over its bound c |A||B| + u |D|: the promise is kept
if it is at most 1. That of a peer, which promises nothing, is over c |A||B|. The gate is a tighter
limit, which detects regressions.

exit status: 1 if a bound or gate is broken or nothing could be measured, with --probe if addends or
fraction bits differ from those known of such GPUs; 2 for a wrong argument, 130 for ^C
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--modes", metavar="LIST", help=f"some of (default: all) {', '.join(MODES)}"
    )
    parser.add_argument(
        "--families",
        metavar="LIST",
        help="force each of these kernel families, such as sm70_wmma,simt",
    )
    parser.add_argument(
        "--k",
        metavar="LIST",
        help="lengths of the sums: 16,1024 or first:last:step (default: 16 to 262144)",
    )
    for option, default, what in (("--m", _M, "rows"), ("--n", _N, "columns")):
        parser.add_argument(
            option,
            type=number(
                option, int, lambda size: 1 <= size <= MOST_ELEMENTS, "1 to 2^52, a whole number"
            ),
            default=default,
            help=f"{what} of the results (default: %(default)s)",
        )
    add_backend_arguments(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const="-",
        help="write the results; without FILE or to -: to standard output",
    )
    parser.add_argument(
        "--plot", metavar="FILE.png", help="draw errors against K; needs matplotlib"
    )
    parser.add_argument("--from-json", metavar="FILE", help="show results of an earlier --json")
    parser.add_argument(
        "--peers", action="store_true", help="measure cuBLAS or NumPy on the same data, too"
    )
    parser.add_argument(
        "--probe", action="store_true", help="only measure how the GPU's tensor cores sum and round"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.plot:
        from tcgemm._cli.plot import check_can_plot

        check_can_plot(arguments.plot)
    if arguments.json:
        check_can_write(arguments.json, arguments.plot)
    if arguments.probe:
        refuse_beside(arguments, "--probe", "measures tensor cores only", "device", "json")
        return _probe(arguments)
    if arguments.from_json:
        refuse_beside(arguments, "--from-json", "measures nothing", "plot", "json")
        keys = {"family", "mode", "data", "k"}
        report = read_results(arguments.from_json, "verify", set(), "results", keys, _SHOWN)
        rehearse(arguments.from_json, "verify", lambda: _print(report))
    else:
        report = _verify(arguments)
    if arguments.json:
        with blame(arguments.from_json, "verify"):
            write_json(report, arguments.json)
    if arguments.json != "-":
        _print(report)
    if arguments.plot:
        from tcgemm._cli.plot import draw_verify

        with blame(arguments.from_json, "verify"):
            draw_verify(report, arguments.plot)
    results = report["results"]
    failed = any(_broken(result) for result in results)
    measured = any("kept" in result for result in results)
    return 1 if failed or not measured else 0


def _verify(arguments: argparse.Namespace) -> dict[str, Any]:
    names = list(MODES)
    if arguments.modes:
        names = parse_names(arguments.modes, "--modes", MODES)
    known = sorted({kernel["family"] for kernel in tcgemm.kernels()})
    families: list[str | None] = [None]
    if arguments.families:
        families = list(parse_names(arguments.families, "--families", known))
    ladder = parse_sizes(arguments.k, "--k") if arguments.k else list(_LADDER)
    always = max(ladder) if arguments.k else _ALWAYS
    backend = choose(arguments.framework, arguments.device)

    results: list[dict[str, Any]] = []
    with progress(len(families) * len(names) * len(DATA)) as bar:
        for family in families:
            for name in names:
                for data in DATA:
                    bar.step(f"{name}, {data}")
                    shape = (arguments.m, arguments.n)
                    climb = _climb(backend, name, data, ladder, always, shape, arguments.peers)
                    with forced_family(family):
                        results.extend({"family": family, **result} for result in climb)
    return {
        "framework": backend.name,
        "machine": machine.describe(backend.device),
        "results": results,
    }


def _probe(arguments: argparse.Namespace) -> int:
    from tcgemm._cli import probe

    gpu = gpu_of(choose("numpy", arguments.device))
    if gpu is None:
        raise UsageError(
            f"--probe: needs a GPU ({tcgemm.cuda_unavailable_reason() or 'the device is cpu'})"
        )
    found = probe.measure(gpu["ordinal"])
    different = probe.differences(found, gpu["compute_capability"][0])
    if arguments.json:
        report = {
            "machine": machine.describe(f"cuda:{gpu['ordinal']}"),
            "probe": probe.describe(found),
            "differences": different,
        }
        write_json(report, arguments.json)
    if arguments.json != "-":
        probe.show(found, gpu, different)
    return 1 if different else 0


def _broken(result: dict[str, Any]) -> bool:
    return not (result["kept"] and result["gate_kept"]) if "kept" in result else False


def _climb(
    backend: Backend,
    name: str,
    data: str,
    ladder: list[int],
    always: int,
    shape: tuple[int, int],
    with_peer: bool,
) -> Iterator[dict[str, Any]]:
    """One mode and data set up the ladder of K."""
    mode = verified(name)
    if mode.dtype == "int8" and data != "integers":
        return
    took = 0.0
    for k in ladder:
        if k > always and 4 * took > _QUICK_SECONDS:
            return
        if mode.accumulate_name == "fp16" and k > 65536:
            return  # U(0,1) sums to K / 4, which FP16 does not hold
        case = {"mode": name, "data": data, "m": shape[0], "n": shape[1], "k": k}
        start = time.perf_counter()
        try:
            yield {**case, **_compare(backend, mode, data, k, shape, with_peer)}
        except (tcgemm.NoKernelError, tcgemm.UnsupportedError, MemoryError) as error:
            yield {**case, "not_run": str(error)}
            return
        took = time.perf_counter() - start


def _compare(
    backend: Backend, mode: Mode, data: str, k: int, shape: tuple[int, int], with_peer: bool
) -> dict[str, Any]:
    if not backend.has_dtype(mode.dtype):
        raise tcgemm.UnsupportedError(backend.missing(mode.dtype))
    m, n = shape
    refuse_too_large(m, n, k)
    rng = np.random.default_rng(k)
    a = backend.array(_draw(rng, data, (m, k), mode), mode.dtype)
    b = backend.array(_draw(rng, data, (k, n), mode), mode.dtype)
    out = backend.empty((m, n), mode.result_dtype)
    backend.poison(out)
    plan = tcgemm.plan(a, b, out=out, **mode.arguments)
    plan.execute()
    backend.synchronize()
    limits = bounds(mode, k, compute_capability(backend), family=plan.family)
    reference = accuracy.Reference(backend, a, b, mode)
    seen = reference.judge(out, mode, limits, exact=data == "integers")
    gated = data == "U(0,1)" and seen.over_gate is not None
    beside = {}
    if with_peer:
        case = Case(m, n, k, mode.dtype, "nn", mode.precision, mode.accumulate, mode.out_dtype)
        backend.poison(out)
        peer = multiply(backend, case, a, b, out)
        backend.synchronize()
        if peer is not None:
            its = peer.case.mode  # NumPy has no narrower precision: it multiplies what it is given
            if its.compute_dtype != mode.compute_dtype:
                reference = accuracy.Reference(backend, a, b, its)
            error = finite(reference.judge(out, mode, limits).error)
            beside["peer"] = {"name": peer.name, "how": peer.how, "error": error}
    return {
        **beside,
        "kernel": plan.kernel,
        "error": finite(seen.error),
        "hard": limits.hard,
        "gate": limits.gate,
        "error_over_bound": finite(seen.over_bound),
        "error_over_gate": finite(seen.over_gate) if gated and seen.over_gate is not None else None,
        "kept": seen.kept,
        "gate_kept": not gated or (seen.over_gate or 0.0) <= 1,
    }


def _draw(rng: np.random.Generator, data: str, shape: tuple[int, int], mode: Mode) -> np.ndarray:
    narrow_sum = mode.accumulate_name == "fp16"
    if data == "U(0,1)":
        return rng.random(shape)
    if data == "U(-1,1)":
        return 2 * rng.random(shape) - 1
    if data == "wide":
        top = 0 if narrow_sum else 8  # FP16 sums overflow at 65504
        magnitudes: np.ndarray = np.exp2(rng.uniform(-8, top, shape))
        return np.where(rng.random(shape) < 0.5, magnitudes, -magnitudes)
    if mode.is_exact:
        return rng.integers(-127, 128, shape).astype(np.float64)
    # So that every partial sum is exact, and every result.
    largest = 1 if narrow_sum or mode.accumulate_name == "fast" else 4
    if mode.results_are_fp8:
        return np.where(rng.random(shape) < 1 / shape[-1], largest, 0.0)
    return rng.integers(-largest, largest + 1, shape).astype(np.float64)


def _print(report: dict[str, Any]) -> None:
    heading("tcgemm verify: largest error over its bound, by length of the product (K)")
    print(where(report))
    results = report["results"]
    ladder = sorted({result["k"] for result in results})
    for family in dict.fromkeys(result["family"] for result in results):
        title = f"\nfamily {family}, forced" if family else "\nthe library's choice of kernels"
        table = Table(["<mode", "<data", *map(str, ladder), "<kept"], title)
        skipped: dict[str, str] = {}
        of_family = [result for result in results if result["family"] == family]
        for name in dict.fromkeys(result["mode"] for result in of_family):
            for data in DATA:
                row = [r for r in of_family if r["mode"] == name and r["data"] == data]
                for r in row:
                    if "not_run" in r:
                        skipped[name] = r["not_run"]
                done = {r["k"]: r for r in row if "kept" in r}
                if done:
                    _add(table, name, data, ladder, done, "error_over_bound", "kept")
                beside = {k: r["peer"] for k, r in done.items() if "peer" in r and r["hard"]}
                if beside:
                    over = [
                        fraction(beside[k]["error"] / done[k]["hard"])
                        if k in beside and beside[k]["error"] is not None
                        else "-"
                        for k in ladder
                    ]
                    table.add(name, f"  {next(iter(beside.values()))['name']}", *over, "")
                if any(r["error_over_gate"] is not None for r in done.values()):
                    _add(table, name, "  gate", ladder, done, "error_over_gate", "gate_kept")
        table.print()
        if any("-" in row for row, _ in table.rows):
            print("-: takes too long, or not in this mode's range; name it with --k to measure it")
        for name, reason in skipped.items():
            print(f"not run: {name}: {reason}")
    failed = sum(map(_broken, results))
    done_count = sum("kept" in result for result in results)
    if not done_count:
        print("\nnothing was measured")
        return
    print(f"\n{failed} of {done_count} promises BROKEN" if failed else f"\nall {done_count} kept")


def _add(
    table: Table,
    name: str,
    data: str,
    ladder: list[int],
    done: dict[int, dict[str, Any]],
    value: str,
    verdict: str,
) -> None:
    kept = all(result[verdict] for result in done.values())
    cells = [fraction(done[k][value]) if k in done else "-" for k in ladder]
    table.add(name, data, *cells, "yes" if kept else "NO", style="" if kept else BAD)
