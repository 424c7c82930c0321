"""Standard output that takes nothing, or that nobody reads: one line or none, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAMS = {
    "tcgemm": [sys.executable, "-m", "tcgemm"],
    "tcgemm-config": [
        sys.executable, "-c", "import sys, tcgemm._config as c; sys.exit(c.main())",
    ],
}  # fmt: skip
COMMANDS = [
    ("tcgemm", "info", "--json"),  # more than a buffer holds
    ("tcgemm", "info", "--support"),
    ("tcgemm", "bench", "--sizes", "8", "--seconds", "0.01", "--json", "-"),
    ("tcgemm", "--help"),
    ("tcgemm-config", "--cflags"),
    ("tcgemm-config", "--help"),
]
each_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
pytestmark = pytest.mark.usefixtures("on_the_cpu")


def run(command, **streams):
    name, *arguments = command
    done = subprocess.run([*PROGRAMS[name], *arguments], text=True, **streams)
    return done.returncode, done.stderr


@each_command
def test_a_full_device_is_told(command):
    with open("/dev/full", "w") as full:
        status, errors = run(command, stdout=full, stderr=subprocess.PIPE)
    assert (status, errors) == (
        1, f"{command[0]}: error: standard output: No space left on device\n",
    )  # fmt: skip


@each_command
def test_an_output_that_nobody_reads_is_no_error(command):
    reader, writer = os.pipe()
    os.close(reader)
    assert run(command, stdout=writer, stderr=subprocess.PIPE) == (0, "")
    os.close(writer)


@each_command
def test_errors_that_cannot_be_told_change_no_status(command):
    with open("/dev/full", "w") as full:
        assert run(command, stdout=subprocess.DEVNULL, stderr=full)[0] == 0
        assert run((command[0], "--none"), stdout=subprocess.DEVNULL, stderr=full)[0] == 2
