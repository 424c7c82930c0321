"""Draws results: speed against size and ratios for bench, error against K for verify."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcgemm._cli.bench_report import Row, case_of, geometric_mean, groups, where
from tcgemm._cli.cases import Case
from tcgemm._cli.modes import LARGEST_FP8, U16, U32, U64, UNIT_ROUNDOFF, verified
from tcgemm._cli.report import UsageError

OURS, LOST, WRONG = "#1f77b4", "#d62728", "#000000"
# The same in every picture; others take turns.
_PEERS = {"cublas": "#7f7f7f", "numpy": "#7f7f7f", "cublaslt": "#bcbd22", "copy": "#17becf"}
_OTHER_PEERS = ("#e377c2", "#8c564b", "#9467bd")
_MANY = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22")
_STYLES = ("-", "--", "-.", ":")
_BEST = "the best peer"  # of each row
_SQUARES, EQUAL_WORK = "squares", "equal work"
AXES = {
    _SQUARES: "M = N = K",
    EQUAL_WORK: "size: the side of a square product with as many operations",
}
_RATIO_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_FINE_RATIO_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3)
_DATA = {"U(0,1)": "#d62728", "U(-1,1)": "#1f77b4", "wide": "#2ca02c"}


def check_can_plot(path: str) -> None:
    """Before a long measurement, not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot: needs matplotlib: pip install matplotlib (or tcgemm[bench])")
    if not Path(path).parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder {Path(path).parent}")
    canvas = importlib.import_module("matplotlib.backend_bases").FigureCanvasBase
    known = canvas.get_supported_filetypes()
    if Path(path).suffix.lower()[1:] not in known:
        endings = ", ".join(f".{ending}" for ending in sorted(known))
        raise UsageError(f"--plot {path}: expected a name that ends in one of {endings}")


