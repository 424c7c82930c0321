"""Tables, progress and number formats for a terminal: with rich where it is installed."""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.util
import io
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar, cast

from tcgemm._output import note

Value = TypeVar("Value")
BAD = "bold red"
# The directory takes no file beside this one, or not in its place: it is written as it is.
_NO_OTHER_FILE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
# What a field of a result file that is missing, or no number, ends in where it is used.
_OF_A_FIELD = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_RULE_WIDTH = 100
_LINE_SECONDS = 10.0  # between lines of progress in a log


class UsageError(Exception):
    """A wrong argument; the message names it."""


def number(
    option: str, read: Callable[[str], Value], accepts: Callable[[Value], bool], required: str
) -> Callable[[str], Value]:
    """A type for argparse, whose own message would not say what is required: UsageError does."""

    def parse(text: str) -> Value:
        given: Any = text
        with suppress(ValueError):
            given = read(text)
            if accepts(given):
                return cast("Value", given)
        raise UsageError(f"{option} {given}: expected {required}" if text else _empty(option))

    return parse


def _empty(option: str) -> str:
    return f'{option} "": it is empty; give it a value, or leave it out'


def refuse_empty(arguments: argparse.Namespace) -> None:
    """An option that is there and empty, as by a variable of the shell without a value, is a slip.

    Commands ask whether an option was given by whether it says something.
    """
    for name, value in vars(arguments).items():
        if value == "":
            raise UsageError(_empty("--" + name.replace("_", "-")))


def refuse_beside(arguments: argparse.Namespace, ruling: str, why: str, *others: str) -> None:
    """Refuse options that option `ruling` makes meaningless, for `why`; all but `others`."""
    for name, default in vars(arguments.parser.parse_args([])).items():
        option = "--" + name.replace("_", "-")
        if option != ruling and name not in others and getattr(arguments, name) != default:
            raise UsageError(f"{option}: {ruling} {why}; leave out one of the two")


def is_stream(path: str) -> bool:
    """Whether results go there once, at the end: "-", standard output, or what is no file."""
    target = Path(path)
    return path == "-" or (target.exists() and not target.is_file())


def check_can_write(path: str, plot: str | None = None) -> None:
    """Before anything is measured. `plot`: where a picture goes."""
    if path == "-":
        if getattr(sys.stdout, "name", None) == os.devnull:  # by open_streams, not by a shell
            raise UsageError("--json -: standard output is closed")
        return
    target = Path(path)
    reason = None
    if plot is not None and target.resolve() == Path(plot).resolve():
        raise UsageError(f"--json {path}: --plot names the same file; give it another name")
    if target.is_dir():
        reason = "it is a directory"
    elif not target.exists() and not target.resolve().parent.is_dir():
        reason = "there is no such directory"
    elif not os.access(target if target.exists() else target.resolve().parent, os.W_OK):
        reason = "permission denied"
    if reason is not None:
        raise UsageError(f"--json {path}: {reason}")


