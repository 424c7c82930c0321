"""What a benchmark measures: cases, as arguments or as suites of shapes out of TOML files."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from tcgemm._cli.modes import ITEM_BYTES, PRECISION_DTYPE, Mode
from tcgemm._cli.report import UsageError

# Fewer operations a byte than this, and any GPU with tensor cores waits for its memory.
_MEMORY_BOUND = 64
_LAUNCH_BOUND = 4 << 20  # bytes: with less, the launch is what takes the time

LAYOUTS = ("nn", "nt", "tn", "tt")
# Of a matrix, as the library takes them; the limits of frameworks, of which each tells in another
# way, are beyond.
MOST_ELEMENTS = 1 << 52
_MOST_SIZES = 10_000  # of an option: a range of more is a slip


@dataclass(frozen=True)
class Case:
    """One row: D = A B + beta C with A m x k, B k x n, `batch` times in one call."""

    m: int
    n: int
    k: int
    dtype: str = "float32"  # of A and B
    layout: str = "nn"  # of A and of B: n row-major, t column-major
    precision: str | None = None
    accumulate: str | None = None
    out_dtype: str | None = None
    determinism: str | None = None
    batch: int = 1
    broadcast: str = ""  # "a" or "b": the operand that the whole batch shares
    padding: int = 0  # elements between the rows (columns) of every operand
    offset: int = 0  # elements from an aligned address to the first of every operand
    # FP8 scales: one for each matrix, for each row of A and column of B, or for 128 k of each row
    # of A, and of B for 128 k of each column or of 128 columns.
    scales: str = ""  # "matrices", "rows", "columns" or "blocks"
    beta: float = 0.0
    in_place: bool = False  # C is D
    family: str | None = None  # forced, else the library's choice
    # The peer is the library itself, with these fields instead; else whoever the framework has.
    against: dict[str, Any] | None = None
    group: str = ""

    @property
    def mode(self) -> Mode:
        return Mode(self.dtype, self.precision, self.accumulate, self.out_dtype)

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for matmul, gemm and plan, but for alpha and beta."""
        chosen = {} if self.determinism is None else {"determinism": self.determinism}
        return {**self.mode.arguments, **chosen}

    @property
    def peer_case(self) -> Case | None:
        """What the library is measured against itself on."""
        return None if self.against is None else replace(self, against=None, **self.against)

    @property
    def size(self) -> str:
        product = str(self.m) if self.square else f"{self.m}x{self.n}x{self.k}"
        return product if self.batch == 1 else f"{self.batch} * {product}"

    @property
    def form(self) -> str:
        """The layout, and what is not plain about the operands."""
        parts = [self.layout]
        if self.broadcast:
            parts.append(f"one {self.broadcast.upper()}")
        if self.padding:
            parts.append(f"ld+{self.padding}")
        if self.offset:
            parts.append(f"at+{self.offset}")
        if self.scales:
            parts.append(f"scaled {self.scales}")
        if self.beta:
            parts.append(f"{self.beta:+g}{'D' if self.in_place else 'C'}")
        return " ".join(parts)

    @property
    def square(self) -> bool:
        return self.m == self.n == self.k

    @property
    def operations(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """A and B read, D written, C read where there is one: once each."""
        item = ITEM_BYTES[self.dtype]
        a = self.m * self.k * (1 if self.broadcast == "a" else self.batch)
        b = self.k * self.n * (1 if self.broadcast == "b" else self.batch)
        result = self.batch * self.m * self.n * ITEM_BYTES[self.mode.result_dtype]
        return (a + b) * item + result * (2 if self.beta else 1)

    @property
    def is_memory_bound(self) -> bool:
        return self.operations < _MEMORY_BOUND * self.bytes and self.bytes >= _LAUNCH_BOUND

    def to_json(self) -> dict[str, Any]:
        """Without the fields that say nothing."""
        return {key: value for key, value in asdict(self).items() if value}


def refuse_too_large(m: int, n: int, k: int, batch: int = 1) -> None:
    """MemoryError, as for what does not fit, where an operand is beyond what anyone can make."""
    if batch * max(m * n, m * k, k * n) > MOST_ELEMENTS:
        raise MemoryError("an operand has more than 2^52 elements")


def parse_sizes(text: str, option: str) -> list[int]:
    """ "256,512" or "a:b:step" (b included), or a mix of both. UsageError names the option."""
    sizes: list[int] = []
    many = f"{option} {text}: more than {_MOST_SIZES:,} sizes; give fewer, or a larger step"
    for part in text.split(","):
        try:
            numbers = [int(number) for number in part.split(":")]
        except ValueError:
            numbers = []
        if any(number > MOST_ELEMENTS for number in numbers):
            raise UsageError(f"{option} {text}: sizes are up to 2^52")
        if len(numbers) == 1 and numbers[0] > 0:
            sizes.append(numbers[0])
        elif len(numbers) in (2, 3) and 0 < numbers[0] <= numbers[1] and numbers[-1] > 0:
            step = numbers[2] if len(numbers) == 3 else 1
            span = range(numbers[0], numbers[1] + 1, step)
            if len(span) > _MOST_SIZES:
                raise UsageError(many)
            sizes.extend(span)
        else:
            raise UsageError(
                f"{option} {text}: expected positive whole numbers, as 256,512 or as"
                " first:last:step"
            )
    if len(sizes) > _MOST_SIZES:
        raise UsageError(many)
    return sizes


def split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_names(text: str, option: str, allowed: Iterable[str]) -> list[str]:
    names, known = split_names(text), list(allowed)
    if not names:
        raise UsageError(f"{option} {text}: expected one or more of {', '.join(known)}")
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
            content = Path(name).read_bytes()
        except OSError as error:
            raise UsageError(f"--suite {name}: {error.strerror}") from None
    elif name in suite_names():
        content = (resources.files("tcgemm._cli") / "suites" / f"{name}.toml").read_bytes()
    else:
        known = ", ".join(suite_names())
        raise UsageError(f"--suite {name}: no such suite; there are {known}, or give a .toml file")
    try:
        data = tomllib.loads(content.decode())
        groups = data.get("groups")
        if not (isinstance(groups, list) and all(isinstance(group, dict) for group in groups)):
            raise ValueError("it needs [[groups]], each with a title and with sizes or shapes")
        cases = tuple(itertools.chain.from_iterable(map(_group, groups)))
        if not cases:
            raise ValueError("it has no case: its groups are none, or a list in them is empty")
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are
        raise UsageError(f"--suite {name}: not a suite: {error}") from None
    return Suite(Path(name).stem, data.get("description", ""), cases)


# The fields of a group that are shapes: how many numbers an entry has, and what they are.
_SHAPES = {
    "sizes": ((1,), "N"),
    "shapes": ((3, 4), "[M, N, K] or [batch, M, N, K]"),
    # Few or many rows times weights, as layers of networks have them.
    "rows": ((1,), "M"),
    "weights": ((2,), "[N, K]"),
}
# The others are those of a case: by the first word of its annotations, what they hold.
_FIELDS = {field.name: str(field.type).split(" ")[0].split("[")[0] for field in fields(Case)}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str, "int": int, "float": (int, float), "bool": bool, "dict": dict,
}  # fmt: skip


