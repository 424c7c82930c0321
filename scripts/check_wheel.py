#!/usr/bin/env python3
"""Checks a built wheel before it is released: platform, size, files, libraries, symbols, GPU code.

    scripts/check_wheel.py dist/tcgemm-*.whl --cuobjdump $CUDA_HOME/bin/cuobjdump

Prints a line for each check and a table of the kernels; exits 1 where a check fails. Needs
auditwheel and twine beside this Python, and readelf and nm on the path.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

MAX_WHEEL_MB = 20.0
# Kernel instantiations, each counted once however many architectures it is built for. Each costs
# time in every `pip install .`: raise the budget only together with a measured build time (326: ten
# minutes on two cores; two of simt six seconds; 335: no longer than 330, for one of FP8 takes 12.6
# seconds in place of 17 to 18). A kernel of sm90_wgmma for 16 bits takes about four seconds, one of
# sm80_mma a second for each of its three architectures. simt, pack and split_k are built for four,
# sm70_wmma for two.
KERNEL_BUDGET = 335
ARCHITECTURES = ["70", "80", "90a"]  # a kernel has a cubin for each, but those of
FAMILY_ARCHITECTURES = {
    "probe": ["70", "75", "80", "86", "89", "90a"],
    "sm90_wgmma": ["90a"],
    "sm80_mma": ["80", "90"],
    "sm80_mma FP8": ["80", "89", "90"],
    "sm70_wmma": ["70", "75"],
    "probe_wgmma": ["90a"],
}
# Instructions that the SASS must hold, for tensor cores are what the kernels are for.
AMPERE = ["HMMA.16816", "HMMA.1688.F32.TF32", "IMMA.16832", "DMMA.", "LDSM.", "LDGSTS."]
TENSOR_CORE_INSTRUCTIONS = {
    "70": ["HMMA."],
    "75": ["HMMA.", "IMMA.8816"],
    "80": AMPERE,
    "89": ["QMMA.", "LDSM.", "LDGSTS."],  # FP8; of all else it runs what is built for 8.0
    "90": AMPERE,
    "90a": ["HGMMA.", "UTMALDG."],
}

REQUIRED_FILES = [
    "tcgemm/__init__.py",
    "tcgemm/py.typed",
    "tcgemm/_core.pyi",
    "tcgemm/_core.cpython-*.so",
    "tcgemm/lib/libtcgemm.so",
    "tcgemm/lib/cmake/tcgemm/tcgemm-config.cmake",
    "tcgemm/lib/cmake/tcgemm/tcgemm-config-version.cmake",
    "tcgemm/lib/cmake/tcgemm/tcgemm-targets.cmake",
    "tcgemm/include/tcgemm/tcgemm.hpp",
    "tcgemm/include/tcgemm/tcgemm.h",
    "tcgemm/include/tcgemm/version.h",
]
# Anything else is a mistake: a CUDA library that auditwheel grafts adds hundreds of megabytes.
ALLOWED_FILES = re.compile(
    r"tcgemm/([\w/]+\.(pyi?|toml)|py\.typed|_core\.cpython-[\w-]+\.so|lib/libtcgemm\.so"
    r"|lib/cmake/tcgemm/[\w-]+\.cmake|include/tcgemm/\w+\.hp*)|tcgemm-[\w.]+\.dist-info/.*"
)
ALLOWED_LIBRARIES = re.compile(
    r"lib(tcgemm|stdc\+\+|gcc_s|c|m|dl|rt|pthread)\.so(\.\d+)?|ld-linux-x86-64\.so\.2"
)
EXPORTED_SYMBOL = re.compile(r"tcgemm_\w+|_ZT[ISV]N6tcgemm\w+|_ZNK?6tcgemm\w+")


@dataclass
class Report:
    failures: int = 0

    def check(self, what: str, good: bool, found: str) -> None:
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'}  {what:<32} {found}")

    def none_of(self, what: str, offenders: list[str], otherwise: str) -> None:
        shown = "; ".join(offenders[:12]) + (" ..." if len(offenders) > 12 else "")
        self.check(what, not offenders, shown or otherwise)


@dataclass
class Kernel:
    """A kernel, and per architecture its registers and bytes of stack, shared, local memory."""

    name: str
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        """`sm70_wmma::gemm_kernel<...>`: enough of the demangled name to know the row."""
        name = output("c++filt", self.name).strip().removeprefix("void ")
        name = name.replace("(anonymous namespace)::", "").replace("tcgemm::", "")
        return re.sub(r"\([^()]*\)$", "", name)  # without the parameters

    @property
    def family(self) -> str:
        # Mangled: the namespace within tcgemm; of kernels that families share, of what multiplies.
        shared = "7whole_k14whole_k_kernelINS_"
        match = re.match(rf"_ZN6tcgemm(?:{shared})?(\d+)", self.name)
        return self.name[match.end() :][: int(match[1])] if match else "?"

    @property
    def architectures(self) -> list[str]:
        """That it is to have a cubin for."""
        is_ada = self.family == "sm80_mma" and re.search("e[45]m[23]", self.name)
        built = f"{self.family} FP8" if is_ada else self.family
        return FAMILY_ARCHITECTURES.get(built, ARCHITECTURES)

    def most(self, resource: str) -> int:
        return max(usage.get(resource, 0) for usage in self.usage.values())


def output(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_platform(report: Report, wheel: Path, policy: str) -> None:
    match = re.search(
        r'platform tag:\s*"([^"]+)"', output(sys.executable, "-m", "auditwheel", "show", wheel)
    )
    tag = match[1] if match else "none found"
    report.check(f"platform {policy}", tag.startswith(policy) and policy in wheel.name, tag)


def check_files(report: Report, wheel: Path, names: list[str]) -> None:
    size = wheel.stat().st_size / 1e6
    report.check(f"size <= {MAX_WHEEL_MB:.0f} MB", size <= MAX_WHEEL_MB, f"{size:.2f} MB")
    missing = [need for need in REQUIRED_FILES if not any(Path(name).match(need) for name in names)]
    report.none_of("required files", missing, "all there")
    foreign = [n for n in names if not n.endswith("/") and not ALLOWED_FILES.fullmatch(n)]
    report.none_of("no other files", foreign, f"{len(names)} entries")


def check_metadata(report: Report, wheel: Path, root: Path) -> None:
    header = (root / "tcgemm/include/tcgemm/version.h").read_text(encoding="utf-8")
    match = re.search(r'TCGEMM_VERSION "([^"]+)"', header)
    version = match[1] if match else "none found"
    report.check("one version", wheel.name.split("-")[1] == version, version)
    twine = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(wheel)]
    done = subprocess.run(twine, capture_output=True, text=True)
    report.check("twine check --strict", done.returncode == 0, done.stdout.split()[-1])


def check_libraries(report: Report, root: Path) -> None:
    for library in sorted(root.glob("tcgemm/**/*.so")):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", library))
        foreign = [name for name in needed if not ALLOWED_LIBRARIES.fullmatch(name)]
        report.none_of(f"libraries of {library.name.split('.')[0]}", foreign, " ".join(needed))
    extension = next(root.glob("tcgemm/_core*.so"))
    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", output("readelf", "-d", extension))
    report.check("run path of _core", paths == ["$ORIGIN/lib"], str(paths))

    listing = output("nm", "-D", "--defined-only", root / "tcgemm/lib/libtcgemm.so")
    symbols = [line.split()[-1] for line in listing.splitlines()]
    foreign = [symbol for symbol in symbols if not EXPORTED_SYMBOL.fullmatch(symbol)]
    report.none_of("exports only its own symbols", foreign, f"{len(symbols)} symbols")


def read_kernels(cuobjdump: str, library: Path) -> list[Kernel]:
    kernels: dict[str, Kernel] = {}
    architecture = name = ""
    for line in map(str.strip, output(cuobjdump, "--dump-resource-usage", library).splitlines()):
        if match := re.match(r"arch = sm_(\w+)", line):
            architecture = match[1]
        elif match := re.match(r"Function (\w+):", line):
            name = match[1]
        elif "REG:" in line:
            usage = {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", line)}
            kernels.setdefault(name, Kernel(name)).usage[architecture] = usage
    return sorted(kernels.values(), key=lambda kernel: (kernel.family, kernel.name))


def check_kernels(report: Report, cuobjdump: str, library: Path) -> None:
    kernels = read_kernels(cuobjdump, library)
    count = len(kernels)
    report.check(f"kernels <= {KERNEL_BUDGET}", 0 < count <= KERNEL_BUDGET, str(count))

    lacking = [k.name for k in kernels if set(k.architectures) != set(k.usage)]
    report.none_of(f"cubins {' '.join(ARCHITECTURES)}", lacking, "as each family is built")
    ptx = sorted(set(re.findall(r"(sm_\w+)\.ptx", output(cuobjdump, "--list-ptx", library))))
    report.check("PTX for later GPUs", bool(ptx), " ".join(ptx))

    # A kernel's stack holds its spilled registers and dynamically indexed arrays: both are slow.
    spilling = [
        f"\n        {kernel} for sm_{architecture}: {usage['STACK']} + {usage['LOCAL']} bytes"
        for kernel in kernels
        for architecture, usage in kernel.usage.items()
        if usage["STACK"] or usage["LOCAL"]
    ]
    report.none_of("no spills, no local memory", spilling, "none")

    for architecture, instructions in TENSOR_CORE_INSTRUCTIONS.items():
        sass = output(cuobjdump, "--dump-sass", "-arch", f"sm_{architecture}", library)
        for name in instructions:
            count = len(re.findall(rf"\b{re.escape(name)}", sass))
            what = f"{name.rstrip('.')} in the sm_{architecture} code"
            report.check(what, count > 0, f"{count} instructions")

    families: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        families[kernel.family].append(kernel)
    header = ("kernels", "registers", "stack B", "local B", "shared B")
    print(f"\n{'family':<12}" + "".join(f"{title:>11}" for title in header))
    for family, members in families.items():
        reg, stack, local, shared = (
            max(k.most(resource) for k in members)
            for resource in ("REG", "STACK", "LOCAL", "SHARED")
        )
        row = (len(members), reg, stack, local, shared)
        print(f"{family:<12}" + "".join(f"{value:>11}" for value in row))


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks a built wheel before it is released.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--cuobjdump", default="cuobjdump", help="that of the wheel's CUDA toolkit")
    parser.add_argument("--policy", default="manylinux", help="how the platform tag must start")
    arguments = parser.parse_args()
    wheel: Path = arguments.wheel

    report = Report()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        root = Path(folder)
        check_platform(report, wheel, arguments.policy)
        check_files(report, wheel, archive.namelist())
        check_metadata(report, wheel, root)
        check_libraries(report, root)
        check_kernels(report, arguments.cuobjdump, root / "tcgemm/lib/libtcgemm.so")
    print(f"\n{wheel.name}: {f'{report.failures} checks FAILED' if report.failures else 'good'}")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
