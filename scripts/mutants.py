#!/usr/bin/env python3
"""Shows that the tests notice faults: plants each one of mutants.toml and runs the suite on it.

    scripts/mutants.py                       # the host family; no GPU needed
    scripts/mutants.py --family simt         # on a machine with a GPU
    scripts/mutants.py --only drop_k_tail zero_tile

A mutant is a fault in the library's own sources. They are copied to a temporary folder, changed
there, and libtcgemm is built again; a copy of the installed package with that library is then
tested. A mutant is killed where a test fails, and survives where all pass. Needs an installed
tcgemm with its test extra. Prints a table; exits 1 where a mutant survives.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".toml")
FAMILIES = ("host", "simt", "sm70_wmma", "sm80_mma", "sm90_wgmma")
# Quick tests, those first that most faults fail: the numbers behind the names are the cases' ids.
SUITE = ("test_special_values.py", "test_numerics.py", "test_shapes.py")
SLOW = "b08 or b09 or b10 or large"


@dataclass(frozen=True)
class Hunk:
    file: str
    old: str
    new: str

    def find(self, text: str) -> list[re.Match[str]]:
        """Where `old` stands, however it is broken into lines."""
        return list(re.finditer(r"\s+".join(map(re.escape, self.old.split())), text))

    def apply(self, root: Path) -> None:
        path = root / self.file
        text = path.read_text()
        found = self.find(text)
        if len(found) != 1:
            raise SystemExit(f"{self.file}: found {len(found)} times, not once:\n{self.old}")
        path.write_text(text[: found[0].start()] + self.new + text[found[0].end() :])


@dataclass(frozen=True)
class Mutant:
    name: str
    family: str
    fault: str  # what is wrong, for people
    hunks: tuple[Hunk, ...]


def load() -> list[Mutant]:
    """Every mutant of the table: one for each of its faults and families."""
    return [
        Mutant(name, family, entry["fault"], tuple(Hunk(**hunk) for hunk in entry[family]))
        for name, entry in tomllib.loads(TABLE.read_text()).items()
        for family in FAMILIES
        if family in entry
    ]


class Workshop:
    """A copy of the sources, its build, and a copy of the installed package that uses it."""

    def __init__(self, folder: Path, family: str) -> None:
        self.family = family
        self.sources, self.build, self.overlay = folder / "src", folder / "build", folder / "site"
        for name in ("CMakeLists.txt", "cmake", "cpp", "third_party"):
            item = ROOT / name
            if item.is_dir():
                shutil.copytree(item, self.sources / name)
            elif item.exists():
                self.sources.mkdir(exist_ok=True)
                shutil.copy(item, self.sources / name)
        spec = importlib.util.find_spec("tcgemm")
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit("tcgemm is not installed beside this Python: pip install '.[test]'")
        shutil.copytree(spec.submodule_search_locations[0], self.overlay / "tcgemm")
        options = ["-DTCGEMM_CUDA=OFF"]
        if family != "host":
            options = ["-DCMAKE_CUDA_ARCHITECTURES=90", "-DTCGEMM_TEST_SM90=ON"]
        self._run("cmake", "-S", self.sources, "-B", self.build, "-G", "Ninja",
                  "-DCMAKE_BUILD_TYPE=Release", "-DTCGEMM_BUILD_TESTS=OFF", *options)  # fmt: skip

    def compile(self) -> None:
        self._run("cmake", "--build", self.build, "--target", "tcgemm")
        library = next((self.build / "cpp/src").glob("libtcgemm.so")).resolve()
        shutil.copy(library, self.overlay / "tcgemm/lib/libtcgemm.so")

    def test(self, timeout_s: int) -> tuple[bool, str]:
        """Whether all tests pass, and the first one that does not."""
        files = [ROOT / "tests" / name for name in SUITE]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line",
             "-k", f"{self.family} and not ({SLOW})", *map(str, files)],
            env={**os.environ, "PYTHONPATH": self._path()},
            cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return True, ""
        failed = re.search(r"^(?:FAILED|ERROR) \S*?::(\S+)", done.stdout, re.MULTILINE)
        if done.returncode not in (1, -6, -11) or not (failed or done.returncode < 0):
            raise SystemExit(f"pytest did not run:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
        return False, failed[1] if failed else f"killed by signal {-done.returncode}"

    def _path(self) -> str:
        rest = filter(None, [os.environ.get("PYTHONPATH")])
        return os.pathsep.join([str(self.overlay), *rest])

    def _run(self, *command: str | Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            list(map(str, command)), env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}")


def run(mutant: Mutant, workshop: Workshop, timeout_s: int) -> tuple[str, str]:
    """("killed" or "survived", the test that failed). The sources are put back afterwards."""
    saved = {hunk.file: (workshop.sources / hunk.file).read_text() for hunk in mutant.hunks}
    try:
        for hunk in mutant.hunks:
            hunk.apply(workshop.sources)
        workshop.compile()
        passed, killer = workshop.test(timeout_s)
    except subprocess.TimeoutExpired:
        passed, killer = False, f"no end after {timeout_s} s"
    finally:
        for file, text in saved.items():
            (workshop.sources / file).write_text(text)
    return ("survived", "") if passed else ("killed", killer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--family", choices=FAMILIES, default="host")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants alone")
    parser.add_argument("--timeout", type=int, default=600, help="seconds of tests for each")
    args = parser.parse_args()
    mutants = [m for m in load() if m.family == args.family]
    if args.only:
        unknown = set(args.only) - {m.name for m in mutants}
        if unknown:
            parser.error(f"no such mutant of {args.family}: {', '.join(sorted(unknown))}")
        mutants = [m for m in mutants if m.name in args.only]

    rows = []
    with tempfile.TemporaryDirectory(prefix="tcgemm-mutants-") as folder:
        workshop = Workshop(Path(folder), args.family)
        workshop.compile()
        passed, failure = workshop.test(args.timeout)
        if not passed:
            print(f"the untouched library fails {failure}: nothing can be shown")
            return 1
        print(f"{args.family}: the untouched library passes", flush=True)
        for mutant in mutants:
            start = time.monotonic()
            result, killer = run(mutant, workshop, args.timeout)
            rows.append((mutant, result))
            seconds = time.monotonic() - start
            print(f"{result:<9} {mutant.name:<20} {seconds:5.0f} s  {killer}", flush=True)
    killed = sum(result == "killed" for _, result in rows)
    print(f"{args.family}: {killed} of {len(rows)} mutants killed")
    return 0 if killed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
