"""What a benchmark measures: cases, as arguments or as suites of shapes out of TOML files."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from tcgemm._cli.modes import ITEM_BYTES, Mode
from tcgemm._cli.report import UsageError

LAYOUTS = ("nn", "nt", "tn", "tt")


@dataclass(frozen=True)
class Case:
    """One row: D = A B with A m x k, B k x n."""

    m: int
    n: int
    k: int
    dtype: str = "float32"  # of A and B
    layout: str = "nn"  # of A and of B: n row-major, t column-major
    precision: str | None = None
    accumulate: str | None = None
    out_dtype: str | None = None
    family: str | None = None  # forced, else the library's choice
    group: str = ""

    @property
    def mode(self) -> Mode:
        return Mode(self.dtype, self.precision, self.accumulate, self.out_dtype)

    @property
    def size(self) -> str:
        return str(self.m) if self.square else f"{self.m}x{self.n}x{self.k}"

    @property
    def square(self) -> bool:
        return self.m == self.n == self.k

    @property
    def operations(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """A and B read, D written, once each."""
        item = ITEM_BYTES[self.dtype]
        result = self.m * self.n * ITEM_BYTES[self.mode.result_dtype]
        return (self.m * self.k + self.k * self.n) * item + result

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def parse_sizes(text: str, option: str) -> list[int]:
    """ "256,512" or "a:b:step" (b included), or a mix of both. UsageError names the option."""
    sizes: list[int] = []
    for part in text.split(","):
        try:
            numbers = [int(number) for number in part.split(":")]
        except ValueError:
            numbers = []
        if len(numbers) == 1 and numbers[0] > 0:
            sizes.append(numbers[0])
        elif len(numbers) in (2, 3) and 0 < numbers[0] <= numbers[1] and numbers[-1] > 0:
            step = numbers[2] if len(numbers) == 3 else 1
            sizes.extend(range(numbers[0], numbers[1] + 1, step))
        else:
            raise UsageError(
                f"{option} {text}: expected positive whole numbers, as 256,512 or as"
                " first:last:step"
            )
    return sizes


def parse_names(text: str, option: str, allowed: Iterable[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = list(allowed)
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: expected one of {', '.join(known)}")
    return names


@dataclass(frozen=True)
class Suite:
    name: str
    description: str
    cases: tuple[Case, ...]


def suite_names() -> list[str]:
    folder = resources.files("tcgemm._cli") / "suites"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_suite(name: str) -> Suite:
    """A suite of the package by its name, or any TOML file by its path; UsageError for neither."""
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text()
        except OSError as error:
            raise UsageError(f"--suite {name}: {error.strerror}") from None
    elif name in suite_names():
        text = (resources.files("tcgemm._cli") / "suites" / f"{name}.toml").read_text()
    else:
        known = ", ".join(suite_names())
        raise UsageError(f"--suite {name}: no such suite; there are {known}, or give a .toml file")
    try:
        data = tomllib.loads(text)
        groups = data["groups"]
        cases = tuple(itertools.chain.from_iterable(_group(group) for group in groups))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"--suite {name}: not a suite: {error}") from None
    return Suite(Path(name).stem, data.get("description", ""), cases)


def _group(group: dict[str, Any]) -> list[Case]:
    """Every layout of every size and shape of a [[groups]] table."""
    fields = dict(group)
    sizes, shapes = fields.pop("sizes", []), fields.pop("shapes", [])
    layouts, title = fields.pop("layouts", ["nn"]), fields.pop("title")
    unknown = set(layouts) - set(LAYOUTS)
    if unknown:
        raise ValueError(f"group {title!r}: unknown layout")
    if not sizes and not shapes:
        raise ValueError(f"group {title!r}: neither sizes nor shapes")
    dimensions = [(size, size, size) for size in sizes] + [tuple(shape) for shape in shapes]
    return [
        Case(m, n, k, layout=layout, group=title, **fields)
        for layout in layouts
        for m, n, k in dimensions
    ]


def from_arguments(
    shapes: Sequence[tuple[int, int, int]],
    dtypes: Sequence[str],
    layouts: Sequence[str],
    common: Case,
) -> list[Case]:
    """Every dtype and layout of every shape; `common` has the fields that all share."""
    return [
        replace(common, m=m, n=n, k=k, dtype=dtype, layout=layout, group=_title(common, dtype))
        for dtype in dtypes
        for layout in layouts
        for m, n, k in shapes
    ]


def _title(common: Case, dtype: str) -> str:
    parts = [dtype]
    if common.precision:
        parts.append(f"as {common.precision}")
    if common.accumulate:
        parts.append(f"summed in {common.accumulate}")
    if common.out_dtype:
        parts.append(f"to {common.out_dtype}")
    return " ".join(parts)


def with_families(cases: Iterable[Case], families: Sequence[str]) -> list[Case]:
    """Each case once for each family, in place of what it asked for."""
    if not families:
        return list(cases)
    return [
        replace(case, family=family, group=f"{case.group} ({family})")
        for family in families
        for case in cases
    ]
