"""Draws results: speed against size and ratios for bench, error against K for verify."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcgemm._cli.bench_report import Row, case_of, geometric_mean, groups, where
from tcgemm._cli.modes import MODES, U16, U32, U64
from tcgemm._cli.report import UsageError

_OURS, _LOST, _WRONG = "#1f77b4", "#d62728", "#000000"
_PEERS = ("#7f7f7f", "#bcbd22", "#17becf")
_RATIO_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_DATA = {"U(0,1)": "#d62728", "U(-1,1)": "#1f77b4", "wide": "#2ca02c"}


def check_can_plot(path: str) -> None:
    """Before a long measurement, not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot: needs matplotlib: pip install matplotlib (or tcgemm[bench])")
    if not Path(path).parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder {Path(path).parent}")


def _figure(rows: int, columns: int, width: float, heights: Sequence[float]) -> tuple[Any, Any]:
    figure_type = importlib.import_module("matplotlib.figure").Figure
    figure = figure_type(figsize=(width, sum(heights)), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
    return figure, axes


def _save(figure: Any, path: str) -> None:
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise UsageError(f"--plot {path}: {error.strerror}") from None
    except ValueError as error:  # an ending that matplotlib does not know
        raise UsageError(f"--plot {path}: {error}") from None


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
    figure, axes = _figure(len(shown), 2, 13, heights)
    commit = report["machine"].get("commit")
    name = f"tcgemm bench, suite {report['suite']}" + (f", commit {commit[:10]}" if commit else "")
    figure.suptitle(f"{name}\n{where(report)}", fontsize=10)
    for (title, rows), (left, right) in zip(shown.items(), axes, strict=True):
        _draw_speed(left, title, rows)
        _draw_ratios(right, rows)
    _save(figure, path)


def _draw_speed(axes: Any, title: str, rows: Sequence[Row]) -> None:
    """Lines through the aligned squares of the first layout; marks for the odd squares."""
    layouts = list(dict.fromkeys(case_of(row).layout for row in rows))
    sizes: set[int] = set()
    for place, layout in enumerate(layouts):
        squares = sorted(
            (row for row in rows if case_of(row).square and case_of(row).layout == layout),
            key=lambda row: case_of(row).m,
        )
        sizes.update(case_of(row).m for row in squares)
        names = list(dict.fromkeys(name for row in squares for name in row["peers"]))
        suffix = f" {layout}" if len(layouts) > 1 else ""
        style = ("-", "--", "-.", ":")[place % 4]
        for number, name in enumerate([None, *names]):
            color = _OURS if name is None else _PEERS[(number - 1) % len(_PEERS)]
            _draw_line(axes, squares, name, color, style, f"{name or 'tcgemm'}{suffix}")
    if not sizes:
        axes.set_axis_off()
        axes.text(0.5, 0.5, f"{title}\n(no square sizes)", ha="center", transform=axes.transAxes)
        return
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xscale("log", base=2)
    ticks = sorted(size for size in sizes if size % 8 == 0) or sorted(sizes)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("M = N = K (crosses: sizes that are no multiple of 8)", fontsize=8)
    fastest = max(row["ours"]["tflops"] for row in rows)
    axes.set_ylabel("TFLOP/s" if fastest >= 1 else "GFLOP/s")
    if fastest < 1:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 1e3:g}")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _draw_line(
    axes: Any, squares: Sequence[Row], name: str | None, color: str, style: str, label: str
) -> None:
    measured = [
        (case_of(row).m, row["ours"] if name is None else row["peers"][name])
        for row in squares
        if name is None or name in row["peers"]
    ]
    aligned = [(size, side["tflops"]) for size, side in measured if size % 8 == 0]
    odd = [(size, side["tflops"]) for size, side in measured if size % 8]
    if aligned:
        axes.plot(*zip(*aligned, strict=True), style, marker="o", ms=4, color=color, label=label)
    if odd:
        shown = None if aligned else label
        axes.plot(*zip(*odd, strict=True), "x", ms=7, mew=2, color=color, label=shown)


def _draw_ratios(axes: Any, rows: Sequence[Row]) -> None:
    compared = [row for row in rows if "ratio" in row]
    if not compared:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no peer measured", ha="center", transform=axes.transAxes)
        return
    ratios = [row["ratio"] for row in compared]
    colors = [_WRONG if not row["kept"] else _LOST if row["lost"] else _OURS for row in compared]
    places = range(len(compared))
    # A logarithmic axis with bars that start at 1: twice as fast is as long as half as fast.
    axes.set_xscale("log")
    axes.barh(places, [ratio - 1 for ratio in ratios], left=1, color=colors, height=0.7)
    axes.axvline(1, color="black", lw=1)
    names = [f"{case_of(row).size} {case_of(row).layout}" for row in compared]
    axes.set_yticks(places, names, fontsize=7)
    axes.set_ylim(max(len(compared), 8) - 0.5, -0.5)  # bars no thicker than a line of text
    for place, row in zip(places, compared, strict=True):
        text = f" {row['ratio']:.2f} " + ("" if row["kept"] else "WRONG ")
        side = "right" if row["lost"] else "left"
        axes.text(row["ratio"], place, text, va="center", ha=side, fontsize=7)
    # Room for the numbers beside the bars: a part of the axis, which is longer for a wide range.
    low, high = min(0.5, min(ratios)), max(2.0, max(ratios))
    room = (high / low) ** 0.12
    axes.set_xlim(low / room, high * room)
    ticks = [tick for tick in _RATIO_TICKS if axes.get_xlim()[0] < tick < axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    peer = compared[0]["peer"]
    lost = sum(row["lost"] for row in compared)
    what = "bandwidth over that of a copy" if peer == "copy" else f"speed over {peer}"
    axes.set_title(
        f"{what}: geometric mean {geometric_mean(ratios):.2f}, lost {lost} of {len(compared)}"
        " (red)",
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
    figure, axes = _figure(rows, columns, 4.6 * columns, [3.6] * rows)
    figure.suptitle("tcgemm verify: largest error over |A||B|, against K", fontsize=11)
    for panel in axes.flat[len(modes) :]:
        panel.set_axis_off()
    for (family, mode), panel in zip(modes, axes.flat, strict=False):
        here = [r for r in results if (r["family"], r["mode"]) == (family, mode)]
        _draw_mode(panel, here, mode, f"{mode} ({family})" if family else mode)
    _save(figure, path)


def _draw_mode(axes: Any, results: Sequence[dict[str, Any]], mode: str, title: str) -> None:
    unit, symbol = U32, "2^-24"
    if mode == "fp64":
        unit, symbol = U64, "2^-53"
    elif MODES[mode].accumulate_name == "fp16":
        unit, symbol = U16, "2^-11"
    for data, color in _DATA.items():
        points = [(r["k"], r["error"] / unit) for r in results if r["data"] == data and r["error"]]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", ms=4, color=color, label=data)
    limits = sorted({(r["k"], r["hard"], r["gate"]) for r in results}, key=lambda limit: limit[0])
    lengths = [limit[0] for limit in limits]
    axes.plot(lengths, [limit[1] / unit for limit in limits], "k--", lw=1, label="hard bound")
    if limits[0][2] is not None:
        gates = [limit[2] / unit for limit in limits]
        axes.plot(lengths, gates, ":", color=_DATA["U(0,1)"], lw=1, label="gate for U(0,1)")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel("K", fontsize=8)
    axes.set_ylabel(f"error / |A||B|, in {symbol}", fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
