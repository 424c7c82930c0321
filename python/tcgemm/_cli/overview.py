"""Draws several result files into one picture: for each suite its speeds and all of its ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcgemm._cli.bench_report import Row, case_of, groups, summary, where
from tcgemm._cli.plot import (
    AXES,
    EQUAL_WORK,
    LOST,
    OURS,
    WRONG,
    is_memory_bound,
    make_figure,
    ratio_ticks,
    save,
    set_speed_axis,
    size_on,
    speed,
    varying,
)
from tcgemm._cli.report import UsageError

_PEER = "#7f7f7f"
_HEIGHT = 2.7  # inches of a suite
_LETTERS = 90  # of a group's name that fit into the width of a panel
_SIZES = tuple(1 << power for power in range(21))


def draw_overview(reports: Sequence[dict[str, Any]], path: str) -> None:
    """A line of panels for each suite that was compared: speed on the left, ratios on the right."""
    compared = [
        (report, rows)
        for report in reports
        if (rows := [row for some in groups(report).values() for row in some if "ratio" in row])
    ]
    if not compared:
        raise UsageError("--plot: no row was compared with a peer, so there is nothing to draw")
    figure, axes = make_figure(len(compared), 2, 12, [_HEIGHT] * len(compared))
    places = dict.fromkeys(where(report) for report, _ in compared)
    key = "blue: ours, faster than the best peer; red: ours, slower; grey: the best peer"
    figure.suptitle("\n".join(["tcgemm bench", *places, key]), fontsize=10)
    for (report, rows), (left, right) in zip(compared, axes, strict=True):
        _draw_speeds(left, report, rows)
        _draw_ratios(right, report, rows)
    save(figure, path)


def _draw_speeds(axes: Any, report: dict[str, Any], rows: Sequence[Row]) -> None:
    """Ours and the best peer of each row, joined by a line in the colour of who won."""
    memory_bound = is_memory_bound(rows)
    axis = varying(rows) if memory_bound else EQUAL_WORK
    sizes = [size_on(axis, row) for row in rows]
    for row, size in zip(rows, _apart(sizes), strict=True):
        ours = speed(row, row["ours"], memory_bound)
        theirs = speed(row, row["peers"][row["peer"]], memory_bound)
        axes.plot([size, size], [theirs, ours], color=_color(row), lw=1, alpha=0.6, zorder=1)
        axes.plot(size, theirs, "o", ms=3.5, color=_PEER, zorder=2)
        axes.plot(size, ours, "o", ms=3.5, color=_color(row), zorder=3)
    axes.set_xscale("log", base=2)
    ticks = [size for size in _SIZES if min(sizes) * 0.9 <= size <= max(sizes) * 1.1]
    axes.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=8)
    axes.minorticks_off()
    set_speed_axis(axes, rows, memory_bound)
    axes.set_xlabel(AXES.get(axis, axis.upper()), fontsize=8)
    title = f"{report['suite']}: {report['description']}" if report["description"] else "tcgemm"
    axes.set_title(title, fontsize=9, loc="left", fontweight="bold")


def _apart(sizes: Sequence[float]) -> list[float]:
    """The same sizes, with those that would hide each other moved a little to either side."""
    rounded = [round(size) for size in sizes]
    moved = []
    for place, size in enumerate(sizes):
        before, all_ = rounded[:place].count(rounded[place]), rounded.count(rounded[place])
        moved.append(size * 2 ** (0.07 * (before - (all_ - 1) / 2)))
    return moved


def _color(row: Row) -> str:
    return WRONG if not row["kept"] else LOST if row["lost"] else OURS


def _draw_ratios(axes: Any, report: dict[str, Any], rows: Sequence[Row]) -> None:
    """A bar for each row, in the order of the suite; the groups are told apart and named."""
    ratios = [row["ratio"] for row in rows]
    axes.set_yscale("log")
    axes.bar(
        range(len(rows)), [ratio - 1 for ratio in ratios], bottom=1, width=0.8,
        color=[_color(row) for row in rows],
    )  # fmt: skip
    axes.axhline(1, color="black", lw=1)
    low, high = min(0.8, min(ratios)), max(1.25, max(ratios))
    room = (high / low) ** 0.14
    axes.set_ylim(low / room, high * room**3)  # above: the names of the groups
    start = 0
    titles = [case_of(row).group for row in rows]
    for title in dict.fromkeys(titles):
        count = titles.count(title)
        if start:
            axes.axvline(start - 0.5, color="black", lw=0.5, alpha=0.4)
        letters = _LETTERS * count / len(rows)
        narrow = letters < max(map(len, title.split()))
        axes.text(
            start - 0.4, 0.98, title if narrow else _wrapped(title, letters), fontsize=7,
            va="top", rotation=90 if narrow else 0, transform=axes.get_xaxis_transform(),
        )  # fmt: skip
        start += count
    worst = min(range(len(rows)), key=ratios.__getitem__)
    axes.annotate(
        f"{ratios[worst]:.2f}  {case_of(rows[worst]).size} {case_of(rows[worst]).form}",
        (worst, min(1, ratios[worst])), xytext=(0, -9), textcoords="offset points", fontsize=8,
        ha="left" if worst < len(rows) / 2 else "right",
        bbox={"color": "white", "pad": 0.5},
    )  # fmt: skip
    facts = summary(report)
    axes.axhline(facts["geometric_mean"], color=OURS, lw=1, ls="--")
    best = {row["peer"] for row in rows}
    against = "the best peer" if len(best) > 1 else best.pop()
    missing = f", {facts['not_run']} not run" if facts["not_run"] else ""
    axes.set_title(
        f"speed over {against}: geometric mean {facts['geometric_mean']:.2f} (dashed), lost"
        f" {facts['lost_count']} of {facts['compared']} (red){missing}",
        fontsize=9,
        loc="left",
    )
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_xticks([])
    ticks = ratio_ticks(low / room, high * room)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.grid(axis="y", alpha=0.3)


def _wrapped(title: str, letters: float) -> str:
    lines = [""]
    for word in title.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > letters:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
