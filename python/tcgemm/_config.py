"""Where the C++ library inside this package lies, and the `tcgemm-config` command."""

from __future__ import annotations

import argparse
import importlib.util
import re
from pathlib import Path


def _prefix() -> Path:
    # Beside the extension module, which in an editable install lies elsewhere than this file.
    spec = importlib.util.find_spec("tcgemm._core")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("tcgemm._core is missing: run `pip install .` in the source tree")
    return Path(spec.origin).parent


def get_include() -> str:
    """Folder of the C++ headers: `#include <tcgemm/tcgemm.hpp>` needs it on the include path."""
    return str(_prefix() / "include")


def get_library_dir() -> str:
    """Folder of libtcgemm.so."""
    return str(_prefix() / "lib")


def get_cmake_dir() -> str:
    """Folder of tcgemm-config.cmake: pass it as `-Dtcgemm_DIR=` for `find_package(tcgemm)`."""
    return str(_prefix() / "lib" / "cmake" / "tcgemm")


def _version() -> str:
    text = Path(get_include(), "tcgemm", "version.h").read_text(encoding="utf-8")
    match = re.search(r'TCGEMM_VERSION "([^"]+)"', text)
    assert match is not None
    return match[1]


def main(argv: list[str] | None = None) -> int:
    """The `tcgemm-config` command: prints the flags that a compiler or CMake needs."""
    parser = argparse.ArgumentParser(
        prog="tcgemm-config",
        description="Prints where the installed tcgemm C++ library lies.",
        epilog="example: g++ -std=c++17 main.cpp $(tcgemm-config --cflags --ldflags)",
    )
    library = get_library_dir()
    flags = {
        "--includedir": (get_include(), "folder of the headers"),
        "--libdir": (library, "folder of libtcgemm.so"),
        "--cmakedir": (get_cmake_dir(), "folder of tcgemm-config.cmake"),
        "--cflags": (f"-I{get_include()}", "compiler flags"),
        "--ldflags": (f"-L{library} -ltcgemm -Wl,-rpath,{library}", "linker flags"),
        "--version": (_version(), "version of the library"),
    }
    for flag, (value, text) in flags.items():
        parser.add_argument(flag, action="append_const", const=value, dest="values", help=text)
    values = parser.parse_args(argv).values
    if not values:
        parser.print_usage()
        return 2
    print(" ".join(values))
    return 0
