"""The command line: `python -m tcgemm {info,demo,verify,bench}`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import tcgemm
from tcgemm._cli import bench, demo, info, verify
from tcgemm._cli.report import UsageError, refuse_empty
from tcgemm._output import OutputError, error, note, run_command

_COMMANDS = {
    "info": (info, "show versions, build, devices and kernels, and run a self-test"),
    "demo": (demo, "multiply matrices in every mode, and check and time each product"),
    "verify": (verify, "check the promised error bounds on this machine"),
    "bench": (bench, "compare the speed with that of cuBLAS or NumPy"),
}


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tcgemm",
        description="Tensor-core matrix products: what is installed, how accurate, how fast.",
        epilog="`python -m tcgemm COMMAND --help` lists the options of a command.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"tcgemm {tcgemm.__version__}",
        help="print the version and exit",
    )
    parser.add_argument(
        "--debug", action="store_true", help="show the traceback of an unexpected error"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, summary) in _COMMANDS.items():
        text = f"{summary[0].upper()}{summary[1:]}."
        command = commands.add_parser(
            name,
            help=summary,
            description=text,
            epilog=getattr(module, "EPILOG", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(parser=command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all well, 1 promise broken or product failed, 2 wrong argument, 130 ^C."""
    return run_command("tcgemm", lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = make_parser()
    debug = True
    try:
        parsed = parser.parse_args(arguments)
        if parsed.command is None:
            parser.print_help()
            return 0
        debug = parsed.debug
        refuse_empty(parsed)
        module, _ = _COMMANDS[parsed.command]
        return int(module.run(parsed))
    except KeyboardInterrupt:
        note("")
        error("interrupted")
        return 130
    except UsageError as wrong:
        error(str(wrong))
        return 2
    except OutputError:
        raise
    except Exception as unexpected:
        if debug:
            raise
        error(f"{type(unexpected).__name__}: {unexpected}")
        if not isinstance(unexpected, tcgemm.TcgemmError):
            error("run it again as `python -m tcgemm --debug ...` for the traceback")
        return 1
