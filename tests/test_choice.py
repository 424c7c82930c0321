"""benchmarks/choice.py: what it draws, and what it says of a table of results."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def choice():
    spec = importlib.util.spec_from_file_location("choice", BENCHMARKS / "choice.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_products_are_the_same_for_a_seed(choice):
    cases = choice.draw(80, seed=1)
    assert cases == choice.draw(80, seed=1) != choice.draw(80, seed=2)
    assert {(case.dtype, case.precision) for case in cases} == set(choice.KINDS)
    assert {(case.padding, case.offset) for case in cases} >= {(0, 0), (3, 0), (0, 1)}
    assert all(2e5 < case.operations < 1.5e11 for case in cases)


def test_results_are_shown_again(choice, tmp_path, monkeypatch, capsys):
    table = tmp_path / "choice.tsv"
    header = "\t".join([*choice.CASE, *choice.TIMES])
    table.write_text(
        f"{header}\n"
        "float16\t\tnn\t64\t64\t64\t1\t3\t1\tslow\t1\t6.00\tfast\t4.00\tcublas\t3.00\n"
        "float16\t\tnt\t64\t64\t8\t1\t\t\tfast\t1\t2.00\tfast\t2.01\tcublas\t4.00\n"
        "int8\t\tnt\t8\t8\t8\t9\t\t\tfast\t1\t2.00\tfast\t2.00\t\t\n"
    )
    monkeypatch.setattr(sys, "argv", ["choice.py", "--from-tsv", str(table)])
    assert choice.main() == 0
    said = capsys.readouterr().out
    assert "1.50  float16  nn 64 64 64 1 3 1: slow 6.0, fast 4.00" in said
    assert "float16: 2 products, loss 22.5%, 1.00 of the best peer's speed" in said
    assert "int8: 1 products, loss 0.0%" in said


def test_committed_results_are_of_its_products(choice):
    results = BENCHMARKS / "results" / "h200"
    if not results.exists():
        pytest.skip("a source distribution has no results")
    with open(results / "choice.tsv") as file:
        rows = list(choice.csv.DictReader(file, delimiter="\t"))
    drawn = choice.draw(420, seed=77) + choice.draw(600, seed=78)
    said = [tuple(row[name] for name in choice.CASE) for row in rows]
    assert said == [tuple(str(getattr(case, name) or "") for name in choice.CASE) for case in drawn]


def test_what_measures_needs_pytorch(choice, monkeypatch, capsys):
    monkeypatch.setattr(choice, "installed", lambda _: False)
    monkeypatch.setattr(sys, "argv", ["choice.py"])
    with pytest.raises(SystemExit):
        choice.main()
    assert "error: needs PyTorch, which is not installed" in capsys.readouterr().err