def _group(group: dict[str, Any]) -> list[Case]:
    """The cases of a [[groups]] table: every value of every list, of every shape."""
    rest = dict(group)
    if "title" not in rest:
        raise ValueError(f"the group of {', '.join(group)} has no title, which every group needs")
    title = rest.pop("title")
    if not isinstance(title, str):
        raise ValueError(f"the group of {', '.join(group)}: title is {title!r}; expected str")
    _check_names(title, rest, {*_FIELDS, *_SHAPES} - {"m", "n", "k", "group"})
    entries = {name: _entries(title, name, rest.pop(name, [])) for name in _SHAPES}
    shapes = [[size, size, size] for (size,) in entries["sizes"]]
    shapes += entries["shapes"]
    shapes += [[m, n, k] for n, k in entries["weights"] for (m,) in entries["rows"]]
    if not shapes:
        raise ValueError(f"group {title!r}: neither sizes, shapes nor rows with weights")
    lists = {key: value for key, value in rest.items() if isinstance(value, list)}
    cases = []
    for values in itertools.product(*lists.values()):
        chosen = {**rest, **dict(zip(lists, values, strict=True))}
        _check_types(title, chosen)
        against = chosen.get("against", {})
        _check_names(title, against, {*_FIELDS} - {"against", "group"})
        _check_types(title, against)
        for *batch, m, n, k in shapes:
            case = Case(m, n, k, group=title, **chosen)
            cases.append(replace(case, batch=batch[0]) if batch else case)
    for case in cases:
        _check(case)
    return cases


def _entries(title: str, name: str, values: Any) -> list[list[int]]:
    """What one of _SHAPES has, each entry as a list; ValueError for what is none."""
    lengths, form = _SHAPES[name]
    if isinstance(values, list):
        entries = [value if isinstance(value, list) else [value] for value in values]
        numbers = itertools.chain.from_iterable(entries)
        # Not isinstance: True is an int.
        if {*map(len, entries)} <= {*lengths} and all(type(one) is int for one in numbers):
            return entries
    raise ValueError(f"group {title!r}: {name} is {values!r}; expected a list of integers {form}")


def _check_names(title: str, given: Iterable[str], known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(
                f"group {title!r}: no field is called {name!r}; there are title,"
                f" {', '.join(sorted(known))}"
            )


def _check_types(title: str, given: dict[str, Any]) -> None:
    for name, value in given.items():
        wanted = _FIELDS[name]
        if not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted != "bool"):
            raise ValueError(f"group {title!r}: {name} is {value!r}; expected {wanted}")


def _check(case: Case) -> None:
    """ValueError for fields that no case can have; the library checks the others itself."""
    allowed = {
        "layout": LAYOUTS,
        "dtype": tuple(ITEM_BYTES),
        "out_dtype": (None, *ITEM_BYTES),
        "precision": (None, *PRECISION_DTYPE),
        "broadcast": ("", "a", "b"),
        "scales": ("", "matrices", "rows", "columns", "blocks"),
    }
    for field, values in allowed.items():
        value = getattr(case, field)
        if value not in values:
            raise ValueError(f"group {case.group!r}: {field} {value!r} is not in {values}")
    if min(case.m, case.n, case.k, case.batch) < 1 or min(case.padding, case.offset) < 0:
        raise ValueError(f"group {case.group!r}: sizes and batch start at 1, padding at 0")
    if max(case.m, case.n, case.k, case.batch, case.padding, case.offset) > MOST_ELEMENTS:
        raise ValueError(f"group {case.group!r}: sizes, batch, padding and offset are up to 2^52")
    if case.scales and not (case.mode.is_fp8 and case.batch == 1):
        raise ValueError(f"group {case.group!r}: scales are for single products of FP8")
    if case.against is not None:
        _check(replace(case, against=None, **case.against))


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