def make_figure(rows: int, columns: int, width: float, heights: Sequence[float]) -> tuple[Any, Any]:
    figure_type = importlib.import_module("matplotlib.figure").Figure
    figure = figure_type(figsize=(width, sum(heights)), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
    return figure, axes


def save(figure: Any, path: str) -> None:
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise UsageError(f"--plot {path}: {error.strerror}") from None


def draw_bench(report: dict[str, Any], path: str) -> None:
    """A line of panels for each group: speed against size on the left, every ratio on the right."""
    shown = {
        title: [row for row in rows if "not_run" not in row]
        for title, rows in groups(report).items()
    }
    shown = {title: rows for title, rows in shown.items() if rows}
    if not shown:
        raise UsageError("--plot: no row was measured, so there is nothing to draw")
    heights = [max(3.4, 0.24 * len(rows) + 1.2) for rows in shown.values()]
    figure, axes = make_figure(len(shown), 2, 13, heights)
    commit = report["machine"].get("commit")
    name = f"tcgemm bench, suite {report['suite']}" + (f", commit {commit[:10]}" if commit else "")
    figure.suptitle(f"{name}\n{where(report)}", fontsize=10)
    for (title, rows), (left, right) in zip(shown.items(), axes, strict=True):
        _draw_speed(left, title, rows)
        _draw_ratios(right, rows)
    save(figure, path)


def _draw_speed(axes: Any, title: str, rows: Sequence[Row]) -> None:
    """Speed against the size that varies most: a line for each form, or for each of the others."""
    axis, series = _series(rows)
    drawn = [row for some in series.values() for row in some]
    memory_bound = is_memory_bound(drawn)
    names = dict.fromkeys(name for row in drawn for name in row["peers"])
    peers = [name for name in names if memory_bound or name != "copy"]
    few = len(series) <= len(_STYLES)
    if few:  # a colour for each contender, a style for each line of ours
        others = itertools.cycle(_OTHER_PEERS)
        colors = {None: OURS, **{name: _PEERS.get(name) or next(others) for name in peers}}
        plain = "none" if axis == EQUAL_WORK else "-"
        styles = dict(zip(series, (plain, *_STYLES[1:]), strict=False))
        for label, some in series.items():
            for name, color in colors.items():
                points = _points(some, axis, name, memory_bound)
                _draw_line(axes, points, color, styles[label])
        key = [(name or "tcgemm", color, plain, "o") for name, color in colors.items()]
        if len(series) > 1:
            key += [(label, "black", style, "") for label, style in styles.items()]
    else:  # a colour for each line of ours, the best peer dotted beside it
        many = dict(zip(series, itertools.cycle(_MANY), strict=False))
        for label, some in series.items():
            _draw_line(axes, _points(some, axis, None, memory_bound), many[label], "-")
            _draw_line(axes, _points(some, axis, _BEST, memory_bound), many[label], ":")
        key = [(label, color, "-", "o") for label, color in many.items()]
        key += [("the best peer", "black", ":", "o")] if peers else []
    for text, color, style, marker in key:
        axes.plot([], [], ls=style, marker=marker, ms=4, color=color, label=text)
    sizes = sorted({size_on(axis, row) for row in drawn})
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xscale("log", base=2)
    ticks: list[float] = []
    apart = max(1.02, (sizes[-1] / sizes[0]) ** (1 / 12))  # or their numbers run together
    for size in sorted(sizes, key=_is_odd):
        if all(size > apart * tick or tick > apart * size for tick in ticks):
            ticks.append(size)
    axes.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
    axes.minorticks_off()
    notes = [AXES.get(axis, axis.upper())]
    if axis != EQUAL_WORK and any(map(_is_odd, sizes)):
        notes.append("crosses: sizes that are no multiple of 8")
    if len(drawn) < len(rows):
        notes.append("other shapes: on the right")
    axes.set_xlabel("; ".join(notes), fontsize=9)
    set_speed_axis(axes, drawn, memory_bound)
    axes.legend(fontsize=8, handlelength=3.5)


def _series(rows: Sequence[Row]) -> tuple[str, dict[str, list[Row]]]:
    """What the rows are drawn against (see size_on), and the lines that they make there."""
    squares = [row for row in rows if case_of(row).square]
    alike = len({case_of(row).m for row in squares}) > 1
    axis = _SQUARES if alike else varying(rows)
    series: dict[str, list[Row]] = {}
    for row in sorted(squares if alike else rows, key=lambda row: size_on(axis, row)):
        case = case_of(row)
        others = "" if alike else _others(case, axis)
        series.setdefault(f"{others} {case.form}".strip(), []).append(row)
    if 2 * len(series) > len(rows) > 1:  # shapes that make no lines
        return EQUAL_WORK, {"": list(rows)}
    return axis, series


def size_on(axis: str, row: Row) -> float:
    """Where a row is on an axis: m, n, k, _SQUARES or EQUAL_WORK."""
    case = case_of(row)
    if axis == EQUAL_WORK:
        return float((case.operations / 2) ** (1 / 3))
    return float(case.m if axis == _SQUARES else getattr(case, axis))


def varying(rows: Sequence[Row]) -> str:
    """The dimension along which the rows make the fewest lines."""
    cases = [case_of(row) for row in rows]
    return min("mnk", key=lambda name: len({(_others(case, name), case.form) for case in cases}))


def _others(case: Case, dimension: str) -> str:
    return " ".join(f"{name.upper()} {getattr(case, name)}" for name in "mnk" if name != dimension)


def is_memory_bound(rows: Sequence[Row]) -> bool:
    """Whether bandwidth is what most of them say something about."""
    return 2 * sum(case_of(row).is_memory_bound for row in rows) > len(rows)


def speed(row: Row, side: Row, memory_bound: bool) -> float:
    """TB/s or TFLOP/s of ours or of a peer, on the case as it is."""
    microseconds = float(side["kernel_us"][1])
    return case_of(row).bytes / microseconds * 1e-6 if memory_bound else float(side["tflops"])


def set_speed_axis(axes: Any, rows: Sequence[Row], memory_bound: bool) -> None:
    """From 0 to the fastest of what was drawn."""
    fastest = float(axes.dataLim.y1)
    unit = "B" if memory_bound else case_of(rows[0]).mode.unit
    axes.set_ylabel(f"{'T' if fastest >= 0.2 else 'G'}{unit}/s")
    if fastest < 0.2:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 1e3:g}")
    axes.set_ylim(0, 1.06 * fastest)
    axes.grid(alpha=0.3)


