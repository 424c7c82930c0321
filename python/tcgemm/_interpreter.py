"""Imports the compiled module: not into an interpreter in which that would wait for ever, and with
a message of its own where the sources were not built."""

from __future__ import annotations

import sys
from pathlib import Path

__all__: list[str] = []

if sys.version_info < (3, 12):
    try:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:  # a Python without subinterpreters
        interpreters = None
    if interpreters is not None and interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "tcgemm cannot be imported in a subinterpreter of Python 3.11; import it in the main "
            "interpreter, in a process of its own, or use Python 3.12 or later"
        )

try:
    import tcgemm._core  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "tcgemm._core":
        raise
    raise ImportError(
        f"tcgemm is imported from its sources in {Path(__file__).parent}, which are not built; "
        "start Python in another directory, with tcgemm installed (pip install .)"
    ) from None
