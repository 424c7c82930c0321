"""Which families can run on this machine, and which modes each is tested in."""

from __future__ import annotations

import functools
from collections.abc import Callable

from . import cuda
from .modes import FAMILY_MODES, MODES, Mode


def has_gpu() -> bool:
    return cuda.device_count() > 0


def has_several_gpus() -> bool:
    return cuda.device_count() > 1


def runs_on(architectures: str, capability: tuple[int, int]) -> bool:
    """Whether code for "70;75;90-virtual" runs on a device of that compute capability."""
    major, minor = capability
    for architecture in filter(None, architectures.split(";")):
        number, _, kind = architecture.partition("-")
        specific = number.endswith("a")
        built = divmod(int(number.removesuffix("a")), 10)
        if kind == "virtual":
            if not specific and built <= capability:
                return True
        elif built == capability or (not specific and built[0] == major and built[1] <= minor):
            return True
    return False


@functools.cache
def runnable() -> tuple[str, ...]:
    """In the order of FAMILY_MODES, the host family first. A family counts as runnable by what it
    was built for, not by what its kernels say: one that then refuses fails the suite."""
    import tcgemm

    built = {row["family"]: row["architectures"] for row in tcgemm.kernels()}
    here = ["host"]
    for family in FAMILY_MODES:
        if (
            family != "host"
            and has_gpu()
            and runs_on(built.get(family, ""), cuda.compute_capability())
        ):
            here.append(family)
    return tuple(here)


def with_modes(
    families: tuple[str, ...], only: Callable[[Mode], bool] | None = None
) -> list[tuple[str, Mode]]:
    return [
        (family, MODES[name])
        for family in families
        for name in FAMILY_MODES[family]
        if only is None or only(MODES[name])
    ]
