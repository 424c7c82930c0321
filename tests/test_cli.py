"""`python -m tcgemm`: info, demo and verify, on the CPU and, where there is one, on a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tcgemm
from cli_helpers import run
from tcgemm._cli import main
from tcgemm._cli.modes import MODES

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_no_command_prints_help(capsys):
    status, output = run(capsys)
    assert status == 0
    assert "usage: python -m tcgemm" in output.out
    for command in ("info", "demo", "verify", "bench"):
        assert command in output.out


@pytest.mark.parametrize("command", ["info", "demo", "verify", "bench"])
def test_help_of_each_command(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"python -m tcgemm {command}" in capsys.readouterr().out


def test_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "tcgemm", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"tcgemm {tcgemm.__version__}"


def test_a_closed_pipe_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "tcgemm", "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in errors


def run_by_shell(redirection, *arguments):
    """As a user types it, with a stream closed."""
    line = f'exec "$0" -m tcgemm "$@" {redirection}'
    command = ["sh", "-c", line, sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["info"], "all well"),
        (["demo", "--size", "32"], "keep their promise"),
        (["verify", "--k", "16", "--modes", "fp32"], "all 4 kept"),
        (["bench", "--sizes", "32", "--seconds", "0.01"], "every timed result is within its bound"),
    ],
    ids=lambda x: x[0] if isinstance(x, list) else "",
)
def test_a_closed_stream_takes_nothing_from_the_other(arguments, shown):
    done = run_by_shell("2>&-", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout
    done = run_by_shell(">&-", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run_by_shell(">&- 2>&-", *arguments).returncode == 0


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_no_file_takes_the_number_of_a_closed_stream(tmp_path, closed):
    script = "import os, sys; from tcgemm._output import open_streams\n"
    script += "with open_streams():\n    file = open(sys.argv[1], 'w')\n"
    script += "    os.write(1, b'from a C library'); file.write('{}'); file.close()"
    path = tmp_path / "report.json"
    line = f'exec "$0" -c "$1" "$2" {closed}'
    assert subprocess.run(["sh", "-c", line, sys.executable, script, path]).returncode == 0
    assert path.read_text() == "{}"


def test_no_error_goes_where_results_do():
    for arguments in (["demo", "--size", "0"], ["bench", "--no-such-option"]):
        done = run_by_shell("2>&-", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
    done = run_by_shell(">&-", "bench", "--sizes", "32", "--json", "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tcgemm: error: --json -: standard output is closed\n"


def test_progress_that_nobody_reads_ends_nothing():
    script = "from tcgemm._cli import main, report; report._LINE_SECONDS = 0; import sys;"
    script += "sys.exit(main(['demo', '--size', '32']))"
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writer, text=True)
    os.close(writer)
    assert done.returncode == 0
    assert "keep their promise" in done.stdout


def test_info_names_what_there_is(capsys):
    status, output = run(capsys, "info")
    assert status == 0
    assert tcgemm.__version__ in output.out
    for kernel in tcgemm.kernels():
        assert kernel["name"] in output.out
    for mode in MODES:
        assert mode in output.out
    assert output.out.index("Self-test") < output.out.index("Kernels, by preference")
    assert output.out.splitlines()[-1] == "all well"


def test_info_json(capsys):
    status, output = run(capsys, "info", "--json")
    facts = json.loads(output.out)
    assert status == 0
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["kernels"] == tcgemm.kernels()
    assert facts["support"]["CPU"] == tcgemm.supports(None)
    assert facts["environment"]["TCGEMM_DEVICE"] == "cpu"
    assert [test["mode"] for test in facts["self_test"]] == list(MODES)
    assert all(test["ok"] for test in facts["self_test"])


def test_info_support_is_markdown_of_the_registry(capsys):
    status, output = run(capsys, "info", "--support")
    lines = output.out.splitlines()
    assert status == 0
    assert len(lines) == 2 + len(tcgemm.supports(None))
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)


@pytest.mark.parametrize("arch", ["75", "7.5", "sm_75"])
def test_info_of_an_architecture_names_the_kernels_it_gets(capsys, arch):
    status, output = run(capsys, "info", "--arch", arch)
    assert status == 0
    assert "compute capability 7.5" in output.out
    rows = [line for line in output.out.splitlines() if line.startswith("fp64")]
    chosen = next(r["kernel"] for r in tcgemm.supports((7, 5)) if r["precision"] == "fp64")
    assert len(rows) == 1
    assert (chosen or "-") in rows[0]
    assert ("-: no kernel of this build has it" in output.out) == (" - " in output.out)


@pytest.mark.parametrize("arch", ["hopper", "1000", "8", ""])
def test_info_of_no_architecture(capsys, arch):
    with pytest.raises(SystemExit):
        run(capsys, "info", "--arch", arch)
    assert f"{arch!r}: expected a compute capability" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--sms", "5"], "--arch"),
        (["--arch", "80", "--sms", "0"], "--sms 0: expected 1 to 2"),
        (["--arch", "60"], "--arch 6.0: the oldest GPU that tcgemm has kernels for is sm_70"),
    ],
)
def test_info_of_no_gpu_that_there_is(capsys, arguments, named):
    status, output = run(capsys, "info", *arguments)
    assert status == 2
    assert named in output.err
    assert not output.out


def test_info_says_once_why_every_mode_fails(capsys, monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "gpu")
    status, output = run(capsys, "info")
    assert status == 1
    assert output.out.count("InvalidArgument") == 1
    assert "as above" in output.out


@pytest.mark.usefixtures("damaged")
def test_info_fails_where_the_self_test_does(capsys):
    status, output = run(capsys, "info")
    assert status == 1
    assert "FAILED" in output.out


def test_demo_runs_every_mode(capsys):
    status, output = run(capsys, "demo", "--size", "96")
    assert status == 0
    rows = [line for line in output.out.splitlines() if line.split(" ")[0] in MODES]
    assert {row.split()[0] for row in rows} >= set(MODES) - {"bf16"}  # without ml_dtypes
    assert all(row.endswith("yes") for row in rows)
    assert "95x99x97" in output.out
    assert "c |A||B| + u |D|" in output.out
    assert "keep their promise" in output.out


@pytest.mark.usefixtures("damaged")
def test_demo_finds_one_wrong_element(capsys):
    status, output = run(capsys, "demo", "--size", "96")
    assert status == 1
    assert "promises broken" in output.out
    assert " NO" in output.out


def test_demo_reports_a_mode_that_fails_and_goes_on(capsys, monkeypatch):
    make = tcgemm.plan

    def no_int8(a, *arguments, **keywords):
        if a.dtype == np.int8:
            raise tcgemm.NoKernelError("no kernel for int8")
        return make(a, *arguments, **keywords)

    monkeypatch.setattr(tcgemm, "plan", no_int8)
    status, output = run(capsys, "demo", "--size", "32")
    assert status == 1
    both = "int8 (numpy), int8-to-fp32 (numpy)"
    assert f"FAILED: {both}: NoKernelError: no kernel for int8" in output.out
    assert "2 products failed" in output.out
    assert "fp16-sum-fp16" in output.out


def test_verify_keeps_every_promise(capsys):
    status, output = run(capsys, "verify", "--k", "1,17,256", "--json")
    results = json.loads(output.out)["results"]
    assert status == 0
    assert {result["k"] for result in results} == {1, 17, 256}
    done = [result for result in results if "kept" in result]
    assert {result["mode"] for result in done} >= set(MODES) - {"bf16"}
    assert all(result["kept"] and result["gate_kept"] for result in done)
    gated = [result for result in done if result["error_over_gate"] is not None]
    assert {result["data"] for result in gated} == {"U(0,1)"}
    exact = [result for result in done if result["data"] == "integers"]
    assert all(result["error"] == 0 for result in exact)


@pytest.mark.usefixtures("damaged")
def test_verify_finds_one_wrong_element(capsys):
    status, output = run(capsys, "verify", "--k", "64", "--modes", "fp32,int8")
    assert status == 1
    assert "BROKEN" in output.out


def test_verify_of_nothing_is_no_success(capsys, monkeypatch):
    def none(*_, **__):
        raise MemoryError("no memory")

    monkeypatch.setattr(tcgemm, "plan", none)
    status, output = run(capsys, "verify", "--k", "16", "--modes", "fp32")
    assert status == 1
    assert "not run: fp32: no memory" in output.out
    assert "nothing was measured" in output.out


def test_verify_of_what_no_memory_holds_is_not_run(capsys):
    status, output = run(capsys, "verify", "--k", str(2**52), "--modes", "fp32")
    assert status == 1
    assert "not run: fp32: an operand has more than 2^52 elements" in output.out


def test_verify_tells_why_a_place_is_empty(capsys):
    modes = "fp32,fp16-sum-fp16"
    status, output = run(capsys, "verify", "--k", "16,66000", "--m", "4", "--modes", modes)
    assert status == 0
    assert "\n-: takes too long" in output.out
    assert "\n-: " not in run(capsys, "verify", "--k", "16", "--modes", "fp32")[1].out


def test_verify_forces_families(capsys, tmp_path):
    file = tmp_path / "verify.json"
    arguments = ["verify", "--k", "16", "--modes", "fp32", "--families", "host"]
    status, output = run(capsys, *arguments, "--json", str(file))
    results = json.loads(file.read_text())["results"]
    assert status == 0
    assert "family host, forced" in output.out
    assert all(result["kernel"].startswith("host") for result in results)


@pytest.mark.parametrize("command", [["verify"], ["bench", "--sizes", "16"]])
def test_a_plot_without_a_folder_is_refused_at_once(capsys, tmp_path, monkeypatch, command):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(tcgemm, "plan", None)  # nothing is multiplied
    status, output = run(capsys, *command, "--plot", str(tmp_path / "none" / "a.png"))
    assert status == 2
    assert "there is no folder" in output.err


@pytest.mark.parametrize("command", [["verify"], ["bench", "--sizes", "16"]])
def test_results_and_plot_are_two_files(capsys, tmp_path, monkeypatch, command):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(tcgemm, "plan", None)  # nothing is multiplied
    file = str(tmp_path / "a.png")
    status, output = run(capsys, *command, "--plot", file, "--json", file)
    assert status == 2
    assert "--plot names the same file" in output.err


@pytest.mark.parametrize("option", [["--k", "16"], ["--peers"], ["--from-json", "a.json"]])
def test_verify_probes_the_gpu_alone(capsys, option):
    status, output = run(capsys, "verify", "--probe", *option)
    assert status == 2
    assert f"{option[0]}: --probe measures tensor cores only" in output.err


def test_verify_is_interrupted(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tcgemm, "plan", interrupt)
    status, output = run(capsys, "verify", "--k", "16")
    assert (status, output.out) == (130, "")
    assert "interrupted" in output.err


def test_verify_plot(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "verify.png"
    status, _ = run(capsys, "verify", "--k", "16,64", "--modes", "fp32,fp16", "--plot", str(file))
    assert status == 0
    assert file.read_bytes().startswith(b"\x89PNG")


def test_verify_shows_its_results_again(capsys, tmp_path):
    file = tmp_path / "verify.json"
    arguments = ["verify", "--k", "16,64", "--modes", "fp32,int8", "--json", str(file)]
    status, first = run(capsys, *arguments)
    assert status == 0
    status, again = run(capsys, "verify", "--from-json", str(file))
    assert status == 0
    assert again.out == first.out
    report = json.loads(file.read_text())
    report["results"][0]["kept"] = False
    file.write_text(json.dumps(report))
    status, broken = run(capsys, "verify", "--from-json", str(file))
    assert status == 1
    assert "1 of 10 promises BROKEN" in broken.out
    del report["results"][1]["hard"], report["results"][1]["k"]
    for text, named in (
        ("[]", "it has no machine, results: not a result file of verify --json"),
        (json.dumps({**report, "machine": {}}), "machine has no cpu, versions"),
        (json.dumps(report), "results[1] has no k"),
        ("\x00", "no JSON"),
    ):
        file.write_text(text)
        status, none = run(capsys, "verify", "--from-json", str(file))
        assert status == 2
        assert named in none.err


def test_verify_measures_its_peers(capsys, tmp_path):
    file = tmp_path / "verify.json"
    arguments = ["verify", "--k", "16,256", "--modes", "fp32,fp64,int8", "--framework", "numpy"]
    status, output = run(capsys, *arguments, "--peers", "--json", str(file))
    assert status == 0
    assert "  numpy" in output.out
    results = json.loads(file.read_text())["results"]
    assert {result["mode"] for result in results} == {"fp32", "fp64", "int8"}
    for result in results:
        assert result["peer"]["name"] == "numpy"
        if result["data"] == "integers":
            assert result["peer"]["error"] == 0
        else:
            assert 0 < result["peer"]["error"] < 256 * result["hard"]


def test_verify_holds_a_peer_against_the_product_of_its_own_operands(capsys, tmp_path):
    """NumPy does not round float32 operands as tcgemm was asked to: that is no error of it."""
    file = tmp_path / "verify.json"
    arguments = ["verify", "--k", "64", "--modes", "tf32,fp32-as-fp16,fp32-as-bf16"]
    arguments += ["--framework", "numpy", "--peers", "--json", str(file)]
    assert run(capsys, *arguments)[0] == 0
    for result in json.loads(file.read_text())["results"]:
        assert result["peer"]["error"] <= 64 * 2.0**-24


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["demo", "--size", "0"], "--size 0"),
        (["demo", "--size", "99999999999999"], "--size 99999999999999: expected 1 to 67108864"),
        (["bench", "--sizes", "8:99999999999:1"], "--sizes 8:99999999999:1: more than 10,000"),
        (["bench", "--sizes", "9" * 20], f"--sizes {'9' * 20}: sizes are up to 2^52"),
        (["bench", "--m", "1:999", "--n", "1:999", "--k", "1"], "--k: 998,001 products"),
        (["verify", "--n", "9" * 20], f"--n {'9' * 20}: expected 1 to 2^52"),
        (["demo", "--device", "gpu"], "--device gpu"),
        (["demo", "--device", "cuda:99"], "--device cuda:99"),
        (["verify", "--modes", "fp33"], "--modes fp33"),
        (["verify", "--modes", ","], "--modes ,: expected one or more of fp32"),
        (["verify", "--families", "sm00"], "--families sm00"),
        (["verify", "--families", ","], "--families ,: expected one or more of"),
        (["verify", "--k", "4:1"], "--k 4:1"),
        (["verify", "--m", "0"], "--m 0"),
        (["demo", "--size", "x"], "--size x: expected 1 to 67108864, a whole number"),
        (["demo", "--size", "1.5"], "--size 1.5: expected 1 to 67108864, a whole number"),
        (["verify", "--n", "x"], "--n x: expected 1 to 2^52, a whole number"),
        (["bench", "--seconds", "x"], "--seconds x: expected a finite number above 0"),
        (["info", "--arch", "75", "--sms", "x"], "--sms x: expected 1 to 2^31 - 1, a whole"),
    ],
)
def test_wrong_arguments_are_named(capsys, arguments, named):
    status, output = run(capsys, *arguments)
    assert status == 2
    assert output.err.startswith("tcgemm: error: ")
    assert named in output.err
    assert "Traceback" not in output.err


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["bench", "--sizes", "16"], ["json", "plot", "layout", "dtype", "families", "m"]),
        (["bench"], ["sizes", "suite", "from-json"]),
        (["verify", "--k", "16"], ["json", "plot", "modes", "families", "from-json", "device"]),
        (["demo"], ["device", "size"]),
        (["info"], ["sms"]),
    ],
    ids=lambda x: " ".join(x),
)
def test_an_empty_option_is_not_one_that_was_left_out(capsys, monkeypatch, command, options):
    monkeypatch.setattr(tcgemm, "plan", None)  # nothing is multiplied
    for option in options:
        status, output = run(capsys, *command, f"--{option}", "")
        assert (status, output.out) == (2, "")
        assert output.err == (
            f'tcgemm: error: --{option} "": it is empty; give it a value, or leave it out\n'
        )


@pytest.mark.parametrize("device", ["foo", "cuda:99", "cuda:01"])
def test_a_wrong_environment_is_named(capsys, monkeypatch, device):
    monkeypatch.setenv("TCGEMM_DEVICE", device)
    status, output = run(capsys, "demo")
    assert status == 2
    assert f"TCGEMM_DEVICE={device}" in output.err
    assert "--device" not in output.err
    assert ("expected cpu" in output.err) == (device != "cuda:99")


@pytest.mark.parametrize(
    "command",
    [["demo", "--size", "8"], ["verify", "--k", "16"], ["bench", "--sizes", "8"]],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    "variable", ["NUM_THREADS", "HOST_ISA", "FORCE_FAMILY", "FORCE_KERNEL", "FORCE_X"]
)
def test_a_wrong_environment_is_told_once(capsys, monkeypatch, variable, command):
    monkeypatch.setenv(f"TCGEMM_{variable}", "x")
    monkeypatch.setattr(tcgemm, "plan", None)  # nothing is multiplied
    status, output = run(capsys, *command)
    assert (status, output.out) == (2, "")
    assert output.err.startswith(f"tcgemm: error: TCGEMM_{variable} is ")
    assert output.err.count("\n") == 1


def test_an_unexpected_error_is_one_line(capsys, monkeypatch):
    def broken():
        raise KeyError("sm_count")

    monkeypatch.setattr(tcgemm, "devices", broken)
    status, output = run(capsys, "info")
    assert status == 1
    assert "KeyError: 'sm_count'" in output.err
    assert "--debug" in output.err
    assert "Traceback" not in output.err
    with pytest.raises(KeyError):
        main(["--debug", "info"])


@pytest.mark.gpu
def test_demo_on_the_gpu(capsys, monkeypatch):
    monkeypatch.delenv("TCGEMM_DEVICE")
    status, output = run(capsys, "demo", "--size", "256")
    assert status == 0
    assert "keep their promise" in output.out
    assert "host_" not in output.out


@pytest.mark.gpu
def test_verify_on_the_gpu(capsys, monkeypatch):
    monkeypatch.delenv("TCGEMM_DEVICE")
    status, output = run(capsys, "verify", "--k", "16,1000", "--json")
    results = json.loads(output.out)["results"]
    assert status == 0
    assert not any(result.get("kernel", "").startswith("host") for result in results)
