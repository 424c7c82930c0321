"""`bench` and `verify --from-json` of files that are damaged: 2 and a line that names the file."""

from __future__ import annotations

import copy
import json

import pytest
from cli_helpers import run

pytestmark = pytest.mark.usefixtures("on_the_cpu", "without_rests")

WRONG = [None, "x", "\ud800", [], {}, 0, -1, 10**400, float("inf"), float("nan")]
MEASURE = {
    "bench": ["bench", "--sizes", "8,9", "--seconds", "0.01"],
    "verify": ["verify", "--k", "16", "--modes", "fp32", "--m", "2", "--n", "2", "--peers"],
}
each_command = pytest.mark.parametrize("command", MEASURE)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "results.json"


@pytest.fixture
def report(command, capsys, file):
    assert run(capsys, *MEASURE[command], "--json", str(file))[0] == 0
    return json.loads(file.read_text())


def places(part, way=()):
    """The way to each field and each element of a list."""
    within = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in within:
        yield (*way, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*way, key))


def damaged(report, way, *value):
    """With another value in a place, or without any."""
    changed = copy.deepcopy(report)
    *outer, last = way
    part = changed
    for key in outer:
        part = part[key]
    if value:
        part[last] = value[0]
    else:
        del part[last]
    return changed


@each_command
def test_each_field_may_be_wrong(command, report, capsys, file):
    refused = 0
    for way in places(report):
        for value in [(), *((value,) for value in WRONG)]:
            file.write_text(json.dumps(damaged(report, way, *value)))
            status, output = run(capsys, command, "--from-json", str(file))
            assert status in (0, 1, 2), (way, value)
            assert "--debug" not in output.err, (way, value)
            if status == 2:
                assert not output.out, (way, value)
                assert output.err.startswith(f"tcgemm: error: --from-json {file}: "), (way, value)
                assert (
                    f"not a result file of {command} --json" in output.err or "again" in output.err
                )
                refused += 1
    assert refused > 100


@each_command
def test_what_only_a_plot_reads_may_be_wrong(command, report, capsys, file, tmp_path):
    pytest.importorskip("matplotlib")
    way = ("rows", 0, "ratio") if command == "bench" else ("results", 0, "gate")
    file.write_text(json.dumps(damaged(report, way, "x")))
    plot = ["--plot", str(tmp_path / "a.png")]
    status, output = run(capsys, command, "--from-json", str(file), *plot)
    assert status == 2
    assert f"--from-json {file}: a field is missing or wrong" in output.err


@each_command
def test_a_file_nested_without_end_is_none(command, capsys, file):
    file.write_text("[" * 100_000)
    status, output = run(capsys, command, "--from-json", str(file))
    assert (status, output.out) == (2, "")
    assert f"--from-json {file}: no JSON" in output.err
