#!/usr/bin/env python3
"""What a product costs the calling thread: frameworks beside tcgemm, in microseconds a call.

    python benchmarks/host_cost.py [--frameworks torch,cupy,jax] [--rounds 60] [--json FILE]

The product is so small that the GPU keeps up, and no loop is longer than a stream's queue: no call
waits. Rows take turns; the figure is the median over the rounds. JAX has no `out=`, and tcgemm
waits for its results, so that its rows are whole round trips.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import tcgemm
from tcgemm._cli.cases import parse_names
from tcgemm._cli.report import UsageError

SIZE = 64
Rows = dict[str, Callable[[], Any]]


def tcgemm_rows(a: Any, b: Any, out: Any | None, packed: Any) -> Rows:
    """`packed`: operands that a plan with a workspace rounds to FP16."""
    rows: Rows = {"tcgemm.matmul": lambda: tcgemm.matmul(a, b)}
    if out is not None:
        bound, with_workspace = (
            tcgemm.plan(a, b, out=out),
            tcgemm.plan(packed, packed, out=out, precision="fp16", out_dtype="float16"),
        )
        rows |= {
            "tcgemm.matmul out=": lambda: tcgemm.matmul(a, b, out=out),
            "tcgemm.gemm out=": lambda: tcgemm.gemm(a, b, out=out),
            "Plan.execute()": bound.execute,
            "Plan.execute(a, b, out=)": lambda: bound.execute(a, b, out=out),
            "Plan.execute() that packs": with_workspace.execute,
        }
    return rows


def torch_rows() -> tuple[Rows, Callable[[], Any]]:
    import torch

    a, b, out = (torch.randn(SIZE, SIZE, device="cuda").half() for _ in range(3))
    rows: Rows = {
        "torch.matmul": lambda: torch.matmul(a, b),
        "torch.matmul out=": lambda: torch.matmul(a, b, out=out),
    }
    return rows | tcgemm_rows(a, b, out, a.float()), torch.cuda.synchronize


def cupy_rows() -> tuple[Rows, Callable[[], Any]]:
    import cupy

    a, b, out = (cupy.random.rand(SIZE, SIZE).astype("float16") for _ in range(3))
    rows: Rows = {
        "cupy.matmul": lambda: cupy.matmul(a, b),
        "cupy.matmul out=": lambda: cupy.matmul(a, b, out=out),
    }
    return rows | tcgemm_rows(a, b, out, a.astype("float32")), cupy.cuda.Device().synchronize


def jax_rows() -> tuple[Rows, Callable[[], Any]]:
    import jax

    a = jax.random.normal(jax.random.key(0), (SIZE, SIZE)).astype("float16")
    compiled = jax.jit(jax.numpy.matmul)
    rows: Rows = {
        "jax.numpy.matmul": lambda: jax.numpy.matmul(a, a),
        "jax.jit(matmul)": lambda: compiled(a, a),
        "jax.jit(matmul), waited for": lambda: compiled(a, a).block_until_ready(),
    }
    return rows | tcgemm_rows(a, a, None, None), lambda: compiled(a, a).block_until_ready()


FRAMEWORKS = {"torch": torch_rows, "cupy": cupy_rows, "jax": jax_rows}


def measure(
    rows: Rows, synchronize: Callable[[], Any], rounds: int, calls: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(rounds + 2):  # the first two warm up
        for name, call in rows.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            spent = time.perf_counter() - start
            if turn >= 2:
                times[name].append(1e6 * spent / calls)
        synchronize()
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--calls", type=int, default=256, help="in a row, between waits")
    parser.add_argument("--json", help="write the figures here too")
    options = parser.parse_args()
    try:
        frameworks = parse_names(options.frameworks, "--frameworks", FRAMEWORKS)
    except UsageError as error:
        parser.error(str(error))
    if not tcgemm.devices():
        parser.error(f"needs a GPU ({tcgemm.cuda_unavailable_reason()})")
    report: dict[str, Any] = {"build": tcgemm.build_info(), "python": sys.version.split()[0]}
    report |= {"gpu": tcgemm.devices()[0]["name"], "unit": "us a call", "calls": options.calls}
    report["frameworks"] = {}
    for framework in frameworks:
        try:
            rows, synchronize = FRAMEWORKS[framework]()
        except ImportError as error:
            print(f"{framework}: {error}", file=sys.stderr)
            continue
        times = measure(rows, synchronize, options.rounds, options.calls)
        version = sys.modules[framework].__version__
        print(f"\n{framework} {version}: us a call (median, least)")
        for name, values in times.items():
            print(f"  {name:32}{statistics.median(values):8.2f}{min(values):8.2f}")
        report["frameworks"][framework] = {
            "version": version,
            "rows": {
                name: {"median": statistics.median(values), "min": min(values)}
                for name, values in times.items()
            },
        }
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
