"""What this build has, and what it finds on this machine."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core, _frameworks
from ._errors import InvalidArgument


@dataclass(frozen=True)
class _Card:
    shared_memory: int  # bytes that a block may have
    sm_count: int
    l2_bytes: int
    clock_mhz: int  # boost
    memory_gb_per_s: int


# A card of each compute capability: V100, T4, A100, RTX 3090, Orin, RTX 4090, H200. Shared memory:
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the rest: NVIDIA's
# architecture whitepapers.
_CARDS = {
    (7, 0): _Card(96 << 10, 80, 6 << 20, 1530, 900),
    (7, 5): _Card(64 << 10, 40, 4 << 20, 1590, 320),
    (8, 0): _Card(163 << 10, 108, 40 << 20, 1410, 1555),
    (8, 6): _Card(99 << 10, 82, 6 << 20, 1695, 936),
    (8, 7): _Card(163 << 10, 16, 4 << 20, 1300, 205),
    (8, 9): _Card(99 << 10, 128, 72 << 20, 2520, 1008),
    (9, 0): _Card(227 << 10, 132, 50 << 20, 1980, 4800),
}

KNOWN_GPUS = frozenset(_CARDS)  # compute capabilities
OLDEST_GPU = min(_CARDS)  # the first with tensor cores
TOO_OLD = f"the oldest GPU that tcgemm has kernels for is sm_{OLDEST_GPU[0]}{OLDEST_GPU[1]}"

# (precision, accumulate, dtype of the operands, dtype of the result) of each row of `supports`.
_MODES = [
    ("fp16", "fp32", "float16", "float16"),
    ("fp16", "fp16", "float16", "float16"),
    ("fp16", "promoted", "float16", "float16"),
    ("fp16", "fp32", "float32", "float32"),
    ("fp16", "promoted", "float32", "float32"),
    ("bf16", "fp32", "bfloat16", "bfloat16"),
    ("bf16", "promoted", "bfloat16", "bfloat16"),
    ("bf16", "fp32", "float32", "float32"),
    ("bf16", "promoted", "float32", "float32"),
    ("tf32", "fp32", "float32", "float32"),
    ("fp32", "fp32", "float32", "float32"),
    ("fp32", "promoted", "float32", "float32"),
    ("fp32_simt", "fp32", "float32", "float32"),
    ("fp64", "fp64", "float64", "float64"),
    ("int8", "int32", "int8", "int32"),
    ("int8", "int32", "int8", "float32"),
    ("fp8_e4m3", "promoted", "float8_e4m3fn", "float32"),
    ("fp8_e4m3", "fast", "float8_e4m3fn", "float32"),
    ("fp8_e5m2", "promoted", "float8_e5m2", "float32"),
    ("fp8", "promoted", "float8_e4m3fn", "float8_e4m3fn"),
]


def kernels() -> list[dict[str, Any]]:
    """Every kernel of this build, in the order of preference.

    Returns
    -------
    list of dict
        ``family``, ``name``, ``tile`` ("128x256x32", elements of M x N x K that a block computes;
        empty where there is none), ``architectures`` ("70;75;90-virtual"; empty for the CPU) and
        ``dynamic_shared_bytes`` (shared memory of a block on top of what its code declares).
    """
    return _core.kernels()


def devices() -> list[dict[str, Any]]:
    """CUDA devices that can be used; an empty list where there is none.

    Returns
    -------
    list of dict
        ``ordinal``, ``name``, ``compute_capability`` (a pair), ``sm_count``, ``memory_bytes``,
        ``shared_memory_per_block_bytes``, ``l2_bytes``, ``clock_khz``,
        ``memory_gb_per_s``.
    """
    return _core.devices()


def cuda_unavailable_reason() -> str:
    """Why :func:`devices` is empty ("no NVIDIA driver", ...); an empty str where it is not."""
    return _core.cuda_unavailable_reason()


def build_info() -> dict[str, str]:
    """How the library was built.

    Returns
    -------
    dict
        ``version``, ``cuda_version`` (empty: without CUDA), ``compiler``, ``build_type``,
        ``architectures``, ``commit``.
    """
    return _core.build_info()


def supports(
    cc: tuple[int, int] | None = None,
    shape: tuple[int, int, int] = (4096, 4096, 4096),
    sm_count: int | None = None,
) -> list[dict[str, str]]:
    """The table of precisions and of the kernels that have them, asked of the registry.

    Parameters
    ----------
    cc : (int, int), optional
        Compute capability of a GPU, which need not be in this machine: (9, 0) is an H100. None: the
        CPU.
    shape : (int, int, int)
        M, N and K of the product that a kernel is chosen for; its matrices are row-major.
    sm_count : int, optional
        Streaming multiprocessors of the GPU. None: those of a well-known card.

    Returns
    -------
    list of dict
        ``precision``, ``accumulate``, ``operands`` and ``out`` (dtypes), ``family`` and ``kernel``
        (what a plan takes; empty: none) and ``reason`` (why there is none).

    Raises
    ------
    InvalidArgument
        `cc` is no pair of whole numbers, `shape` no three, or `sm_count` none from 1.
    """
    pair = None if cc is None else _naturals(cc, 31)
    if pair is not None and len(pair) != 2:
        raise InvalidArgument(f"cc is {cc!r}; it must be a pair such as (9, 0), or None")
    extents = _naturals(shape, 63)
    if len(extents) != 3:
        raise InvalidArgument(
            f"shape is {shape!r}; it must be M, N and K, such as (512, 512, 64), below 2^63"
        )
    if sm_count is not None and not any(_naturals((sm_count,), 31)):
        raise InvalidArgument(
            f"sm_count is {sm_count!r}; it must be a whole number from 1 to 2^31 - 1"
        )
    known = [known for known in _CARDS if pair is not None and known <= pair]
    card = _CARDS[max(known, default=OLDEST_GPU)]
    facts = (
        sm_count or card.sm_count,
        card.shared_memory,
        card.l2_bytes,
        1000 * card.clock_mhz,
        card.memory_gb_per_s,
    )
    missing = "no kernel of this build has it, or none takes a product of this size"
    if pair is not None and pair < OLDEST_GPU:
        missing = TOO_OLD
    elif 0 in extents[:2]:
        missing = "a result without elements needs no kernel"
    rows = []
    for precision, accumulate, operands, out in _MODES:
        row = {"precision": precision, "accumulate": accumulate, "operands": operands, "out": out}
        row.update(family="", kernel="", reason=missing)
        mode = (operands, out, precision, accumulate)
        for verdict in _core.explain_example(*mode, extents, pair, *facts):
            if verdict["chosen"]:
                row.update(family=verdict["family"], kernel=verdict["name"], reason="")
        rows.append(row)
    return rows


def _naturals(values: Any, bits: int) -> tuple[int, ...]:
    """Python's integers or NumPy's as Python's; empty if one is none, negative or too wide."""
    try:
        numbers = tuple(operator.index(value) for value in values)
    except TypeError:
        return ()
    return numbers if all(0 <= number < 1 << bits for number in numbers) else ()