def _points(
    rows: Sequence[Row], axis: str, name: str | None, memory_bound: bool
) -> list[tuple[float, float]]:
    """Sizes and speeds of ours (None), of a peer, or of the best peer of each row."""
    points = []
    for row in rows:
        key = row.get("peer") if name == _BEST else name
        side = row["ours"] if name is None else row["peers"].get(key)
        if side is not None:
            points.append((size_on(axis, row), speed(row, side, memory_bound)))
    return points


def _is_odd(size: float) -> bool:
    """In the sense of tensor cores, which few rows are not; nor is what is no size."""
    return size > 8 and size % 8 in range(1, 8)


def _draw_line(axes: Any, points: Sequence[tuple[float, float]], color: str, style: str) -> None:
    aligned = [point for point in points if not _is_odd(point[0])]
    odd = [point for point in points if _is_odd(point[0])]
    if aligned:
        axes.plot(*zip(*aligned, strict=True), ls=style, marker="o", ms=4, color=color)
    if odd:  # a thin line: which crosses belong together
        axes.plot(*zip(*odd, strict=True), ls=style, lw=0.7, marker="x", ms=7, mew=2, color=color)


def ratio_ticks(low: float, high: float) -> list[float]:
    """For a logarithmic axis between these."""
    some = _FINE_RATIO_TICKS if high < 4 * low else _RATIO_TICKS
    return [tick for tick in some if low < tick < high]


def _draw_ratios(axes: Any, rows: Sequence[Row]) -> None:
    compared = [row for row in rows if "ratio" in row]
    if not compared:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no peer measured", ha="center", transform=axes.transAxes)
        return
    ratios = [row["ratio"] for row in compared]
    colors = [WRONG if not row["kept"] else LOST if row["lost"] else OURS for row in compared]
    places = range(len(compared))
    # A logarithmic axis with bars that start at 1: twice as fast is as long as half as fast.
    axes.set_xscale("log")
    axes.barh(places, [ratio - 1 for ratio in ratios], left=1, color=colors, height=0.7)
    axes.axvline(1, color="black", lw=1)
    names = [f"{case_of(row).size} {case_of(row).form}" for row in compared]
    axes.set_yticks(places, names, fontsize=7)
    axes.set_ylim(max(len(compared), 8) - 0.5, -0.5)  # bars no thicker than a line of text
    for place, row in zip(places, compared, strict=True):
        text = f" {row['ratio']:.2f} " + ("" if row["kept"] else "WRONG ")
        side = "right" if row["lost"] else "left"
        axes.text(row["ratio"], place, text, va="center", ha=side, fontsize=7)
    # Room for the numbers beside the bars: a part of the axis, which is longer for a wide range.
    low, high = min(0.75, min(ratios)), max(4 / 3, max(ratios))
    room = (high / low) ** 0.12
    axes.set_xlim(low / room, high * room)
    ticks = ratio_ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    best = {row["peer"] for row in compared}
    lost = sum(row["lost"] for row in compared)
    what = "the best peer" if len(best) > 1 else best.pop()
    axes.set_title(
        f"speed over {what}: geometric mean {geometric_mean(ratios):.2f}, lost {lost} of"
        f" {len(compared)} (red)",
        fontsize=9,
        loc="left",
    )
    axes.grid(axis="x", alpha=0.3)


