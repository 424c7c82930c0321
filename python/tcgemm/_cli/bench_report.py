"""Prints the results of a benchmark: every row, then the geometric mean, the worst, the lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from tcgemm._cli.cases import Case
from tcgemm._cli.report import (
    BAD,
    Table,
    duration,
    fraction,
    heading,
    rate,
)

_LOST = "yellow"

_LEGEND = """
time, speed  of the kernels alone, ours; then the peer's speed
ratio        the peer's time over ours, median and quartiles of the rounds: above 1 we are faster
call         time from Python, with checks and launch; call ratio: the peer's over ours
error/bound  largest error of an element over what its precision promises (at most 1)"""

Row = dict[str, Any]


def case_of(row: Row) -> Case:
    return Case(**row["case"])


def groups(report: dict[str, Any]) -> dict[str, list[Row]]:
    """Rows by the title of their group, in the order in which they came."""
    found: dict[str, list[Row]] = {}
    for row in report["rows"]:
        found.setdefault(row["case"].get("group", ""), []).append(row)
    return found


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def where(report: dict[str, Any]) -> str:
    """One line: the device, and what is known of its software."""
    facts = report["machine"]
    if "gpu" not in facts:
        cpu = facts["cpu"]
        return f"{cpu['name']}, {cpu['threads']} threads"
    parts = [facts["gpu"]["name"]]
    if facts.get("driver"):
        parts.append(f"driver {facts['driver']}")
    if facts["build"].get("cuda_version"):
        parts.append(f"tcgemm built with CUDA {facts['build']['cuda_version']}")
    if facts.get("cublas"):
        parts.append(f"cuBLAS {facts['cublas']}")
    if facts["versions"].get(report["framework"]):
        parts.append(f"{report['framework']} {facts['versions'][report['framework']]}")
    return ", ".join(parts)


def print_report(report: dict[str, Any]) -> None:
    heading(f"tcgemm bench: {report['suite']}")
    print(where(report))
    cpu = report["machine"]["cpu"]
    if report["device"] == "cpu" and (cpu.get("load") or 0) > 0.5 * cpu["threads"]:
        print(f"the machine was busy ({cpu['load']:.1f} processes): take the times with caution")
    observed = report["machine"].get("observed")
    if observed and observed.get("clocks.sm") and observed.get("power.draw"):
        clock, power = observed["clocks.sm"], observed["power.draw"]
        print(
            f"SM clock {clock[0]:.0f} to {clock[2]:.0f} MHz (median {clock[1]:.0f}),"
            f" power {power[0]:.0f} to {power[2]:.0f} W (median {power[1]:.0f})"
        )
    for title, rows in groups(report).items():
        _print_group(title, rows)
    if any("ratio" in row for row in report["rows"]):
        print(_LEGEND)
    _print_summary(report["rows"])


def _print_group(title: str, rows: Sequence[Row]) -> None:
    done = [row for row in rows if "not_run" not in row]
    if done:
        _print_products(title, done)
    else:
        print(f"\n{title}")
    for row in rows:
        if "not_run" in row:
            print(f"not run: {case_of(row).size} {case_of(row).layout}: {row['not_run']}")


def _print_products(title: str, rows: Sequence[Row]) -> None:
    fair = next((row["peer"] for row in rows if "peer" in row), None)
    others = list(dict.fromkeys(name for row in rows for name in row["peers"] if name != fair))
    columns = ["size", "<op", "<kernel", "time", "speed"]
    if fair is not None:
        columns += [fair, "ratio", "quartiles", "call", "call ratio"]
    else:
        columns += ["call"]
    columns += [f"/{name}" for name in others]
    table = Table([*columns, "error/bound", "<"], f"\n{title}")
    for row in rows:
        case, ours = case_of(row), row["ours"]
        kernel_s, call_s = ours["kernel_us"][1] * 1e-6, ours["call_us"][1] * 1e-6
        unit = case.mode.unit
        cells = [case.size, case.layout, row["kernel"], duration(kernel_s)]
        cells.append(rate(case.operations, kernel_s, unit))
        peer = row["peers"].get(fair)
        if fair is not None and peer is not None:
            low, middle, high = peer["ratio"]
            cells.append(rate(case.operations, peer["kernel_us"][1] * 1e-6, unit))
            cells += [f"{middle:.2f}", f"{low:.2f}-{high:.2f}", duration(call_s)]
            cells.append(f"{peer['call_ratio'][1]:.2f}")
        elif fair is not None:
            cells += ["-", "-", "-", duration(call_s), "-"]
        else:
            cells.append(duration(call_s))
        for name in others:
            other = row["peers"].get(name)
            cells.append(f"{other['ratio'][1]:.2f}" if other else "-")
        note, style = _verdict(row)
        table.add(*cells, fraction(row["error_over_bound"]), note, style=style)
    table.print()
    hows = {
        name: peer["how"] for row in reversed(rows) for name, peer in reversed(row["peers"].items())
    }
    for name, how in reversed(hows.items()):
        print(f"{name}: {how}")


def _verdict(row: Row) -> tuple[str, str]:
    if not row["kept"]:
        return "WRONG", BAD
    return ("lost", _LOST) if row.get("lost") else ("", "")


def _print_summary(rows: Sequence[Row]) -> None:
    done = [row for row in rows if "not_run" not in row]
    products = [row for row in done if "ratio" in row]
    print(f"\n{len(done)} rows measured, {len(rows) - len(done)} not run")
    for name in dict.fromkeys(name for row in products for name in row["peers"]):
        compared = [row for row in products if name in row["peers"]]
        _print_comparison(name, "all rows", compared)
        titles = list(dict.fromkeys(case_of(row).group for row in compared))
        for title in titles if len(titles) > 1 else []:
            _print_comparison(name, title, [row for row in compared if case_of(row).group == title])
        lost = sorted(
            (row for row in compared if _ratio(row, name) < 1), key=partial(_ratio, peer=name)
        )
        if lost:
            print(f"  lost to {name}, the worst first:")
        for row in lost:
            case = case_of(row)
            print(f"    {_ratio(row, name):.2f}  {case.size} {case.layout}  {case.group}")
    wrong = [row for row in done if not row["kept"]]
    for row in wrong:
        print(f"WRONG RESULT: {case_of(row).size} {case_of(row).layout} {row['kernel']}")
    if done and not wrong:
        print("every timed result is within its bound")


def _ratio(row: Row, peer: str) -> float:
    return float(row["peers"][peer]["ratio"][1])


def _print_comparison(peer: str, title: str, rows: Sequence[Row]) -> None:
    ratios = [_ratio(row, peer) for row in rows]
    lost = sum(ratio < 1 for ratio in ratios)
    indent = "" if title == "all rows" else "  "
    print(
        f"{indent}against {peer}, {title}: geometric mean {geometric_mean(ratios):.2f}, minimum"
        f" {min(ratios):.2f}, maximum {max(ratios):.2f}, lost {lost} of {len(ratios)}"
    )
