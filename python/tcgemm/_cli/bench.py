"""`python -m tcgemm bench`: speed, side by side with cuBLAS or NumPy, every result checked."""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import tcgemm
from tcgemm._cli import machine
from tcgemm._cli.backends import Backend, add_backend_arguments, choose
from tcgemm._cli.bench_report import case_of, print_report, summary
from tcgemm._cli.cases import (
    LAYOUTS,
    Case,
    Suite,
    from_arguments,
    load_suite,
    parse_names,
    parse_sizes,
    split_names,
    suite_names,
    with_families,
)
from tcgemm._cli.measure import measure
from tcgemm._cli.modes import ACCUMULATOR_DTYPE, ITEM_BYTES, PRECISION_DTYPE
from tcgemm._cli.operands import Pool
from tcgemm._cli.report import (
    UsageError,
    blame,
    check_can_write,
    is_stream,
    number,
    progress,
    read_results,
    refuse_beside,
    rehearse,
    write_json,
)
from tcgemm._output import error, note

_DTYPES = [dtype for dtype in ITEM_BYTES if dtype != "int32"]
_CPU_RATE = 5e10  # operations a second of a thread, about, in float32
_LONG_MINUTES = 10
_MOST_SHAPES = 100_000
# What is shown of a row that ran.
_SHOWN = {"kernel", "ours", "peers", "peers_refused", "error_over_bound", "kept"}