def draw_verify(report: dict[str, Any], path: str) -> None:
    """A panel for each mode: error over |A||B| against K, in units of roundoff, with its bounds."""
    results = [
        result
        for result in report["results"]
        if result.get("error") is not None and result["data"] in _DATA
    ]
    modes = list(dict.fromkeys((result["family"], result["mode"]) for result in results))
    if not modes:
        raise UsageError("--plot: no floating-point mode was verified, so there is nothing to draw")
    columns = min(3, len(modes))
    rows = -(-len(modes) // columns)
    figure, axes = make_figure(rows, columns, max(4.2 * columns, 8.4), [3.2] * rows)
    figure.suptitle(
        f"tcgemm verify, {where(report)}\n"
        "largest error of an element over its |A||B|, against K; D's own rounding is in the bounds",
        fontsize=11,
    )
    for panel in axes.flat[len(modes) :]:
        panel.set_axis_off()
    key: dict[str, Any] = {}
    for (family, mode), panel in zip(modes, axes.flat, strict=False):
        here = [r for r in results if (r["family"], r["mode"]) == (family, mode)]
        _draw_mode(panel, here, mode, f"{mode} ({family})" if family else mode)
        handles, labels = panel.get_legend_handles_labels()
        key.update(zip(labels, handles, strict=True))
    # One for all: there is room for none beside the lines.
    figure.legend(
        key.values(), key, loc="outside lower center", ncols=4, fontsize=10, handlelength=3
    )
    save(figure, path)


def _draw_mode(axes: Any, results: Sequence[dict[str, Any]], name: str, title: str) -> None:
    mode = verified(name)
    unit, symbol = U32, "2^-24"
    if mode.compute_dtype == "float64":
        unit, symbol = U64, "2^-53"
    elif mode.accumulate_name == "fp16":
        unit, symbol = U16, "2^-11"
    notes = ["K"]
    for place, (data, color) in enumerate(_DATA.items()):
        look: dict[str, Any] = {"color": color, "height": 0.03 + 0.05 * place}
        some = [r for r in results if r["data"] == data]
        ours = [(r["k"], r["error"]) for r in some]
        _draw_errors(axes, ours, unit, "o-", label=data, **look)
        peers = [(r["k"], r["peer"]) for r in some if "peer" in r]
        if peers:
            theirs = [(k, peer["error"]) for k, peer in peers]
            label = f"{peers[0][1]['name']}, {data}"
            _draw_errors(axes, theirs, unit, "s--", label=label, lw=1, mfc="none", **look)
    if any(r["error"] == 0 for r in results):
        largest = LARGEST_FP8.get(mode.result_dtype)
        why = f": all results saturate at {largest:g}" if largest else ""
        notes.append(f"triangles: no error{why}")
    # |D - R| is allowed c |A||B| + u |R|, and |R| is at most |A||B|.
    rounding = UNIT_ROUNDOFF[mode.result_dtype]
    limits = sorted({(r["k"], r["hard"], r["gate"]) for r in results}, key=lambda limit: limit[0])
    lengths = [limit[0] for limit in limits]
    alone = {"marker": "_", "ms": 40} if len(lengths) == 1 else {}  # one K makes no line
    hard = [(limit[1] + rounding) / unit for limit in limits]
    if mode.accumulate_name == "fast":
        axes.plot(lengths, hard, "k-.", lw=1, label="limit, not promised", **alone)
    else:
        axes.plot(lengths, hard, "k--", lw=1, label="hard bound", **alone)
    if limits[0][2] is not None:
        gates = [(limit[2] + rounding) / unit for limit in limits]
        look = {"color": _DATA["U(0,1)"], "lw": 1.5, **alone}
        axes.plot(lengths, gates, ":", label="gate for U(0,1)", **look)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel("; ".join(notes), fontsize=9)
    axes.set_ylabel(f"error / |A||B|, in {symbol}", fontsize=9)
    axes.grid(alpha=0.3)


def _draw_errors(
    axes: Any,
    points: Sequence[tuple[int, float | None]],
    unit: float,
    style: str,
    height: float,
    **look: Any,
) -> None:
    """Zeros, for which a logarithmic axis has no place, are triangles near its lower edge."""
    drawn = [(k, error / unit) for k, error in points if error]
    if drawn:
        axes.plot(*zip(*drawn, strict=True), style, ms=4, **look)
    none = [k for k, error in points if error == 0]
    edge = axes.get_xaxis_transform()
    axes.plot(none, [height] * len(none), "v", ms=5, transform=edge, **{**look, "label": None})
