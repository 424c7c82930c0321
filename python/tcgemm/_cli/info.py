"""`python -m tcgemm info`: what is installed, what it can run here, and whether it computes."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

import numpy as np

import tcgemm
from tcgemm._cli import machine
from tcgemm._cli.backends import NumpyBackend
from tcgemm._cli.modes import MODES, Mode
from tcgemm._cli.report import BAD, Table, UsageError, heading, number
from tcgemm._info import KNOWN_GPUS, OLDEST_GPU, TOO_OLD

_SHAPE = (33, 17, 29)  # ragged: no dimension is a multiple of a tile
# M, N, K of the products that `--arch` chooses kernels for: small, large, odd, few rows, long K.
_EXAMPLES = {
    "512 cubed": (512, 512, 512),
    "4096 cubed": (4096, 4096, 4096),
    "4097 cubed": (4097, 4097, 4097),
    "16 x 4096 x 4096": (16, 4096, 4096),
    "128 x 128 x 65536": (128, 128, 65536),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as one JSON object")
    form.add_argument(
        "--support", action="store_true", help="print which family computes which mode, as Markdown"
    )
    form.add_argument(
        "--arch",
        type=_compute_capability,
        metavar="CC",
        help="print the kernels that a GPU of this compute capability gets, such as 75 or 8.6;"
        " it need not be here",
    )
    parser.add_argument(
        "--sms",
        type=number(
            "--sms", int, lambda count: 1 <= count < 2**31, "1 to 2^31 - 1, a whole number"
        ),
        metavar="N",
        help="with --arch: number of its multiprocessors (default: of a well-known card)",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.sms is not None and not arguments.arch:
        raise UsageError(f"--sms {arguments.sms}: needs --arch, which names the GPU; give both")
    if arguments.arch and arguments.arch < OLDEST_GPU:
        cc = ".".join(map(str, arguments.arch))
        raise UsageError(f"--arch {cc}: {TOO_OLD}")
    if arguments.support:
        print("\n".join(_support_table(support(), "").markdown()))
        return 0
    if arguments.arch:
        _print_choices(arguments.arch, arguments.sms)
        return 0
    facts = collect()
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        _print(facts)
    return 0 if all(test["ok"] for test in facts["self_test"]) else 1


def _compute_capability(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(?:sm_)?(\d{1,2})\.?(\d)a?", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a compute capability such as 75 or 8.6"
        )
    return int(match[1]), int(match[2])


def _print_choices(cc: tuple[int, int], sm_count: int | None) -> None:
    """What a GPU gets that need not be here: a row for each mode, a column for each example."""
    choices = [tcgemm.supports(cc, shape, sm_count) for shape in _EXAMPLES.values()]
    title = f"Kernels of compute capability {cc[0]}.{cc[1]}, by M x N x K; operands are row-major"
    table = Table(
        ["<precision", "<sums", "<A, B", "<D", *(f"<{name}" for name in _EXAMPLES)], title
    )
    for rows in zip(*choices, strict=True):
        mode = [rows[0][key] for key in ("precision", "accumulate", "operands", "out")]
        table.add(*mode, *(row["kernel"] or "-" for row in rows))
    table.print()
    if cc not in KNOWN_GPUS:
        print(f"No GPU of {cc[0]}.{cc[1]} is known; the figures of the next older one are used.")
    for reason in dict.fromkeys(row["reason"] for rows in choices for row in rows if row["reason"]):
        print(f"-: {reason}")


def collect() -> dict[str, Any]:
    return {
        "versions": machine.versions(),
        "build": tcgemm.build_info(),
        "cpu": {"name": machine.cpu_name(), "threads": machine.cpu_count()},
        "driver": machine.driver_version(),
        "devices": tcgemm.devices(),
        "no_gpu_because": tcgemm.cuda_unavailable_reason(),
        "kernels": tcgemm.kernels(),
        "support": support(),
        "environment": machine.environment(),
        "self_test": [self_test(name, mode) for name, mode in MODES.items()],
    }


def support() -> dict[str, list[dict[str, str]]]:
    """tcgemm.supports() for the CPU and for each GPU this build or this machine has code for."""
    built = re.findall(r"(\d+)(\d)", tcgemm.build_info()["architectures"])
    here = (device["compute_capability"] for device in tcgemm.devices())
    capabilities = {(int(major), int(minor)) for major, minor in (*built, *here)}
    if (8, 0) in capabilities:  # code for it runs on 8.6 as well, of which there are many cards
        capabilities.add((8, 6))
    return {
        "CPU": tcgemm.supports(None),
        **{f"{cc[0]}.{cc[1]}": tcgemm.supports(cc) for cc in sorted(capabilities)},
    }


def self_test(name: str, mode: Mode) -> dict[str, Any]:
    """A small product of whole numbers, which every mode has to give exactly, rounded once."""
    backend = NumpyBackend()
    m, n, k = _SHAPE
    rng = np.random.default_rng(0)
    whole_a = rng.integers(-4, 5, (m, k))
    whole_b = rng.integers(-4, 5, (k, n))
    outcome: dict[str, Any] = {"mode": name, "ok": False, "kernel": None, "message": ""}
    if not backend.has_dtype(mode.dtype):
        return {**outcome, "ok": True, "message": f"not run: {backend.missing(mode.dtype)}"}
    try:
        a = backend.array(whole_a, mode.dtype)
        b = backend.array(whole_b, mode.dtype)
        out = backend.empty((m, n), mode.result_dtype)
        backend.poison(out)
        plan = tcgemm.plan(a, b, out=out, **mode.arguments)
        outcome["kernel"] = plan.kernel
        plan.execute()
        expected = backend.array((whole_a @ whole_b).astype(np.float64), mode.result_dtype)
        wrong = int(np.count_nonzero(backend.float64(out) != backend.float64(expected)))
    except Exception as error:  # a diagnosis goes on, whatever one mode does
        return {**outcome, "message": f"{type(error).__name__}: {error}"}
    if wrong:
        return {**outcome, "message": f"{wrong} of {m * n} elements are wrong"}
    return {**outcome, "ok": True}


def _print(facts: dict[str, Any]) -> None:
    heading(f"tcgemm {facts['versions']['tcgemm']}")
    _print_pairs(_summary(facts))
    _print_devices(facts["devices"], facts["cpu"])
    # Before the kernels, of which a build for GPUs has more than a screen.
    tests = Table(["<mode", "<result", "<kernel", "<message"], "\nSelf-test")
    above = ""
    for test in facts["self_test"]:
        message = "as above" if test["message"] and test["message"] == above else test["message"]
        above = test["message"]
        passed = ("ok" if test["kernel"] else "skipped") if test["ok"] else "FAILED"
        style = "" if test["ok"] else BAD
        tests.add(test["mode"], passed, test["kernel"] or "-", message, style=style)
    tests.print()
    kernels = Table(["<family", "<kernel", "<tile", "<architectures"], "\nKernels, by preference")
    for kernel in facts["kernels"]:
        cells = [str(kernel[key] or "-") for key in ("family", "name", "tile", "architectures")]
        kernels.add(*cells)
    kernels.print()
    title = "\nFamily that computes it, on the CPU and by compute capability of the GPU"
    _support_table(facts["support"], title).print()
    failed = sum(not test["ok"] for test in facts["self_test"])
    print(f"\nself-test: {failed} of {len(facts['self_test'])} FAILED" if failed else "\nall well")


def _summary(facts: dict[str, Any]) -> dict[str, str]:
    build = facts["build"]
    found = {name: version for name, version in facts["versions"].items() if version}
    missing = [name for name, version in facts["versions"].items() if not version]
    pairs = {
        "Python": found.pop("python"),
        "packages": ", ".join(f"{key} {value}" for key, value in found.items() if key != "tcgemm"),
        "not installed": ", ".join(missing) or "-",
        "CUDA of the build": build.get("cuda_version") or "none: host family only",
        "architectures": build.get("architectures") or "-",
        "compiler": f"{build.get('compiler', '-')}, {build.get('build_type', '-')}",
        "commit": build.get("commit") or "-",
        "driver": facts["driver"] or "-",
    }
    if facts["no_gpu_because"]:
        pairs["no usable GPU"] = facts["no_gpu_because"]
    variables = facts["environment"]
    pairs["environment"] = ", ".join(f"{key}={value}" for key, value in variables.items()) or "-"
    return pairs


def _print_pairs(pairs: dict[str, str]) -> None:
    width = max(map(len, pairs))
    for key, value in pairs.items():
        print(f"{key:<{width}}  {value}")


def _print_devices(devices: list[dict[str, Any]], cpu: dict[str, Any]) -> None:
    table = Table(["<device", "<name", "cc", "SMs", "memory", "GB/s", "L2"], "\nDevices")
    table.add("cpu", cpu["name"], "-", f"{cpu['threads']} threads", "-", "-", "-")
    for device in devices:
        if device["ordinal"] < 0:
            continue
        table.add(
            f"cuda:{device['ordinal']}",
            device["name"],
            ".".join(map(str, device["compute_capability"])),
            str(device["sm_count"]),
            f"{device['memory_bytes'] / 2**30:.0f} GiB",
            str(device["memory_gb_per_s"]),
            f"{device.get('l2_bytes', 0) / 2**20:.0f} MiB",
        )
    table.print()


def _support_table(tables: dict[str, list[dict[str, str]]], title: str) -> Table:
    """A row for each mode, a column for the CPU and for each compute capability."""
    table = Table(["<precision", "<sums", "<A, B", "<D", *(f"<{place}" for place in tables)], title)
    for rows in zip(*tables.values(), strict=True):
        mode = [rows[0][key] for key in ("precision", "accumulate", "operands", "out")]
        table.add(*mode, *(row["family"] or "-" for row in rows))
    return table
