"""Fixtures (the lab that forces the family under test), and the printed list of the cases."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from frameworks import place  # noqa: F401 (a fixture)
from harness import WORST, Lab, families

CASES_FILE = Path(__file__).with_name("cases.toml")
CASE_OF_TEST = re.compile(r"test_([nsdbep]\d\d)_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="also run the tests marked slow: large sizes and long runs, for a machine with a GPU",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "modes(only=predicate): the modes that a test of `mode` is for"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    no_gpu = pytest.mark.skip(reason="no GPU on this machine")
    one_gpu = pytest.mark.skip(reason="one GPU only")
    not_thorough = pytest.mark.skip(reason="only with --thorough")
    for item in items:
        if item.get_closest_marker("gpu") and not families.has_gpu():
            item.add_marker(no_gpu)
        elif item.get_closest_marker("multi_gpu") and not families.has_several_gpus():
            item.add_marker(one_gpu)
        if item.get_closest_marker("slow") and not config.getoption("--thorough"):
            item.add_marker(not_thorough)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`mode` together with `lab`: each mode that the family is written down to take. `lab` alone:
    each family that this machine can run."""
    if "lab" not in metafunc.fixturenames:
        return
    here = families.runnable()
    if "mode" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("modes")
        pairs = families.with_modes(here, only.kwargs["only"] if only else None)
        ids = [f"{family}-{mode}" for family, mode in pairs]
        metafunc.parametrize(("lab", "mode"), pairs, ids=ids, indirect=["lab"])
    else:
        metafunc.parametrize("lab", here, indirect=True)


@pytest.fixture
def lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The library with one family forced."""
    import tcgemm

    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", request.param)
    if request.param == "host":
        monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    return Lab(tcgemm, request.param)


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands may change the device; here it is set, and restored afterwards."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)


@pytest.fixture
def without_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is timed where the times do not matter."""
    from tcgemm._cli.backends import NumpyBackend

    monkeypatch.setattr(NumpyBackend, "rest", lambda _: None)


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans give results that are wrong in one element."""
    import tcgemm
    from cli_helpers import Damaged

    make = tcgemm.plan
    monkeypatch.setattr(tcgemm, "plan", lambda *a, **k: Damaged(make(*a, **k)))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Seeded by the test's own name: a failure repeats, and no two tests share their data."""
    return np.random.default_rng(list(request.node.name.encode()))


# ---- the list of the named cases ----

_outcomes: dict[str, set[str]] = {}
_skip_reasons: dict[str, set[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    found = CASE_OF_TEST.search(report.nodeid)
    if found is None:
        return
    case = found[1].upper()
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
        _skip_reasons.setdefault(case, set()).add(reason.removeprefix("Skipped: "))
    elif report.when == "call" or report.failed:
        _outcomes.setdefault(case, set()).add(report.outcome)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    write = terminalreporter.write_line
    if WORST:
        terminalreporter.section("largest errors, as parts of their limits")
        write(f"{'family':<10} {'mode':<22} {'checks':>7} {'elements':>12} {'hard':>8} {'gate':>8}")
        for (family, mode), worst in sorted(WORST.items()):
            write(
                f"{family:<10} {mode:<22} {worst.checks:>7} {worst.elements:>12} "
                f"{worst.of_hard:>8.3f} {worst.of_gate:>8.3f}"
            )
    cases = {
        k: v for group in tomllib.loads(CASES_FILE.read_text()).values() for k, v in group.items()
    }
    run = [case for case in cases if case in _outcomes]
    terminalreporter.section(f"named cases: {len(run)} of {len(cases)} run")
    write("run: " + " ".join(run))
    unselected = []
    for case, facts in cases.items():
        skipped = "; ".join(sorted(_skip_reasons.get(case, ())))
        if case in run:
            if "failed" in _outcomes[case]:
                write(f"{case} {facts['title']}: FAILED")
            elif skipped:
                write(f"{case} {facts['title']}: in part; not yet run here: {skipped}")
        else:
            reason = facts.get("not_yet") or skipped
            if reason:
                write(f"{case} {facts['title']}: not yet run: {reason}")
            else:
                unselected.append(case)
    if unselected:
        write("not selected in this call: " + " ".join(unselected))
