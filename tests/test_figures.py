"""README.md and docs/performance.md state what the result files under benchmarks/results say."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tcgemm._cli.bench_report import geometric_mean

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
README, PERFORMANCE = ROOT / "README.md", ROOT / "docs" / "performance.md"
pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="the tests are not in the repository")

# README's rows of suites.
SUITES = [
    *("aligned", "layouts", "odd", "uneven", "padded", "decode", "long_k", "rank_k", "tall"),
    *("batched", "output", "batch_invariant", "random", "small", "short_k", "few_rows"),
    *("cuda_cores", "fp8_results", "scaled"),
]
# Its rows of other modes, by how they begin: how the titles of their groups in the suite `modes`
# begin, and which of these rows.
Choice = Callable[[dict[str, Any]], bool]


def transposed(case: dict[str, Any]) -> bool:
    return case["layout"] == "nt"


def other_layouts(case: dict[str, Any]) -> bool:
    return case["layout"] != "nt"


def every(_: dict[str, Any]) -> bool:
    return True


OF_MODES: dict[str, tuple[str, Choice]] = {
    "FP32, against SGEMM": ("FP32", lambda case: case["m"] == 4096),
    "TF32": ("TF32", lambda case: case["group"] == "TF32"),  # not its odd sizes
    "FP64": ("FP64", every),
    "INT8, B transposed": ("INT8", transposed),
    "INT8, other": ("INT8", other_layouts),
    "FP8 fast, B transposed": ("FP8 E4M3, fast", transposed),
    "FP8 promoted": ("FP8 E4M3, promoted", transposed),
    "FP8, other": ("FP8 E4M3", other_layouts),
    "FP16, promoted": ("FP16, promoted", every),
}


def rows_of(path: str) -> list[tuple[dict[str, Any], float]]:
    """Case and ratio of the rows that have a peer: its time over ours."""
    report = json.loads((RESULTS / path).read_text())
    return [
        (row["case"], row["peers"][row["peer"]]["ratio"][1])
        for row in report["rows"]
        if row.get("peer") in row.get("peers", ())
    ]


def ratios(gpu: str, suite: str) -> list[float]:
    return [ratio for _, ratio in rows_of(f"{gpu}/{suite}.json")]


def figures_of(measured: Sequence[float]) -> dict[str, float]:
    return {
        "rows": len(measured),
        "mean": geometric_mean(measured),
        "least": min(measured),
        "most": max(measured),
        "lost": sum(ratio < 1 for ratio in measured),
        "by_5": sum(ratio <= 0.95 for ratio in measured),
    }


class Figures:
    """Compares numbers in a text, in as many digits as they have there."""

    def __init__(self, file: Path) -> None:
        self.text, self._name = file.read_text(), file.name
        self._wrong: list[str] = []

    def rows(self, begin: str) -> list[list[str]]:
        """The cells of the rows of tables under the header that begins so."""
        _, _, rest = self.text.partition(f"\n{begin}")
        assert rest, f"{self._name} has no table that begins with {begin!r}"
        body = rest.partition("\n\n")[0].splitlines()[2:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]

    def check(self, what: str, stated: str, values: Sequence[float], source: str) -> None:
        """`stated`: one number, which all values round to, or "least to most"."""
        numbers = re.findall(r"\d+(?:\.\d+)?", stated.partition("(")[0])
        first, last = numbers[0], numbers[-1]
        low, high = (
            f"{value:.{len(number.partition('.')[2])}f}"
            for number, value in ((first, min(values)), (last, max(values)))
        )
        if (low, high) != (first, last):
            found = low if low == high else f"{low} to {high}"
            self._wrong.append(f"{self._name}, {what}: {stated}, but {source} has {found}")

    def all_right(self) -> None:
        if self._wrong:
            pytest.fail("\n".join(self._wrong), pytrace=False)


def found_by(label: str, table: dict[str, Any]) -> Any:
    found = [value for begin, value in table.items() if f"{label} |".startswith(begin)]
    assert len(found) == 1, f"README.md's row {label!r} is not in the tables of this test"
    return found[0]


def test_the_readmes_tables_are_of_the_result_files():
    figures = Figures(README)
    columns = ("rows", "mean", "least", "lost", "by_5")
    suites = figures.rows("| suite | products ")
    assert [row[0].strip("`") for row in suites] == SUITES
    for suite, (_, _, *cells) in zip(SUITES, suites, strict=True):
        values = figures_of(ratios("h200", suite))
        for name, stated in zip(columns, cells, strict=True):
            figures.check(f"{name} of {suite}", stated, [values[name]], f"h200/{suite}.json")
    modes = figures.rows("| mode | sizes | speed |")
    assert len(modes) == len(OF_MODES)
    for mode, sizes, span in modes:
        title, chosen = found_by(mode, OF_MODES)
        some = [
            (case["m"], ratio)
            for case, ratio in rows_of("h200/modes.json")
            if case["group"].startswith(title) and chosen(case)
        ]
        figures.check(f"sizes of {mode!r}", sizes, [size for size, _ in some], "h200/modes.json")
        figures.check(f"range of {mode!r}", span, [ratio for _, ratio in some], "h200/modes.json")
    figures.all_right()


def test_what_is_said_of_random_products_is_of_the_result_files():
    figures = Figures(PERFORMANCE)
    said = re.search(
        r"Half of them are at ([\d.]+) or more, one in ten at ([\d.]+) or less: (.+?)\. "
        r"(\d+) of the (\d+) are lost, (\d+) of them by 5 %",
        " ".join(figures.text.split()),
    )
    assert said, "performance.md does not say how fast random products are"
    rows = sorted(rows_of("h200/random.json"), key=lambda row: row[1])
    measured = [ratio for _, ratio in rows]
    half, tenth, means, lost, count, by_5 = said.groups()
    source = "h200/random.json"
    figures.check("half of random", half, [measured[len(rows) // 2]], source)
    figures.check("a tenth of random", tenth, [measured[len(rows) // 10]], source)
    counts = figures_of(measured)
    for name, stated in (("lost", lost), ("rows", count), ("by_5", by_5)):
        figures.check(f"{name} of random", stated, [counts[name]], source)
    groups = {case["group"] for case, _ in rows}
    for mean in means.split(", "):
        name, stated = mean.removesuffix(" in the mean").rsplit(" ", 1)
        groups.remove(name)
        its = [ratio for case, ratio in rows if case["group"] == name]
        figures.check(f"mean of random {name}", stated, [geometric_mean(its)], source)
    assert not groups
    figures.all_right()


def test_the_readmes_first_sentence_is_of_the_result_files():
    figures = Figures(README)
    text = " ".join(figures.text.split())
    first = re.search(r"run at ([0-9. to]+) times the .{,60} aligned sizes, ([0-9.]+) times", text)
    assert first, "README.md does not begin with the speed of aligned and odd sizes"
    for stated, suites in zip(first.groups(), (("aligned", "layouts"), ("odd",)), strict=True):
        means = [geometric_mean(ratios("h200", suite)) for suite in suites]
        figures.check(f"mean of {' and '.join(suites)}", stated, means, f"h200/{suites[0]}.json")
    figures.all_right()


def test_the_table_of_suites_is_of_the_result_files():
    figures = Figures(PERFORMANCE)
    columns = ("rows", "mean", "least", "most", "lost")
    for label, *cells, h100_mean, h100_least, _ in figures.rows("| suite | H200: rows |"):
        suite = label.split("`")[1]
        for gpu, names, stated in (
            ("h200", columns, cells),
            ("h100", ("mean", "least"), (h100_mean, h100_least)),
        ):
            if gpu == "h100" and not any(stated):
                continue  # not measured there
            commit = json.loads((RESULTS / gpu / f"{suite}.json").read_text())["machine"]["commit"]
            assert commit[:7] in figures.text, f"{PERFORMANCE.name} does not name {commit}: {suite}"
            values = figures_of(ratios(gpu, suite))
            for name, cell in zip(names, stated, strict=True):
                if cell:
                    what = f"{name} of {suite} on an {gpu.upper()}"
                    figures.check(what, cell, [values[name]], f"{gpu}/{suite}.json")
    figures.all_right()
