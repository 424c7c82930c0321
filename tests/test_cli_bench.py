"""`python -m tcgemm bench`: cases, suites, timing, results and plots."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import tcgemm
from cli_helpers import run
from tcgemm._cli import bench, timing
from tcgemm._cli.backends import NumpyBackend
from tcgemm._cli.bench_report import geometric_mean
from tcgemm._cli.cases import Case
from tcgemm._cli.measure import forced_family, forced_kernel, measure
from tcgemm._cli.operands import Pool
from tcgemm._cli.report import (
    Table,
    UsageError,
    digits,
    duration,
    fraction,
    rate,
    write_json,
)

pytestmark = pytest.mark.usefixtures("on_the_cpu", "without_rests")


FAST = ["bench", "--seconds", "0.02"]


def test_results_have_every_row(capsys, tmp_path):
    file = tmp_path / "bench.json"
    arguments = ["--m", "5:7", "--n", "33", "--k", "20", "--dtype", "float32,int8"]
    arguments += ["--layout", "nn,tt", "--json", str(file)]
    status, output = run(capsys, *FAST, *arguments)
    report = json.loads(file.read_text())
    assert status == 0
    assert len(report["rows"]) == 3 * 2 * 2
    assert report["summary"]["compared"] == len(report["rows"])
    for row in report["rows"]:
        assert row["kept"]
        assert row["error_over_bound"] <= 1
        assert row["kernel"].startswith("host")
        low, middle, high = row["ours"]["kernel_us"]
        assert 0 < low <= middle <= high
        assert row["ratio"] == row["peers"]["numpy"]["ratio"][1]
        assert row["lost"] == (row["ratio"] < 1)
    assert report["machine"]["versions"]["tcgemm"] == tcgemm.__version__
    assert "geometric mean" in output.out
    assert "above 1 we are faster" in output.out
    assert not list(tmp_path.glob("*.part"))


def test_results_go_through_links_and_to_devices(tmp_path, capsys):
    file, link, fifo = tmp_path / "file.json", tmp_path / "link.json", tmp_path / "fifo"
    file.write_text("before")
    link.symlink_to(file)
    assert run(capsys, *FAST, "--sizes", "16", "--json", str(link))[0] == 0
    assert link.is_symlink()
    assert len(json.loads(file.read_text())["rows"]) == 1
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert run(capsys, *FAST, "--sizes", "16,24", "--json", str(fifo))[0] == 0
    assert fifo.is_fifo()
    assert len(json.loads(os.read(reader, 1 << 20))["rows"]) == 2
    os.close(reader)
    status, output = run(capsys, *FAST, "--sizes", "16", "--json", "-")
    assert status == 0
    assert len(json.loads(output.out)["rows"]) == 1
    for command in (["bench", "--sizes", "16"], ["verify", "--k", "16"]):
        status, output = run(capsys, *command, "--json", str(tmp_path))
        assert status == 2
        assert "it is a directory" in output.err
    assert sorted(tmp_path.iterdir()) == [fifo, file, link]


@pytest.mark.parametrize(("number", "keeps"), [(errno.ENOSPC, True), (errno.EACCES, False)])
def test_a_file_that_cannot_be_replaced(tmp_path, monkeypatch, number, keeps):
    """A full disk leaves what was there; a directory that takes no other file has it rewritten."""
    file, write = tmp_path / "bench.json", Path.write_text
    file.write_text("before")

    def write_text(path, text):
        if path.suffix == ".part":
            raise OSError(number, "refused")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(UsageError, match="refused") if keeps else contextlib.nullcontext():
        write_json({}, str(file))
    assert (file.read_text() == "before") == keeps
    assert list(tmp_path.iterdir()) == [file]


def test_a_run_that_is_interrupted_shows_its_rows(tmp_path, capsys, monkeypatch):
    from tcgemm._cli import bench

    measured = iter([bench.measure, None])

    def measure(*arguments):
        its = next(measured)
        if its is None:
            raise KeyboardInterrupt
        return its(*arguments)

    monkeypatch.setattr(bench, "measure", measure)
    file = tmp_path / "bench.json"
    status, output = run(capsys, *FAST, "--sizes", "16,24,32", "--json", str(file))
    assert status == 130
    assert "interrupted" in output.err
    assert "16" in output.out
    assert len(json.loads(file.read_text())["rows"]) == 1


@pytest.mark.parametrize("how", ["--out-dtype float16", "--precision fp16 --accumulate fp16"])
def test_sums_beyond_fp16_are_not_wrong(capsys, how):
    status, output = run(capsys, *FAST, "--sizes", "64", "--dtype", "int8", *how.split())
    assert status == 0, output.out
    assert "WRONG" not in output.out


def test_one_case_that_there_is_not_leaves_the_others(capsys):
    arguments = ["--sizes", "16", "--dtype", "float32,float16", "--accumulate", "fp16"]
    status, output = run(capsys, *FAST, *arguments)
    assert status == 0
    assert "not run" in output.out


def test_a_log_tells_how_far_it_is(capsys, monkeypatch):
    arguments = [*FAST, "--sizes", "16,17,18", "--no-peers"]
    assert not run(capsys, *arguments)[1].err  # in less than ten seconds
    monkeypatch.setattr("tcgemm._cli.report._LINE_SECONDS", 0.0)
    lines = run(capsys, *arguments)[1].err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{done} of 3 done" for done in range(3)]


def test_results_are_shown_again(capsys, tmp_path):
    file, plot = tmp_path / "bench.json", tmp_path / "bench.png"
    status, first = run(capsys, *FAST, "--sizes", "16,40", "--json", str(file))
    assert status == 0
    status, again = run(capsys, "bench", "--from-json", f" {file} , ")
    assert status == 0
    assert again.out == first.out
    report = json.loads(file.read_text())
    report["rows"][0]["case"]["colour"] = "red"  # of another version
    (tmp_path / "other.json").write_text(json.dumps(report))
    status, other = run(capsys, "bench", "--from-json", str(tmp_path / "other.json"))
    assert status == 2
    assert "this version cannot read its rows: measure again" in other.err
    pytest.importorskip("matplotlib")
    status, _ = run(capsys, "bench", "--from-json", str(file), "--plot", str(plot))
    assert status == 0
    assert plot.read_bytes().startswith(b"\x89PNG")


MACHINE = {"cpu": {"name": "x", "threads": 1}, "versions": {"tcgemm": "0.1.0"}}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"device": None}, "not a result file of bench --json"),
        ({"machine": {}}, "machine has no cpu, versions: not a result file of bench --json"),
        ({"machine": []}, "machine has no cpu, versions"),
        ({"machine": {**MACHINE, "cpu": {}}}, "machine.cpu has no name, threads"),
        ({"machine": {**MACHINE, "versions": {}}}, "machine.versions has no tcgemm"),
        ({"rows": 3}, "rows is no list"),
        ({"rows": [{"not_run": "x", "case": {"m": 1, "n": 1, "k": 1}}, {}]}, "rows[1] has no case"),
        ({"rows": [3]}, "rows[0] has no case"),
        ({"rows": [{"case": {"m": 1, "n": 1, "k": 1}}]}, "rows[0] has no error_over_bound, kept"),
        ({"rows": [{"not_run": "x", "case": {}}]}, "written by tcgemm 0.1.0; this version"),
    ],
)
def test_what_a_result_file_lacks_is_named(capsys, tmp_path, changes, named):
    file = tmp_path / "bench.json"
    report = {"suite": "x", "description": "", "device": "cpu", "machine": MACHINE, "rows": []}
    report = {key: value for key, value in {**report, **changes}.items() if value is not None}
    file.write_text(json.dumps(report))
    status, output = run(capsys, "bench", "--from-json", str(file))
    assert status == 2
    assert f"--from-json {file}: " in output.err
    assert named in output.err


def test_several_files_make_one_plot(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    files, plot = [tmp_path / "a.json", tmp_path / "b.json"], tmp_path / "overview.png"
    run(capsys, *FAST, "--sizes", "16,24", "--json", str(files[0]))
    shapes = ["--m", "1,2,33", "--n", "512", "--k", "2048"]
    run(capsys, *FAST, *shapes, "--json", str(files[1]))
    names = ",".join(map(str, files))
    status, output = run(capsys, "bench", "--from-json", names, "--plot", str(plot))
    assert status == 0
    assert output.out.count("rows measured") == 2
    assert plot.read_bytes().startswith(b"\x89PNG")
    run(capsys, *FAST, "--sizes", "16", "--no-peers", "--json", str(files[0]))
    names = f"{files[0]},{files[0]}"
    status, output = run(capsys, "bench", "--from-json", names, "--plot", str(plot))
    assert status == 2
    assert "no row was compared" in output.err


def test_a_wrong_result_fails_whatever_its_speed(capsys, monkeypatch, tmp_path):
    multiply = tcgemm.matmul

    def wrong(*arguments, **keywords):
        result = multiply(*arguments, **keywords)
        result[0, 0] += 1
        return result

    monkeypatch.setattr(tcgemm, "matmul", wrong)
    status, output = run(capsys, *FAST, "--sizes", "24")
    assert status == 1
    assert "WRONG" in output.out


def test_a_row_that_cannot_run_is_shown_with_its_reason(capsys, monkeypatch):
    monkeypatch.setenv("TCGEMM_FORCE_KERNEL", "host_float64")
    status, output = run(capsys, *FAST, "--sizes", "16")
    assert status == 1  # nothing was measured
    assert "not run: 16 nn: " in output.out
    assert "1 not run" in output.out


def test_precision_with_a_conversion(capsys, tmp_path):
    file = tmp_path / "bench.json"
    arguments = ["--sizes", "48", "--precision", "fp16", "--json", str(file)]
    status, _ = run(capsys, *FAST, *arguments)
    row = json.loads(file.read_text())["rows"][0]
    assert status == 0
    assert row["precision"] == "fp16"
    assert row["peers"]["numpy"]["how"] == "np.matmul(a, b) in float32"


def test_a_suite_of_ones_own(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'description = "mine"\n[[groups]]\ntitle = "tiny"\ndtype = "float64"\n'
        'sizes = [8]\nshapes = [[3, 4, 5]]\nlayout = ["nn", "tn"]\n'
    )
    status, output = run(capsys, *FAST, "--suite", str(file))
    assert status == 0
    assert "tcgemm bench: mine" in output.out
    assert "3x4x5" in output.out
    assert "4 rows measured" in output.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--suite, --sizes"),
        (["--suite", "nosuch"], "foundation, fp8_results, layouts"),
        (["--suite", "cpu", "--dtype", "int8"], "--dtype"),
        (["--m", "4"], "--m, --n and --k"),
        (["--sizes", "x"], "--sizes x"),
        (["--sizes", "4", "--layout", "nx"], "--layout nx"),
        (["--sizes", "4", "--dtype", "float31"], "--dtype float31"),
        (["--sizes", "4", "--precision", "fp17"], "--precision fp17"),
        (["--sizes", "4", "--out-dtype", "float31"], "--out-dtype float31"),
        (["--sizes", "4", "--accumulate", "fp17"], "--accumulate fp17"),
        (["--sizes", "4", "--families", "sm00"], "--families sm00"),
        (["--sizes", "4", "--dtype", ","], "--dtype ,: expected one or more of float16"),
        (["--sizes", "4", "--layout", ","], "--layout ,: expected one or more of nn"),
        (["--sizes", "4", "--families", ","], "--families ,: expected one or more of"),
        (["--sizes", "4", "--seconds", "0"], "--seconds 0.0: expected a finite number above 0"),
        (["--sizes", "4", "--seconds", "nan"], "--seconds nan"),
        (["--sizes", "4", "--seconds", "inf"], "--seconds inf"),
        (["--sizes", "4", "--json", "/nosuch/file.json"], "--json /nosuch/file.json"),
        (["--from-json", "/nosuch/file.json"], "--from-json /nosuch/file.json"),
        (["--from-json", " ,"], "--from-json  ,: it names no file"),
        (["--from-json", "a.json", "--suite", "quick"], "--suite: --from-json measures nothing"),
        (["--from-json", "a.json", "--no-peers"], "--no-peers: --from-json measures nothing"),
        (["--from-json", "a.json", "--json", "b.json"], "--json: --from-json measures nothing"),
    ],
)
def test_wrong_arguments_are_named(capsys, arguments, named):
    status, output = run(capsys, "bench", *arguments)
    assert status == 2
    assert named in output.err
    assert "Traceback" not in output.err


def test_a_forced_family_is_restored(monkeypatch):
    import os

    with forced_family("host"):
        assert os.environ["TCGEMM_FORCE_FAMILY"] == "host"
    assert "TCGEMM_FORCE_FAMILY" not in os.environ
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", "simt")
    with forced_family("host"), forced_family(None):
        assert os.environ["TCGEMM_FORCE_FAMILY"] == "host"
    assert os.environ["TCGEMM_FORCE_FAMILY"] == "simt"


def test_a_kernel_is_forced_for_a_while(monkeypatch):
    import os

    monkeypatch.delenv("TCGEMM_FORCE_KERNEL", raising=False)
    with forced_kernel("simt_f32_64x64x16"):
        assert os.environ["TCGEMM_FORCE_KERNEL"] == "simt_f32_64x64x16"
    assert "TCGEMM_FORCE_KERNEL" not in os.environ


def test_a_family_that_refuses_is_not_run():
    row = measure(Pool(NumpyBackend()), Case(8, 8, 8, family="nosuch"), 0.01)
    assert row["not_run"] == "family nosuch is not in this build"
    assert "kept" not in row


def test_contenders_take_turns_on_the_same_sets():
    seen = []
    work = {name: [lambda n=name, i=i: seen.append((n, i)) for i in range(3)] for name in "ab"}
    contenders = [timing.Contender(name, works, works) for name, works in work.items()]
    timing.time_kernels(NumpyBackend(), contenders, 0.05)
    assert {index for _, index in seen} == {0, 1, 2}
    for contender in contenders:
        assert contender.launches % 3 == 0
        assert len(contender.kernel_seconds) >= 5
    assert len(contenders[0].kernel_seconds) == len(contenders[1].kernel_seconds)


def test_times_are_those_of_the_work():
    works = [lambda: time.sleep(0.02)]
    contender = timing.Contender("sleeper", works, works)
    timing.time_kernels(NumpyBackend(), [contender], 0.01)
    timing.time_calls(NumpyBackend(), [contender], 0.01)
    for values in (contender.kernel_seconds, contender.call_seconds):
        assert 0.02 <= timing.quartiles(values)[1] < 0.2


class PretendedGpu(NumpyBackend):
    """Says that it is a GPU, and captures work by counting how often it is replayed."""

    device = "cuda:0"

    def __init__(self, captures):
        self.captures, self.replays = captures, 0

    def graph(self, work):
        def replay():
            self.replays += 1
            work()

        return replay if self.captures else None


@pytest.mark.parametrize(
    ("seconds", "captures", "method"),
    [(0, True, "graph"), (0, False, "events"), (1e-3, True, "events")],
)
def test_short_launches_are_timed_in_a_graph(seconds, captures, method):
    backend = PretendedGpu(captures)
    works = [(lambda: time.sleep(seconds)) if seconds else (lambda: None)] * 3
    contender = timing.Contender("work", works, works)
    timing.time_kernels(backend, [contender], 0.01)
    assert contender.method == method
    assert backend.replays == (len(contender.kernel_seconds) if method == "graph" else 0)
    # Whole turns through the works; one launch where the machine is so busy that it fills a round.
    assert contender.launches % 3 == 0 or (seconds and contender.launches == 1)


def test_the_fastest_candidate_is_found():
    backend = PretendedGpu(True)
    candidates = [[lambda s=s: time.sleep(s)] * 2 for s in (4e-3, 0.0, 1e-3, 8e-3, 2e-3)]
    assert timing.fastest(backend, candidates) == 1


def test_who_is_never_called_has_no_call_time():
    contender = timing.Contender("library", [lambda: None], ())
    timing.time_kernels(NumpyBackend(), [contender], 0.01)
    timing.time_calls(NumpyBackend(), [contender], 0.01)
    assert "kernel_us" in contender.timing()
    assert "call_us" not in contender.timing()


def test_all_are_timed_in_graphs_or_none():
    backend = PretendedGpu(True)
    captured = iter([lambda: None, None])  # the first contender's work is captured, then no more
    backend.graph = lambda work: next(captured)
    contenders = [timing.Contender(name, [lambda: None], []) for name in "ab"]
    timing.time_kernels(backend, contenders, 0.01)
    assert [contender.method for contender in contenders] == ["events", "events"]


def test_ratio_is_paired_by_rounds():
    low, middle, high = timing.ratio([2.0, 4.0, 8.0], [1.0, 2.0, 4.0])
    assert (low, middle, high) == (2.0, 2.0, 2.0)
    assert timing.ratio([1.0, 1.0], [1.0, 1.0], 0.5) == [0.5, 0.5, 0.5]


def test_operand_sets_exceed_the_cache():
    backend = NumpyBackend()
    sets = timing.operand_sets(backend, 1 << 20, 1 << 20)
    assert sets == 512 or sets << 20 > 2 * backend.cache_bytes()
    assert timing.operand_sets(backend, 1 << 20, 1 << 50) == 1


def test_geometric_mean():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert np.isnan(geometric_mean([]))


def test_numbers_for_people():
    assert duration(1.5) == "1.50 s"
    assert duration(0.0123) == "12.3 ms"
    assert duration(4.2e-7) == "0.420 us"
    assert rate(2e12, 1.0) == "2.00 TFLOP/s"
    assert rate(2e9, 1.0, "OP") == "2.00 GOP/s"
    assert digits(123456) == "123456"
    assert fraction(0) == "exact"
    assert fraction(None) == "inf"
    assert fraction(0.25) == "0.250"


def test_a_plain_table_is_aligned():
    table = Table(["<name", "value"])
    table.add("a", "1")
    table.add("long", "1000")
    assert table.lines() == ["name  value", "----  -----", "a         1", "long   1000"]
    assert table.markdown()[1] == "| --- | ---: |"


@pytest.mark.gpu
@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_bench_on_the_gpu(capsys, tmp_path, monkeypatch, framework):
    pytest.importorskip(framework)
    monkeypatch.delenv("TCGEMM_DEVICE")
    monkeypatch.setattr(timing, "_GRAPH_BELOW", 10)  # seconds: others may use the GPU meanwhile
    file = tmp_path / "bench.json"
    arguments = ["--sizes", "128,130", "--dtype", "float16,float32", "--framework", framework]
    status, _ = run(capsys, *FAST, *arguments, "--json", str(file))
    report = json.loads(file.read_text())
    assert status == 0
    assert report["device"] == "cuda:0"
    for row in report["rows"]:
        assert row["kept"]
        assert set(row["peers"]) == {"cublas", "cublaslt"}
        assert row["ratio"] == min(peer["ratio"][1] for peer in row["peers"].values())
        assert row["peers"]["cublaslt"]["error_over_bound"] <= 1
        # CuPy refuses to call cuBLAS while a graph is captured.
        assert row["ours"]["method"] == ("graph" if framework == "torch" else "events")


def test_a_cpu_is_warned_of_hours(capsys, monkeypatch):
    monkeypatch.setattr(bench, "_LONG_MINUTES", 0)
    arguments = ["bench", "--sizes", "16", "--seconds", "0.01", "--device", "cpu", "--no-peers"]
    status, output = run(capsys, *arguments)
    assert status == 0
    assert "minutes on this CPU" in output.err


def test_nobody_is_timed_beside_what_the_one_before_left_running(monkeypatch):
    """OpenBLAS's threads look for work for a while after a call."""
    done = []
    monkeypatch.setattr(NumpyBackend, "rest", lambda _: done.append("rest"))
    work = {name: [lambda name=name: done.append(name)] for name in "ab"}
    for count in (2, 1):
        contenders = [timing.Contender(name, its, its) for name, its in work.items()][:count]
        for time_them in (timing.time_kernels, timing.time_calls):
            done.clear()
            time_them(NumpyBackend(), contenders, 0.001)
            turns = "".join(done).split("rest")[1:]
            assert bool(turns) == (count == 2)
            assert all(len(set(turn)) == 1 for turn in turns)
