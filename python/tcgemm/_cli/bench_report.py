"""Prints the results of a benchmark: every row, then the geometric mean, the worst, the lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tcgemm._cli.cases import Case
from tcgemm._cli.report import (
    BAD,
    Table,
    digits,
    duration,
    fraction,
    heading,
    rate,
)

_LOST = "yellow"

_LEGEND = """
time, speed  of the kernels alone, ours; GB/s: A, B, C read and D written once, in that time
best peer    the fastest of those who do equal work, and its speed
ratio        its time over ours, median and quartiles of the rounds: above 1 we are faster
call         time from Python, with checks and launch; call ratio: the peer's over ours
/NAME        the same ratio against each of the others
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
    framework = report.get("framework")  # verify's older results do not name it
    if facts["versions"].get(framework):
        parts.append(f"{framework} {facts['versions'][framework]}")
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
    _print_summary(report)


def _print_group(title: str, rows: Sequence[Row]) -> None:
    done = [row for row in rows if "not_run" not in row]
    if done:
        _print_products(title, done)
    else:
        print(f"\n{title}")
    for row in rows:
        if "not_run" in row:
            print(f"not run: {case_of(row).size} {case_of(row).form}: {row['not_run']}")


def _print_products(title: str, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    others = names if len(names) > 1 else []
    columns = ["size", "<op", "<kernel", "time", "speed", "GB/s"]
    if names:
        columns += ["<best peer", "its speed", "ratio", "quartiles", "call", "call ratio"]
    else:
        columns += ["call"]
    columns += [f"/{name}" for name in others]
    table = Table([*columns, "error/bound", "<"], f"\n{title}")
    for row in rows:
        case, ours = case_of(row), row["ours"]
        kernel_s, call_s = ours["kernel_us"][1] * 1e-6, ours["call_us"][1] * 1e-6
        cells = [case.size, case.form, row["kernel"], duration(kernel_s)]
        cells += [_speed(case, ours), digits(case.bytes / kernel_s * 1e-9)]
        if "peer" in row:
            best = row["peers"][row["peer"]]
            low, middle, high = best["ratio"]
            called = [peer for peer in row["peers"].values() if "call_ratio" in peer]
            cells += [row["peer"], _speed(case.peer_case or case, best)]
            cells += [f"{middle:.2f}", f"{low:.2f}-{high:.2f}", duration(call_s)]
            cells.append(f"{called[0]['call_ratio'][1]:.2f}" if called else "-")
        elif names:
            cells += ["-", "-", "-", "-", duration(call_s), "-"]
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
    refusals: dict[str, list[str]] = {}
    for row in rows:
        for name, reason in row["peers_refused"].items():
            refusals.setdefault(f"{name}: {reason}", []).append(case_of(row).size)
    for reason, sizes in refusals.items():
        print(f"refused by {reason} ({', '.join(dict.fromkeys(sizes))})")


def _speed(case: Case, side: Row) -> str:
    return rate(case.operations, side["kernel_us"][1] * 1e-6, case.mode.unit)


def _verdict(row: Row) -> tuple[str, str]:
    if not row["kept"]:
        return "WRONG", BAD
    return ("lost", _LOST) if row.get("lost") else ("", "")


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """Of all rows and of each group, for the result file: the ratios to the best peer."""
    rows = report["rows"]
    done = [row for row in rows if "not_run" not in row]
    lost = sorted((row for row in done if row.get("lost")), key=_ratio)
    return {
        "measured": len(done),
        "not_run": len(rows) - len(done),
        **_figures(done),
        "groups": {title: _figures(some) for title, some in groups(report).items()},
        "lost": [_line(row) for row in lost],
        "wrong": [_line(row) for row in done if not row["kept"]],
    }


def _figures(rows: Sequence[Row], peer: str | None = None) -> dict[str, Any]:
    """Of the rows that were compared, with the best peer or with the one that is named."""
    ratios = [
        _ratio(row, peer) for row in rows if (peer or row.get("peer")) in row.get("peers", ())
    ]
    return {
        "compared": len(ratios),
        "geometric_mean": geometric_mean(ratios) if ratios else None,
        "minimum": min(ratios, default=None),
        "maximum": max(ratios, default=None),
        "lost_count": sum(ratio < 1 for ratio in ratios),
    }


def _ratio(row: Row, peer: str | None = None) -> float:
    return float(row["peers"][peer or row["peer"]]["ratio"][1])


def _line(row: Row) -> str:
    case = case_of(row)
    against = f"{_ratio(row):.2f} to {row['peer']}  " if "peer" in row else ""
    return f"{against}{case.size} {case.form}  {row['kernel']}  {case.group}"


def _print_summary(report: dict[str, Any]) -> None:
    facts, rows = summary(report), report["rows"]
    done = [row for row in rows if "not_run" not in row]
    print(f"\n{facts['measured']} rows measured, {facts['not_run']} not run")
    if facts["compared"]:
        print(_sentence("against the best peer", facts))
        titles = facts["groups"] if len(facts["groups"]) > 1 else {}
        for title, figures in titles.items():
            if figures["compared"]:
                print("  " + _sentence(title, figures))
        names = list(dict.fromkeys(name for row in done for name in row["peers"]))
        for name in names if len(names) > 1 else []:
            print("  " + _sentence(f"against {name}", _figures(done, name)))
    if facts["lost"]:
        print("  lost to the best peer, the worst first:")
    for line in facts["lost"]:
        print(f"    {line}")
    for line in facts["wrong"]:
        print(f"WRONG RESULT: {line}")
    if done and not facts["wrong"]:
        print("every timed result is within its bound")


def _sentence(subject: str, figures: dict[str, Any]) -> str:
    return (
        f"{subject}: geometric mean {figures['geometric_mean']:.2f}, minimum"
        f" {figures['minimum']:.2f}, maximum {figures['maximum']:.2f}, lost"
        f" {figures['lost_count']} of {figures['compared']}"
    )
