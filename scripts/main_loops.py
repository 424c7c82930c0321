#!/usr/bin/env python3
"""What the main loop of every GEMM kernel consists of, read from a wheel's machine code.

    scripts/main_loops.py dist/tcgemm-*.whl --cuobjdump $CUDA_HOME/bin/cuobjdump --check

For the cards that are not at hand this is what can be known of a kernel: how many instructions
stand beside each multiplication in the innermost loop, of what kind, and how many registers it
takes. Prints a table; --write keeps it in benchmarks/main_loops.tsv, --check compares with that and
exits 1 where a kernel has become worse.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from check_wheel import output, read_kernels  # beside this file

BASELINE = Path(__file__).resolve().parent.parent / "benchmarks" / "main_loops.tsv"
# Kinds of instructions that a main loop is made of, by the first part of their name.
TENSOR = re.compile(r"(HGMMA|IGMMA|QGMMA|HMMA|IMMA|DMMA|QMMA)\b")
KINDS = {
    "tensor": TENSOR,
    "fma": re.compile(r"(FFMA|DFMA|HFMA2|IDP)\b"),
    "matrix_loads": re.compile(r"LDSM\b"),
    "shared_loads": re.compile(r"LDS\b"),
    "shared_stores": re.compile(r"STS\b"),
    "async_copies": re.compile(r"(LDGSTS|UTMALDG)\b"),
    "global_loads": re.compile(r"LDG\b"),
    "barriers": re.compile(r"(BAR|SYNCS|WARPSYNC|DEPBAR|LDGDEPBAR)\b"),
}
# Worse: more instructions for each multiplication by this factor, or so many more registers.
MORE_INSTRUCTIONS, MORE_REGISTERS = 1.05, 8


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str  # without a predicate: "HMMA.16816.F32"
    target: int | None  # of a branch


def read_functions(sass: str) -> dict[tuple[str, str], list[Instruction]]:
    """The instructions of each (mangled name, architecture)."""
    functions: dict[tuple[str, str], list[Instruction]] = {}
    architecture = ""
    body: list[Instruction] = []
    for line in sass.splitlines():
        if match := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([\w.]+)(.*)", line):
            branch = re.search(r"\b0x([0-9a-f]+)", match[3]) if match[2] == "BRA" else None
            target = int(branch[1], 16) if branch else None
            body.append(Instruction(int(match[1], 16), match[2], target))
        elif match := re.match(r"\s*Function : (\w+)", line):
            body = functions.setdefault((match[1], architecture), [])
        elif match := re.search(r"arch = sm_(\w+)", line):
            architecture = match[1]
    return functions


def main_loop(body: list[Instruction]) -> list[Instruction]:
    """Of the innermost loops that multiply, the one that does most; empty: there is none."""

    def multiplications(loop: list[Instruction]) -> tuple[int, int]:
        return tuple(sum(bool(KINDS[k].match(i.name)) for i in loop) for k in ("tensor", "fma"))

    index = {instruction.address: i for i, instruction in enumerate(body)}
    loops = []
    for end, instruction in enumerate(body):
        start = index.get(instruction.target) if instruction.target is not None else None
        if start is not None and start <= end:
            loop = body[start : end + 1]
            if any(multiplications(loop)):
                loops.append((start, end, loop))
    innermost = [
        loop
        for start, end, loop in loops
        if not any((s, e) != (start, end) and start <= s and e <= end for s, e, _ in loops)
    ]
    return max(innermost, key=multiplications, default=[])


def measure(cuobjdump: str, library: Path) -> list[dict[str, str]]:
    functions = read_functions(output(cuobjdump, "--dump-sass", library))
    kernels = {kernel.name: kernel for kernel in read_kernels(cuobjdump, library)}
    rows = []
    for (name, architecture), body in functions.items():
        loop = main_loop(body) if "gemm_kernel" in name else []
        if not loop:
            continue
        counts = {kind: sum(bool(p.match(i.name)) for i in loop) for kind, p in KINDS.items()}
        rows.append(
            {
                "kernel": str(kernels[name]),
                "sm": architecture,
                "registers": str(kernels[name].usage[architecture]["REG"]),
                "instructions": str(len(loop)),
                **{kind: str(count) for kind, count in counts.items()},
            }
        )
    return sorted(rows, key=lambda row: (row["kernel"], row["sm"]))


def per_multiplication(row: dict[str, str]) -> float:
    return int(row["instructions"]) / (int(row["tensor"]) or int(row["fma"]))


def worse(row: dict[str, str], before: dict[str, str]) -> str:
    """What has become worse; empty: nothing."""
    if int(row["tensor"]) == 0 and int(before["tensor"]) > 0:
        return "no tensor-core instruction in the main loop any more"
    now, was = per_multiplication(row), per_multiplication(before)
    if now > MORE_INSTRUCTIONS * was:
        return f"{now:.2f} instructions for a multiplication, before {was:.2f}"
    if int(row["registers"]) > int(before["registers"]) + MORE_REGISTERS:
        return f"{row['registers']} registers, before {before['registers']}"
    return ""


def show(rows: list[dict[str, str]]) -> None:
    """A line for each family and architecture: the range over its kernels."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["kernel"].split("::")[0], row["sm"]), []).append(row)
    columns = ("registers", "instructions", *KINDS)
    print(f"{'family':<12}{'sm':>5}{'kernels':>9}" + "".join(f"{name:>15}" for name in columns))
    for (family, architecture), members in sorted(groups.items()):
        line = f"{family:<12}{architecture:>5}{len(members):>9}"
        for name in columns:
            values = [int(row[name]) for row in members]
            line += f"{f'{min(values)}..{max(values)}':>15}"
        print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description="Main loops of a wheel's kernels.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--cuobjdump", default="cuobjdump", help="that of the wheel's CUDA toolkit")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {BASELINE.name}")
    parser.add_argument("--check", action="store_true", help="compare with the table kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(arguments.wheel) as archive:
        archive.extract("tcgemm/lib/libtcgemm.so", folder)
        rows = measure(arguments.cuobjdump, Path(folder) / "tcgemm/lib/libtcgemm.so")
    show(rows)
    if arguments.write:
        with BASELINE.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter="\t", lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    if not arguments.check:
        return 0
    with BASELINE.open(newline="", encoding="utf-8") as file:
        kept = {(r["kernel"], r["sm"]): r for r in csv.DictReader(file, delimiter="\t")}
    here = {(row["kernel"], row["sm"]): row for row in rows}
    found = [(key, worse(row, kept[key])) for key, row in here.items() if key in kept]
    found += [(key, "gone: run with --write") for key in kept if key not in here]
    found += [(key, "new: run with --write") for key in here if key not in kept]
    bad = [(key, what) for key, what in found if what]
    for (kernel, architecture), what in bad:
        print(f"FAIL  {kernel} for sm_{architecture}: {what}")
    print(f"main loops: {f'{len(bad)} of {len(here)} FAILED' if bad else f'{len(here)} good'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
