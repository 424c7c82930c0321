"""Standard output and error of the commands: closed, full or unread, as shells may leave them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast


class OutputError(Exception):
    """Standard output takes no more."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"standard output: {reason.strerror}")
        self.reason = reason


class _Output:
    """A stream whose failures are OutputErrors, which nobody takes for those of a file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise OutputError(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputError(error) from error


@contextmanager
def open_streams() -> Iterator[None]:
    """Standard output and error that are closed (`>&-`) lead nowhere meanwhile.

    Python has None in their place, of which print() makes standard output. A file that is opened
    next would take the number of the closed one, and what C libraries write there.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:  # kept: these three are never files
        pass
    os.close(descriptor)
    with ExitStack() as stack:
        if sys.stdout is None:
            stack.enter_context(redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        if sys.stderr is None:
            stack.enter_context(redirect_stderr(stack.enter_context(open(os.devnull, "w"))))
        yield


def run_command(name: str, run: Callable[[], int]) -> int:
    """The exit status of `run`; 1 where standard output fails, 0 where nobody reads it further."""
    with open_streams():
        output = sys.stdout
        try:
            with redirect_stdout(cast("TextIO", _Output(output))):
                try:
                    return run()
                finally:  # help, too, after which argparse ends the process
                    sys.stdout.flush()
        except OutputError as failure:
            # Takes what the stream still holds, which Python writes at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
            if isinstance(failure.reason, BrokenPipeError):  # `python -m tcgemm info | head`
                return 0
            error(str(failure), name)
            return 1


def note(text: str, end: str = "\n") -> None:
    """On stderr. That nobody can read it does not end the command: its results are elsewhere."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def error(message: str, command: str = "tcgemm") -> None:
    note(f"{command}: error: {message}")
