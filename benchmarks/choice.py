#!/usr/bin/env python3
"""What the choice of a kernel loses: products drawn at random, by every kernel that takes them.

    python benchmarks/choice.py [--products 420] [--seed 77] [--tsv FILE] [--plot FILE.png]
    python benchmarks/choice.py --from-tsv FILE [--plot FILE.png]

Needs a GPU and PyTorch. Each kernel is forced in turn, with the schedule that it gives itself and
with its packing; all are looked at once, the best seven, the chosen one and the peers again five
times in turns. Times are of launches in a CUDA graph, in microseconds. The loss is the chosen
kernel's time over the best one's; cost models are to be fitted to what loses.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tcgemm
from tcgemm._cli.backends import Backend, Work, choose
from tcgemm._cli.cases import LAYOUTS, Case
from tcgemm._cli.operands import Operands, Pool, count_sets
from tcgemm._cli.peers import library, peers
from tcgemm._cli.report import UsageError, progress
from tcgemm._cli.timing import glance

# What is drawn, and how often: dtype, precision.
KINDS = [
    ("float16", None),
    ("bfloat16", None),
    ("float32", None),
    ("float32", "tf32"),
    ("float64", None),
    ("int8", None),
    ("float32", "fp16"),
]
WEIGHTS = [5, 3, 4, 3, 3, 2, 1]
FINALISTS, LOOKS = 7, 5
CASE = ("dtype", "precision", "layout", "m", "n", "k", "batch")
TIMES = ("chosen", "split_k", "us", "best", "best_us", "peer", "peer_us")


def draw(count: int, seed: int) -> list[Case]:
    """Sizes log-uniform from 1 to 8192, two in five multiples of 8, one of 64."""
    rng = random.Random(seed)
    cases: list[Case] = []
    while len(cases) < count:
        dtype, precision = rng.choices(KINDS, WEIGHTS)[0]
        unit = rng.choice([1, 1, 8, 8, 64])
        m, n, k = (
            max(unit, max(1, round(2 ** rng.uniform(0, 13))) // unit * unit) for _ in range(3)
        )
        if rng.random() < 0.15:
            m = rng.randint(1, 64)
        batch = rng.choice([1] * 7 + [2, 8, 32, 128, 500])
        most = 3e10 if dtype == "float64" else 1.5e11  # operations
        if 2e5 < 2 * m * n * k * batch < most and batch * (m * k + k * n + m * n) <= 2e8:
            layout = rng.choice(list(LAYOUTS))
            cases.append(Case(m, n, k, dtype, layout, precision, batch=batch))
    return cases


@contextmanager
def forced(kernel: str) -> Iterator[None]:
    os.environ["TCGEMM_FORCE_KERNEL"] = kernel
    try:
        yield
    finally:
        del os.environ["TCGEMM_FORCE_KERNEL"]


def measure(pool: Pool, case: Case, kernels: Sequence[str]) -> dict[str, Any]:
    rivals = [peer for peer in peers(pool.backend, case) if peer.fair and peer.checked]
    sets = count_sets(pool.backend, [case, *(peer.case for peer in rivals)])
    held = [Operands(pool, case, sets)]  # cublasLt has their addresses alone
    chosen = library(case).prepare(held[0])
    works = {"chosen": chosen.kernels}
    for kernel in kernels:
        try:
            with forced(kernel):
                works[kernel] = library(case).prepare(held[0]).kernels
        except tcgemm.TcgemmError:  # it does not compute this product
            continue
    for peer in rivals:
        held.append(Operands(pool, peer.case, sets))
        try:
            prepared = peer.prepare(held[-1])
            prepared.kernels[0]()
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            continue
        works[f"peer:{peer.name}"] = prepared.kernels
    us = times(pool.backend, works, chosen.facts["kernel"])
    ours = {name: value for name, value in us.items() if name in kernels}
    best = min(ours, key=ours.__getitem__)
    theirs = {name[5:]: value for name, value in us.items() if name.startswith("peer:")}
    peer = min(theirs, key=theirs.__getitem__) if theirs else ""
    return {
        **{name: getattr(case, name) or "" for name in CASE},
        "chosen": chosen.facts["kernel"],
        "split_k": chosen.facts["split_k"],
        "us": min(us["chosen"], us[chosen.facts["kernel"]]),
        "best": best,
        "best_us": ours[best],
        "peer": peer,
        "peer_us": theirs.get(peer, ""),
    }


def times(backend: Backend, works: dict[str, Sequence[Work]], chosen: str) -> dict[str, float]:
    """Microseconds, of the finalists alone."""
    once = {name: glance(backend, work) for name, work in works.items()}
    finalists = sorted(once, key=once.__getitem__)[:FINALISTS]
    always = [name for name in works if name in ("chosen", chosen) or name.startswith("peer:")]
    finalists += [name for name in always if name not in finalists]
    looks: dict[str, list[float]] = {name: [] for name in finalists}
    for turn in range(LOOKS):
        for name in finalists if turn % 2 else reversed(finalists):
            looks[name].append(1e6 * glance(backend, works[name]))
    return {name: statistics.median(values) for name, values in looks.items()}


def measure_all(count: int, seed: int) -> list[dict[str, Any]]:
    backend = choose("torch", "cuda")
    pool = Pool(backend)
    kernels = [row["name"] for row in tcgemm.kernels() if row["family"] != "host"]
    cases = draw(count, seed)
    rows = []
    with progress(len(cases)) as bar:
        for case in cases:
            bar.step(f"{case.dtype}, {case.size} {case.layout}")
            rows.append(measure(pool, case, kernels))
    return rows


def loss(row: dict[str, Any]) -> float:
    return max(1.0, float(row["us"]) / float(row["best_us"]))


def kind(row: dict[str, Any]) -> str:
    return " ".join(filter(None, (row["dtype"], row["precision"])))


def report(rows: list[dict[str, Any]]) -> None:
    print("chosen kernel's time over the best one's, the worst first:")
    for row in sorted(rows, key=loss, reverse=True)[:25]:
        case = " ".join(str(row[name]) for name in CASE)
        times_us = f"{row['chosen']} {float(row['us']):.1f}, {row['best']} {row['best_us']}"
        print(f"  {loss(row):.2f}  {case}: {times_us}")
    for name in sorted({kind(row) for row in rows}):
        of_kind = [row for row in rows if kind(row) == name]
        ratios = [float(row["peer_us"]) / float(row["us"]) for row in of_kind if row["peer_us"]]
        print(
            f"{name}: {len(of_kind)} products, loss {mean(map(loss, of_kind)) - 1:.1%}, "
            f"{mean(ratios):.2f} of the best peer's speed"
        )


def mean(values: Any) -> float:
    return statistics.geometric_mean([*values] or [math.nan])


def draw_plot(rows: list[dict[str, Any]], path: str) -> None:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name in sorted({kind(row) for row in rows}):
        of_kind = [row for row in rows if kind(row) == name]
        losses = sorted(map(loss, of_kind))
        left.plot([100 * (i + 1) / len(losses) for i in range(len(losses))], losses, label=name)
        ratios = sorted(
            float(row["peer_us"]) / float(row["us"]) for row in of_kind if row["peer_us"]
        )
        right.plot([100 * (i + 1) / len(ratios) for i in range(len(ratios))], ratios, label=name)
    left.set(title="Chosen kernel's time over the best kernel's", ylim=(0.99, 2))
    right.set(title="Best peer's time over ours", yscale="log", ylim=(0.25, 32))
    right.axhline(1, color="gray", linewidth=0.8)
    right.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16, 32], labels=["¼", "½", *"1248", "16", "32"])
    for axes in (left, right):
        axes.set_xlabel("products, % (each curve sorted)")
        axes.grid(alpha=0.3)
    right.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--products", type=int, default=420)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--tsv", help="write the products here")
    parser.add_argument("--from-tsv", help="of an earlier run: measure nothing")
    parser.add_argument("--plot", metavar="FILE.png", help="draw losses and ratios (matplotlib)")
    options = parser.parse_args()
    if options.from_tsv:
        with open(options.from_tsv) as file:
            rows: list[dict[str, Any]] = list(csv.DictReader(file, delimiter="\t"))
    else:
        try:
            rows = measure_all(options.products, options.seed)
        except UsageError as error:
            parser.error(str(error))
    if options.tsv:
        with open(options.tsv, "w") as file:
            writer = csv.DictWriter(file, [*CASE, *TIMES], delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {
                    key: f"{value:.2f}" if isinstance(value, float) else value
                    for key, value in row.items()
                }
                for row in rows
            )
    report(rows)
    if options.plot:
        draw_plot(rows, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
