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
import random
import sys
from collections.abc import Sequence
from typing import Any

import tcgemm
from tcgemm._cli.backends import Work, choose, installed
from tcgemm._cli.bench_report import geometric_mean
from tcgemm._cli.cases import LAYOUTS, Case
from tcgemm._cli.measure import forced_kernel
from tcgemm._cli.operands import Operands, Pool, count_sets
from tcgemm._cli.peers import REFUSALS, library, peers
from tcgemm._cli.report import UsageError, progress
from tcgemm._cli.timing import finalists

# What is drawn, and how often: dtype, precision.
KINDS = [
    ("float16", None),
    ("bfloat16", None),
    ("float32", None),
    ("float32", "tf32"),
    ("float64", None),
    ("int8", None),
    ("float32", "fp16"),
    ("float8_e4m3fn", None),
]
WEIGHTS = [5, 3, 4, 3, 3, 2, 1, 3]
# Elements from the end of a row to the next one, and before the first.
PADDINGS, OFFSETS = [0, 0, 0, 0, 3, 16], [0, 0, 0, 1, 8]
FINALISTS, LOOKS = 7, 5
CASE = ("dtype", "precision", "layout", "m", "n", "k", "batch", "padding", "offset")
TIMES = ("chosen", "split_k", "us", "best", "best_us", "peer", "peer_us")


def draw(count: int, seed: int) -> list[Case]:
    """Sizes log-uniform from 1 to 8192, two in five multiples of 8, one of 64."""
    rng = random.Random(seed)
    cases: list[Case] = []
    while len(cases) < count:
        dtype, precision = rng.choices(KINDS, WEIGHTS)[0]
        unit = rng.choice([1, 1, 8, 8, 64])
        m, n, k = (max(unit, round(2 ** rng.uniform(0, 13)) // unit * unit) for _ in range(3))
        if rng.random() < 0.15:
            m = rng.randint(1, 64)
        batch = rng.choice([1] * 7 + [2, 8, 32, 128, 500])
        most = 3e10 if dtype == "float64" else 1.5e11  # operations
        if 2e5 < 2 * m * n * k * batch < most and batch * (m * k + k * n + m * n) <= 2e8:
            layout = rng.choice(LAYOUTS)
            at = {"padding": rng.choice(PADDINGS), "offset": rng.choice(OFFSETS)}
            cases.append(Case(m, n, k, dtype, layout, precision, batch=batch, **at))
    return cases


def measure(pool: Pool, case: Case, kernels: Sequence[str]) -> dict[str, Any]:
    rivals = [peer for peer in peers(pool.backend, case) if peer.fair and peer.checked]
    sets = count_sets(pool.backend, [case, *(peer.case for peer in rivals)])
    held = [Operands(pool, case, sets)]  # cublasLt has their addresses alone
    facts = library(case).prepare(held[0]).facts
    works: dict[str, Sequence[Work]] = {}
    for kernel in kernels:
        try:
            with forced_kernel(kernel):
                works[kernel] = library(case).prepare(held[0]).kernels
        except tcgemm.TcgemmError:  # it does not compute this product
            continue
    for peer in rivals:
        held.append(Operands(pool, peer.case, sets))
        try:
            prepared = peer.prepare(held[-1])
            prepared.kernels[0]()
        except REFUSALS:
            continue
        works[peer.name] = prepared.kernels
    names = list(works)
    always = [i for i, name in enumerate(names) if name not in kernels or name == facts["kernel"]]
    seconds = finalists(pool.backend, list(works.values()), always, FINALISTS, LOOKS)
    us = {names[place]: 1e6 * value for place, value in seconds.items()}
    ours = {name: value for name, value in us.items() if name in kernels}
    best = min(ours, key=ours.__getitem__)
    theirs = {name: value for name, value in us.items() if name not in kernels}
    peer = min(theirs, key=theirs.__getitem__) if theirs else ""
    return {
        **{name: getattr(case, name) or "" for name in CASE},
        "chosen": facts["kernel"],
        "split_k": facts["split_k"],
        "us": us[facts["kernel"]],
        "best": best,
        "best_us": ours[best],
        "peer": peer,
        "peer_us": theirs.get(peer, ""),
    }


def measure_all(count: int, seed: int) -> list[dict[str, Any]]:
    if not installed("torch"):
        raise UsageError("needs PyTorch, which is not installed (pip install torch)")
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


def ratios(rows: list[dict[str, Any]]) -> list[float]:
    """The best peer's times over ours, where there is one."""
    return [float(row["peer_us"]) / float(row["us"]) for row in rows if row["peer_us"]]


def by_kind(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        name = " ".join(filter(None, (row["dtype"], row["precision"])))
        kinds.setdefault(name, []).append(row)
    return dict(sorted(kinds.items()))


def report(rows: list[dict[str, Any]]) -> None:
    print("chosen kernel's time over the best one's, the worst first:")
    for row in sorted(rows, key=loss, reverse=True)[:25]:
        case = " ".join(str(row[name]) for name in CASE)
        times_us = f"{row['chosen']} {float(row['us']):.1f}, {row['best']} {row['best_us']}"
        print(f"  {loss(row):.2f}  {case}: {times_us}")
    for name, its in by_kind(rows).items():
        print(
            f"{name}: {len(its)} products, loss {geometric_mean([*map(loss, its)]) - 1:.1%}, "
            f"{geometric_mean(ratios(its)):.2f} of the best peer's speed"
        )


def draw_plot(rows: list[dict[str, Any]], path: str) -> None:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, its in by_kind(rows).items():
        for axes, values in ((left, [*map(loss, its)]), (right, ratios(its))):
            percent = [100 * (i + 1) / len(values) for i in range(len(values))]
            axes.plot(percent, sorted(values), label=name)
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
