#!/usr/bin/env python3
"""What the main loop of every GEMM kernel consists of, read from a wheel's machine code.

    scripts/main_loops.py dist/tcgemm-*.whl --cuobjdump $CUDA_HOME/bin/cuobjdump --check

For the cards that are not at hand this is what can be known of a kernel: how many instructions
stand beside each multiplication in the innermost loop, of what kind, what FFMAs ask of a bank of
registers, and how many blocks and warps an SM holds by their threads, registers and shared memory.
Prints a table; --write keeps it in benchmarks/main_loops.tsv, --check compares with that and exits
1 where a kernel has become worse. (check_wheel.py fails where one spills.) The wheel is imported:
it must be for this Python.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from check_wheel import Kernel, output, read_kernels  # beside this file

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
RESOURCES = ("registers", "threads", "shared_bytes", "blocks_per_sm", "occupancy")
# Worse: less occupancy, more instructions or reads of a bank for each multiplication by this
# factor, or so many more registers.
MORE_INSTRUCTIONS, MORE_REGISTERS = 1.05, 8


@dataclass(frozen=True)
class Multiprocessor:
    """What an SM has, by the CUDA programming guide's table of compute capabilities."""

    warps: int
    blocks: int
    shared_kb: int
    shared_unit: int = 128  # bytes that shared memory is dealt out in
    reserved: int = 1024  # bytes of it that the system takes in each block
    registers: int = 65536

    def resident_blocks(self, threads: int, registers: int, shared_bytes: int) -> int:
        """Of that many threads, registers a thread and bytes of shared memory."""
        warps = -(-threads // 32)
        # Registers are dealt out to warps by 256, and an SM's four partitions have as many each.
        of_warp = -(-registers * 32 // 256) * 256
        by_registers = self.registers // of_warp // 4 * 4 // warps
        shared = -(-(shared_bytes + self.reserved) // self.shared_unit) * self.shared_unit
        by_shared = self.shared_kb * 1024 // shared if shared else self.blocks
        return min(self.blocks, self.warps // warps, by_registers, by_shared)


# An architecture whose code runs on more than one kind of them counts on each that a kernel has no
# code of its own for.
RUNS_ON = {"80": ("80", "86", "89")}
MULTIPROCESSORS = {
    "70": Multiprocessor(64, 32, 96, shared_unit=256, reserved=0),
    "75": Multiprocessor(32, 16, 64, shared_unit=256, reserved=0),
    "80": Multiprocessor(64, 32, 164),
    "86": Multiprocessor(48, 16, 100),
    "89": Multiprocessor(48, 24, 100),
    "90": Multiprocessor(64, 32, 228),
}


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str  # without a predicate: "HMMA.16816.F32"
    operands: str  # "R1, R2.reuse, R3, R1"
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
            operands = match[3].split(";")[0].strip()
            # A constant comes into a register by an addition to 0, too.
            is_move = match[2].startswith("HFMA2") and ", -RZ, RZ, " in operands
            name = "MOV" if is_move else match[2]
            body.append(Instruction(int(match[1], 16), name, operands, target))
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


def bank_reads(loop: list[Instruction]) -> float:
    """What an FFMA reads of the busier of the two banks of registers, in the mean; 0: no FFMAs.

    A bank gives a scheduler one operand a cycle, so that above 1 FFMAs wait. What the one before
    has read and marked, in the same place, comes out of the reuse cache.
    """
    banks = [0, 0]
    kept: list[str | None] = [None] * 3
    ffmas = [i for i in loop if re.match(r"FFMA\b", i.name)]
    for instruction in ffmas:
        sources = instruction.operands.split(", ")[1:4]
        found = [re.fullmatch(r"-?R(\d+)(\.reuse)?", source) for source in sources]
        for register, cached in zip(found, kept, strict=True):
            if register and register[1] != cached:
                banks[int(register[1]) % 2] += 1
        kept = [register[1] if register and register[2] else None for register in found]
    return max(banks) / len(ffmas) if ffmas else 0.0


def read_threads(elf: str) -> dict[tuple[str, str], int]:
    """The threads of a block (__launch_bounds__) of each (mangled name, architecture)."""
    threads: dict[tuple[str, str], int] = {}
    architecture = name = ""
    lines = iter(elf.splitlines())
    for line in lines:
        if match := re.match(r"arch = sm_(\w+)", line):
            architecture = match[1]
        elif match := re.match(r"\.nv\.info\.(\w+)", line):
            name = match[1]
        elif "EIATTR_MAX_THREADS" in line:
            next(lines)  # its format
            x, y, z = (int(value, 16) for value in next(lines).split()[1:])
            threads[name, architecture] = x * y * z
    return threads


def read_dynamic_shared_bytes(folder: Path) -> dict[str, int]:
    """By the name of a kernel: cubins do not say it, the wheel unpacked in `folder` does."""
    program = "import json, tcgemm; print(json.dumps(tcgemm.kernels()))"
    rows = json.loads(output("env", f"PYTHONPATH={folder}", sys.executable, "-P", "-c", program))
    return {row["name"]: row["dynamic_shared_bytes"] for row in rows}


# What kernels of whole_k/ and strips multiply, in C++ and in the name of a row; None: CUDA cores.
WHOLE_K_DTYPES = {
    None: "f32",
    "__half": "f16",
    "__nv_bfloat16": "bf16",
    "device::Tf32": "tf32",
    "double": "f64",
    "signed char": "i8",
}


def shared_bytes(kernel: Kernel, architecture: str, dynamic: dict[str, int]) -> int:
    """Of a block, without what the system reserves: cubins count that from sm_90 on."""
    static = kernel.usage[architecture]["SHARED"]
    if architecture.startswith("90"):
        static -= MULTIPROCESSORS["90"].reserved
    if row := re.search(r"::WholeK\w+<(?:([\w: ]+), [\w ]+, )?(\d+)>", str(kernel)):
        name = f"{kernel.family}_{WHOLE_K_DTYPES[row[1]]}_whole_k_{row[2]}x{row[2]}"
        return static + dynamic[name]
    if row := re.search(r"::WholeKRows<simt::(\w+)>", str(kernel)):
        start = f"simt_{row[1].lower()}_whole_k_"
        (name,) = (name for name in dynamic if name.startswith(start) and name.endswith("x8"))
        return static + dynamic[name]
    if row := re.search(r"::strips_kernel<([\w:]+), (\d+), (true|false)>", str(kernel)):
        tile = f"{row[2]}x{row[2]}" + ("x128" if row[3] == "true" else "")
        return static + dynamic[f"sm80_mma_{WHOLE_K_DTYPES[row[1]]}_strips_{tile}"]
    if row := re.search(r"::outer_kernel<(?:\w+::)?Outer<(?:\w+::)?F(\d+)>", str(kernel)):
        (name,) = (name for name in dynamic if name.startswith(f"simt_f{row[1]}_outer_"))
        return static + dynamic[name]
    if kernel.family == "simt":  # whose other policies are named as no rows are; all static
        return static
    row = re.search(r"::gemm_kernel<\w+::Policy<\w+::(\w+)", str(kernel))
    if row is None or f"{kernel.family}_{row[1]}" not in dynamic:
        raise SystemExit(f"{kernel} has no row in tcgemm.kernels() that says its shared memory")
    return static + dynamic[f"{kernel.family}_{row[1]}"]


def measure(cuobjdump: str, folder: Path) -> list[dict[str, str]]:
    library = folder / "tcgemm/lib/libtcgemm.so"
    functions = read_functions(output(cuobjdump, "--dump-sass", library))
    threads = read_threads(output(cuobjdump, "--dump-elf", library))
    kernels = {kernel.name: kernel for kernel in read_kernels(cuobjdump, library)}
    dynamic = read_dynamic_shared_bytes(folder)
    rows = []
    for (name, architecture), body in functions.items():
        multiplies = re.search("(gemm|few_rows|whole_k|strips|outer)_kernel", name)
        loop = main_loop(body) if multiplies else []
        if not loop:
            continue
        counts = {kind: sum(bool(p.match(i.name)) for i in loop) for kind, p in KINDS.items()}
        block = threads[name, architecture]
        registers = kernels[name].usage[architecture]["REG"]
        shared = shared_bytes(kernels[name], architecture, dynamic)
        for where in RUNS_ON.get(architecture, (architecture,)):
            if where != architecture and (name, where) in functions:
                continue
            sm = MULTIPROCESSORS[where.removesuffix("a")]
            blocks = sm.resident_blocks(block, registers, shared)
            rows.append(
                {
                    "kernel": str(kernels[name]),
                    "sm": where,
                    "registers": str(registers),
                    "threads": str(block),
                    "shared_bytes": str(shared),
                    "blocks_per_sm": str(blocks),
                    "occupancy": f"{blocks * -(-block // 32) / sm.warps:.3f}",
                    "instructions": str(len(loop)),
                    **{kind: str(count) for kind, count in counts.items()},
                    "bank_reads": f"{bank_reads(loop):.2f}",
                }
            )
    return sorted(rows, key=lambda row: (row["kernel"], row["sm"]))


def per_multiplication(row: dict[str, str]) -> float:
    return int(row["instructions"]) / (int(row["tensor"]) or int(row["fma"]))


def worse(row: dict[str, str], before: dict[str, str]) -> str:
    """What has become worse; empty: nothing."""
    if int(row["tensor"]) == 0 and int(before["tensor"]) > 0:
        return "no tensor-core instruction in the main loop any more"
    if float(row["occupancy"]) < float(before["occupancy"]):
        return f"occupancy {row['occupancy']}, before {before['occupancy']}"
    now, was = per_multiplication(row), per_multiplication(before)
    if now > MORE_INSTRUCTIONS * was:
        return f"{now:.2f} instructions for a multiplication, before {was:.2f}"
    if float(row["bank_reads"]) > MORE_INSTRUCTIONS * float(before["bank_reads"]):
        return f"{row['bank_reads']} reads of a bank for an FFMA, before {before['bank_reads']}"
    if int(row["registers"]) > int(before["registers"]) + MORE_REGISTERS:
        return f"{row['registers']} registers, before {before['registers']}"
    return ""


def show(rows: list[dict[str, str]]) -> None:
    """A line for each family and architecture: the range over its kernels."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["kernel"].split("::")[0], row["sm"]), []).append(row)
    columns = (*RESOURCES, "instructions", *KINDS, "bank_reads")
    print(f"{'family':<12}{'sm':>5}{'kernels':>9}" + "".join(f"{name:>15}" for name in columns))
    for (family, architecture), members in sorted(groups.items()):
        line = f"{family:<12}{architecture:>5}{len(members):>9}"
        for name in columns:
            least, *_, most = sorted((row[name] for row in (*members, *members)), key=float)
            line += f"{f'{least}..{most}':>15}"
        print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description="Main loops of a wheel's kernels.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--cuobjdump", default="cuobjdump", help="that of the wheel's CUDA toolkit")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {BASELINE.name}")
    parser.add_argument("--check", action="store_true", help="compare with the table kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(arguments.wheel) as archive:
        archive.extractall(folder)
        rows = measure(arguments.cuobjdump, Path(folder))
    show(rows)
    if arguments.write:
        with BASELINE.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter="\t", lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    if not arguments.check:
        return 0
    with BASELINE.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, delimiter="\t")
        if reader.fieldnames != list(rows[0]):
            raise SystemExit(f"{BASELINE.name} has other columns: run with --write")
        kept = {(row["kernel"], row["sm"]): row for row in reader}
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