def release_unused_memory(device: int | None = None) -> None:
    """Give GPU memory that the library keeps for its next products back to the driver.

    Parameters
    ----------
    device : int, optional
        The GPU's number. None: all GPUs; without one nothing is kept.

    Notes
    -----
    NumPy arrays are staged through such memory, and JAX results, packed operands and workspaces
    come out of it. What products in flight, arrays, plans and CUDA graphs use stays theirs. CuPy
    arrays of products on a `stream`, which are held until it is done, are let go of.

    Raises
    ------
    InvalidArgument
        `device` is no number of a GPU.
    DeviceError
        There is no such GPU.
    """
    if device is not None:
        number = _naturals((device,), 31)
        if not number or isinstance(device, bool):
            raise InvalidArgument(
                f"device is {device!r}; it must be the number of a GPU, 0 for the first, or None"
            )
        (device,) = number
    _frameworks.cupy.let_go()
    _core.release_unused_memory(device)


# The compiled module lies beside lib/ and include/, in an editable installation too.
_PREFIX = Path(_core.__file__).parent


def get_include() -> str:
    """Folder of the C++ headers (``#include "tcgemm/tcgemm.hpp"``)."""
    return str(_PREFIX / "include")


def get_library_dir() -> str:
    """Folder of libtcgemm."""
    return str(_PREFIX / "lib")


def get_cmake_dir() -> str:
    """Folder of tcgemm-config.cmake, for ``-Dtcgemm_DIR=``."""
    return str(_PREFIX / "lib" / "cmake" / "tcgemm")