def write_json(report: dict[str, Any], path: str) -> None:
    """A file whole or not at all, links and devices as what they are."""
    text = json.dumps(report, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        if not is_stream(path):
            target = Path(path).resolve()
            partial = target.with_name(target.name + ".part")
            try:
                partial.write_text(text)
                partial.replace(target)
                return
            except OSError as error:
                partial.unlink(missing_ok=True)
                if error.errno not in _NO_OTHER_FILE:
                    raise
        Path(path).write_text(text)
    except OSError as error:
        raise UsageError(f"--json {path}: {error.strerror}") from None


def read_results(
    path: str, command: str, keys: set[str], items: str, item_keys: set[str], measured: set[str]
) -> dict[str, Any]:
    """What `command --json` wrote: UsageError where it lacks any of what is shown of it.

    Its list `items` has items with `item_keys` and, where they were run, those that are `measured`.
    """

    def require(part: Any, needed: set[str], name: str) -> None:
        missing = needed - part.keys() if isinstance(part, dict) else needed
        if missing:
            refuse(f"{name} has no {', '.join(sorted(missing))}")

    def refuse(what: str) -> NoReturn:
        raise _no_result(path, command, what)

    try:
        with open(path) as file:
            report = json.load(file)
    except OSError as error:
        raise UsageError(f"--from-json {path}: {error.strerror}") from None
    except (ValueError, RecursionError):  # JSONDecodeError and UnicodeDecodeError are the first
        refuse("no JSON")
    require(report, {*keys, "machine", items}, "it")
    facts = report["machine"]
    require(facts, {"cpu", "versions"}, "machine")
    require(facts["cpu"], {"name", "threads"}, "machine.cpu")
    require(facts["versions"], {"tcgemm"}, "machine.versions")
    if not isinstance(report[items], list):
        refuse(f"{items} is no list")
    for place, item in enumerate(report[items]):
        require(item, item_keys, f"{items}[{place}]")
        if "not_run" not in item:
            require(item, measured, f"{items}[{place}]")
    return cast("dict[str, Any]", report)


def _no_result(path: str, command: str, what: str) -> UsageError:
    others = {"bench": "verify", "verify": "bench"}
    return UsageError(
        f"--from-json {path}: {what}: not a result file of {command} --json "
        f"(those of {others[command]} are for {others[command]} --from-json)"
    )


@contextmanager
def blame(path: str | None, command: str) -> Iterator[None]:
    """What fails on results that were read from `path` is an error of that file: UsageError.

    With None, which are results just measured, it is one of our own.
    """
    try:
        yield
    except _OF_A_FIELD as error:
        if path is None:
            raise
        raise _no_result(path, command, f"a field is missing or wrong ({error})") from error


def rehearse(path: str, command: str, show: Callable[[], None]) -> None:
    """Show results that were read from `path` to nobody: UsageError before anything is printed."""
    nowhere = io.TextIOWrapper(io.BytesIO(), "utf-8")  # which has no bytes for lone surrogates
    with blame(path, command), redirect_stdout(nowhere):
        show()


@dataclass
class Table:
    """Columns named "<name" are aligned to the left, others to the right."""

    columns: Sequence[str]
    title: str = ""
    rows: list[tuple[Sequence[str], str]] = field(default_factory=list)

    def add(self, *cells: str, style: str = "") -> None:
        self.rows.append((cells, style))

    def print(self) -> None:
        if has_rich() and sys.stdout.isatty():
            self._print_rich()
        else:
            print("\n".join(self.lines()))

    def lines(self) -> list[str]:
        names = [column.removeprefix("<") for column in self.columns]
        left = [column.startswith("<") for column in self.columns]
        cells = [names, *(row for row, _ in self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(names))]

        def line(row: Sequence[str]) -> str:
            padded = (
                cell.ljust(width) if to_left else cell.rjust(width)
                for cell, width, to_left in zip(row, widths, left, strict=True)
            )
            return "  ".join(padded).rstrip()

        body = [line(names), "  ".join("-" * width for width in widths)]
        body += [line(row) for row, _ in self.rows]
        return [self.title, *body] if self.title else body

    def markdown(self) -> list[str]:
        names = [column.removeprefix("<") for column in self.columns]
        rules = ["---" if column.startswith("<") else "---:" for column in self.columns]
        return [f"| {' | '.join(row)} |" for row in (names, rules, *(row for row, _ in self.rows))]

    def _print_rich(self) -> None:
        table = importlib.import_module("rich.table").Table(
            title=self.title.strip() or None,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
        )
        box = importlib.import_module("rich.box")
        table.box = box.SIMPLE_HEAD
        for column in self.columns:
            justify = "left" if column.startswith("<") else "right"
            table.add_column(column.removeprefix("<"), justify=justify, no_wrap=True)
        escape = importlib.import_module("rich.markup").escape
        for row, style in self.rows:
            table.add_row(*(escape(cell) for cell in row), style=style)
        # Wide enough for every cell: a terminal wraps a line where rich would cut the numbers.
        needed = max(map(len, self.lines())) + 2 * len(self.columns)
        console = importlib.import_module("rich.console").Console(
            width=max(shutil.get_terminal_size().columns, needed), highlight=False
        )
        console.print(table)


def has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None


class Progress(Protocol):
    def step(self, label: str) -> None:
        """The next of the items begins."""


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A bar on stderr where that is a terminal, else a line there now and then."""
    if not sys.stderr.isatty():
        yield _Lines(total)
    elif has_rich():
        module = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
        with module.Progress(
            module.TextColumn("{task.description}"),
            module.BarColumn(),
            module.MofNCompleteColumn(),
            module.TimeElapsedColumn(),
            console=console,
            transient=True,
        ) as bar:
            yield _Rich(bar, total)
    else:
        plain = _Plain(total)
        try:
            yield plain
        finally:
            plain.clear()


class _Lines:
    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._last = time.monotonic()

    def step(self, label: str) -> None:
        if time.monotonic() - self._last >= _LINE_SECONDS:
            self._last = time.monotonic()
            note(f"{self._done} of {self._total} done, next: {label}")
        self._done += 1


class _Rich:
    def __init__(self, bar: Any, total: int) -> None:
        self._bar, self._started = bar, False
        self._task = bar.add_task("", total=total)

    def step(self, label: str) -> None:
        if self._started:
            self._bar.advance(self._task)
        self._started = True
        self._bar.update(self._task, description=label)


class _Plain:
    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def step(self, label: str) -> None:
        filled = 24 * self._done // max(1, self._total)
        bar = "#" * filled + "." * (24 - filled)
        note(f"\r\033[K[{bar}] {self._done}/{self._total} {label}", end="")
        self._done += 1

    def clear(self) -> None:
        note("\r\033[K", end="")


def heading(text: str) -> None:
    """A title with a rule under it."""
    width = min(_RULE_WIDTH, shutil.get_terminal_size().columns)
    print(f"{text}\n{'=' * min(width, len(text))}")


def duration(seconds: float) -> str:
    """With a unit that leaves one to three digits before the point."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{digits(seconds * scale)} {unit}"
    raise AssertionError("unreachable")


def rate(operations: float, seconds: float, unit: str = "FLOP") -> str:
    """Operations a second: GFLOP/s below 1 TFLOP/s."""
    per_second = operations / seconds
    prefix, scale = ("T", 1e12) if per_second >= 1e12 else ("G", 1e9)
    return f"{digits(per_second / scale)} {prefix}{unit}/s"


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 4)}f}"


def scientific(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "inf"
    return "0" if value == 0 else f"{value:.1e}"


def fraction(value: float | None) -> str:
    """An error over its bound."""
    if value is None or not math.isfinite(value):
        return "inf"
    if value == 0:
        return "exact"
    return f"{value:.3f}" if 0.0005 <= value < 1000 else f"{value:.0e}"