EPILOG = """\
examples:
  python -m tcgemm bench --suite quick
  python -m tcgemm bench --sizes 256,512,1024 --dtype float16,float32 --layout nn,nt
  python -m tcgemm bench --m 1:129:16 --n 8192 --k 8192 --dtype float16
  python -m tcgemm bench --suite foundation --json results.json --plot results.png
  python -m tcgemm bench --from-json results.json --plot results.png
  python -m tcgemm bench --from-json aligned.json,odd.json,decode.json --plot overview.png

how it is measured:
tcgemm and each peer run in turn, in one process, on the same N(0, 1) operands, which rotate
through more than twice the memory of the last-level cache. Times are medians of rounds after a
warm-up; on a GPU they are taken between events around a batch of launches, in a CUDA graph if a
launch is short. A ratio is the best peer's time over that of tcgemm, round by round: above 1 tcgemm
is faster. The peers on a GPU are cuBLAS as the framework calls it and the fastest of cublasLt's
candidates, chosen by a short measurement. Every timed result is compared with FP64.

exit status: 1 if a result is wrong (whatever the speed) or nothing could be measured, 2 for a wrong
argument, 130 for ^C
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "--suite", metavar="NAME", help=f"{', '.join(suite_names())}, or a .toml file"
    )
    what.add_argument(
        "--sizes", metavar="LIST", help="N of N x N x N products: 256,512 or first:last:step"
    )
    what.add_argument(
        "--m", metavar="LIST", help="rows of A, in the same forms; needs --n and --k, too"
    )
    what.add_argument("--n", metavar="LIST", help="columns of B, likewise")
    what.add_argument("--k", metavar="LIST", help="columns of A, likewise")
    what.add_argument(
        "--dtype",
        metavar="LIST",
        help="of A and B, some of (default: float32) " + ", ".join(_DTYPES),
    )
    what.add_argument(
        "--layout",
        metavar="LIST",
        help="of A and B, some of nn,nt,tn,tt (default: nn); n: row-major, t: column-major",
    )
    precisions, sums = ", ".join(PRECISION_DTYPE), ", ".join(ACCUMULATOR_DTYPE)
    what.add_argument("--precision", help=f"what the operands are rounded to: {precisions}")
    what.add_argument("--accumulate", help=f"what the products are summed in: {sums}")
    what.add_argument("--out-dtype", help="of the result, such as float32")
    what.add_argument(
        "--families",
        metavar="LIST",
        help="force each of these kernel families, such as sm70_wmma,simt",
    )
    where = parser.add_argument_group("where and how")
    add_backend_arguments(where)
    where.add_argument("--no-peers", action="store_true", help="measure tcgemm alone")
    where.add_argument(
        "--seconds",
        # NaN is neither above 0 nor below infinity.
        type=number("--seconds", float, lambda s: 0 < s < math.inf, "a finite number above 0"),
        default=1.0,
        help="time to measure a row for, in seconds (default: %(default)s)",
    )
    results = parser.add_argument_group("results")
    results.add_argument(
        "--json", metavar="FILE", help="write the results after each row; -: to standard output"
    )
    results.add_argument(
        "--plot", metavar="FILE.png", help="draw speed and ratios; needs matplotlib"
    )
    results.add_argument(
        "--from-json",
        metavar="FILE",
        help="show results of an earlier --json, or of several as a.json,b.json (in one --plot)",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.plot:
        from tcgemm._cli.plot import check_can_plot

        check_can_plot(arguments.plot)
    if arguments.json:
        check_can_write(arguments.json, arguments.plot)
    if arguments.from_json:
        refuse_beside(arguments, "--from-json", "measures nothing", "plot")
        paths = split_names(arguments.from_json)
        if not paths:
            raise UsageError(f"--from-json {arguments.from_json}: it names no file")
        reports = [_read(path) for path in paths]
    else:
        reports = [_measure_all(arguments)]
    if arguments.json != "-":
        for report in reports:
            print_report(report)
    if arguments.plot:
        with blame(arguments.from_json, "bench"):
            if len(reports) == 1:
                from tcgemm._cli.plot import draw_bench

                draw_bench(reports[0], arguments.plot)
            else:
                from tcgemm._cli.overview import draw_overview

                draw_overview(reports, arguments.plot)
    if not arguments.from_json and reports[0].get("interrupted"):
        error("interrupted: the rows that were measured are above")
        return 130
    rows = [row for report in reports for row in report["rows"]]
    nothing_ran = all("not_run" in row for row in rows)
    return 1 if nothing_ran or any(row.get("kept") is False for row in rows) else 0


def _measure_all(arguments: argparse.Namespace) -> dict[str, Any]:
    suite = _suite(arguments)
    backend = choose(arguments.framework, arguments.device)
    _warn_of_time(suite, backend)
    pool = Pool(backend)
    report: dict[str, Any] = {
        "suite": suite.name,
        "description": suite.description,
        "framework": backend.name,
        "device": backend.device,
        "settings": _settings(backend, arguments.seconds),
        "machine": machine.describe(backend.device),
        "rows": [],
    }
    with progress(len(suite.cases)) as bar, machine.Watch(backend.device) as watch:
        for case in suite.cases:
            bar.step(f"{case.group}, {case.size} {case.layout}")
            try:
                row = measure(pool, case, arguments.seconds, not arguments.no_peers)
            except KeyboardInterrupt:
                if not report["rows"]:
                    raise
                report["interrupted"] = True
                break
            report["rows"].append(row)
            report["machine"]["observed"] = watch.summary()
            report["summary"] = summary(report)
            if arguments.json and not is_stream(arguments.json):
                write_json(report, arguments.json)
    if arguments.json and (report.get("interrupted") or is_stream(arguments.json)):
        write_json(report, arguments.json)
    return report


def _warn_of_time(suite: Suite, backend: Backend) -> None:
    """Suites for a GPU take a CPU hours."""
    if backend.on_gpu:
        return
    operations = sum(2.0 * case.m * case.n * case.k * case.batch for case in suite.cases)
    # A warm-up and five rounds at least, of ours and a peer.
    minutes = 12 * operations / (_CPU_RATE * machine.cpu_count()) / 60
    if minutes > _LONG_MINUTES:
        note(f"about {minutes:,.0f} minutes on this CPU; the suites cpu and quick are made for one")


def _suite(arguments: argparse.Namespace) -> Suite:
    known = sorted({kernel["family"] for kernel in tcgemm.kernels()})
    families: list[str] = []
    if arguments.families:
        families = parse_names(arguments.families, "--families", known)
    fields = ("sizes", "m", "n", "k", "dtype", "layout", "precision", "accumulate", "out_dtype")
    given = [field for field in fields if getattr(arguments, field) is not None]
    if arguments.suite:
        if given:
            option = "--" + given[0].replace("_", "-")
            raise UsageError(f"{option}: a suite brings its own; leave out --suite or {option}")
        suite = load_suite(arguments.suite)
        cases = with_families(suite.cases, families)
        return Suite(suite.name, suite.description, tuple(cases))
    dtypes = parse_names(arguments.dtype or "float32", "--dtype", _DTYPES)
    layouts = parse_names(arguments.layout or "nn", "--layout", LAYOUTS)
    for option, value, allowed in (
        ("--precision", arguments.precision, PRECISION_DTYPE),
        ("--accumulate", arguments.accumulate, ACCUMULATOR_DTYPE),
        ("--out-dtype", arguments.out_dtype, ITEM_BYTES),
    ):
        if value is not None and value not in allowed:
            raise UsageError(f"{option} {value}: expected one of {', '.join(allowed)}")
    common = Case(
        0,
        0,
        0,
        precision=arguments.precision,
        accumulate=arguments.accumulate,
        out_dtype=arguments.out_dtype,
    )
    cases = from_arguments(_shapes(arguments), dtypes, layouts, common)
    return Suite("arguments", "", tuple(with_families(cases, families)))


def _shapes(arguments: argparse.Namespace) -> list[tuple[int, int, int]]:
    sizes = [arguments.m, arguments.n, arguments.k]
    shapes: list[tuple[int, int, int]] = []
    if arguments.sizes:
        shapes += [(size, size, size) for size in parse_sizes(arguments.sizes, "--sizes")]
    if any(sizes):
        if not all(sizes):
            raise UsageError("--m, --n and --k: give all three, or --sizes for square products")
        rows = parse_sizes(arguments.m, "--m")
        columns, lengths = parse_sizes(arguments.n, "--n"), parse_sizes(arguments.k, "--k")
        count = len(rows) * len(columns) * len(lengths)
        if count > _MOST_SHAPES:
            raise UsageError(f"--m, --n and --k: {count:,} products; give fewer sizes")
        shapes += itertools.product(rows, columns, lengths)
    if not shapes:
        raise UsageError("bench: give --suite, --sizes, or --m, --n and --k (see bench --help)")
    return shapes


def _settings(backend: Backend, seconds: float) -> dict[str, Any]:
    """What the reader of a result file has to know of the method."""
    return {
        "seconds_per_row": seconds,
        "peer": "the fastest that does equal work, row by row",
        "data": "N(0, 1); whole numbers from -127 to 127 for int8",
        "cache_bytes": backend.cache_bytes(),
        "tf32": False,
    }


def _read(path: str) -> dict[str, Any]:
    keys = {"suite", "description", "device"}
    report = read_results(path, "bench", keys, "rows", {"case"}, _SHOWN)
    try:
        for row in report["rows"]:
            case_of(row)
    except TypeError:
        version = report["machine"]["versions"]["tcgemm"]
        raise UsageError(
            f"--from-json {path}: written by tcgemm {version}; this version cannot read its "
            "rows: measure again"
        ) from None
    rehearse(path, "bench", lambda: print_report(report))
    return report
