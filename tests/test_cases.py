"""Every named case is tested, or says why it is not yet."""

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
CASES = tomllib.loads((HERE / "cases.toml").read_text())
COUNTS = {"N": 23, "S": 9, "D": 7, "B": 12, "E": 7, "P": 11}


def test_all_69_cases_are_listed():
    assert {group: len(cases) for group, cases in CASES.items()} == COUNTS
    assert all(name.startswith(group) for group, cases in CASES.items() for name in cases)


def test_each_case_has_a_test_or_a_reason():
    tested = set()
    for file in HERE.glob("test_*.py"):
        tested |= {x.upper() for x in re.findall(r"def test_([nsdbep]\d\d)_", file.read_text())}
    cases = {name: facts for group in CASES.values() for name, facts in group.items()}
    assert tested <= set(cases), "a test is named after a case that does not exist"
    for name, facts in cases.items():
        if name in tested:
            assert "not_yet" not in facts, f"{name} has tests and a reason for having none"
        else:
            assert facts.get("not_yet"), f"{name} {facts['title']} has neither test nor reason"
