"""The `tcgemm-config` command: where the C++ library in this package is."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from . import __version__
from ._info import get_cmake_dir, get_include, get_library_dir
from ._output import run_command


def _quoted(flag: str) -> str:
    """For `eval`, which flags with blanks take: $(tcgemm-config ...) splits them, quoted or not."""
    return shlex.quote(flag) if any(map(str.isspace, flag)) else flag


def main(argv: Sequence[str] | None = None) -> int:
    """Print the flags that a compiler or CMake needs."""
    return run_command("tcgemm-config", lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="tcgemm-config",
        description="Print the folders of the installed C++ library, or flags for compilers.",
        epilog="example: g++ -std=c++17 main.cpp $(tcgemm-config --cflags --ldflags)",
    )
    library = get_library_dir()
    flags = {
        "--includedir": (get_include(), "folder of the headers"),
        "--libdir": (library, "folder of libtcgemm.so"),
        "--cmakedir": (get_cmake_dir(), "folder of tcgemm-config.cmake, for -Dtcgemm_DIR="),
        "--cflags": (_quoted(f"-I{get_include()}"), "flags for the compiler"),
        "--ldflags": (
            f"{_quoted(f'-L{library}')} -ltcgemm {_quoted(f'-Wl,-rpath,{library}')}",
            "flags for the linker",
        ),
        "--version": (__version__, "version of the library"),
    }
    for flag, (value, text) in flags.items():
        parser.add_argument(flag, action="append_const", const=value, dest="values", help=text)
    values = parser.parse_args(argv).values
    if not values:
        # Not to stdout, where a compiler would take it for flags, and where help goes by default.
        parser.print_help(sys.stderr)
        return 2
    print(" ".join(values))
    return 0
