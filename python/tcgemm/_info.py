"""What this build contains, and what it finds on this machine."""

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
    """List the kernels of this build, in order of preference.

    Returns
    -------
    list of dict
        ``family``, ``name``, ``tile`` ("128x256x32": M x N x K of the tile that a block computes;
        empty if there is none), ``architectures`` ("70;75;90-virtual": the GPU code of
        the build; empty for the CPU) and ``dynamic_shared_bytes`` (shared memory of a block, in
        addition to what its code declares).
    """
    return _core.kernels()


def devices() -> list[dict[str, Any]]:
    """List the usable CUDA devices; :func:`cuda_unavailable_reason` says why there is none.

    Returns
    -------
    list of dict
        ``ordinal`` (N of "cuda:N"), ``name``, ``compute_capability`` (pair of int), ``sm_count``
        (streaming multiprocessors), ``memory_bytes``, ``shared_memory_per_block_bytes`` (the
        opt-in limit), ``l2_bytes``, ``clock_khz`` (kHz, boost) and ``memory_gb_per_s`` (peak
        bandwidth of the memory in GB/s; 0 if unknown).

    Raises
    ------
    DeviceError
        This process was forked by one that had used CUDA.
    """
    return _core.devices()


def cuda_unavailable_reason() -> str:
    """Tell why :func:`devices` is empty.

    Returns
    -------
    str
        The reason ("no NVIDIA driver is installed", for example); empty if there are devices.

    Raises
    ------
    DeviceError
        This process was forked by one that had used CUDA.
    """
    return _core.cuda_unavailable_reason()


def build_info() -> dict[str, str]:
    """Tell how the library was built.

    Returns
    -------
    dict of str
        ``version``, ``cuda_version`` ("12.4"; empty for a host-only build), ``compiler`` (of host
        code), ``build_type`` ("Release"), ``architectures`` ("70;75;80": all that any kernel was
        built for) and ``commit`` (empty if unknown).
    """
    return _core.build_info()


def supports(
    cc: tuple[int, int] | None = None,
    shape: tuple[int, int, int] = (4096, 4096, 4096),
    sm_count: int | None = None,
) -> list[dict[str, str]]:
    """List the precisions, each with the kernel that a GPU or the CPU gets for it.

    Parameters
    ----------
    cc : (int, int), optional
        Compute capability of a GPU, which need not be in this machine: (9, 0) is an H100. Only a
        build with CUDA has kernels for one. Default: the CPU.
    shape : (int, int, int)
        M, N and K of the product that a kernel is chosen for. Its matrices are row-major.
    sm_count : int, optional
        Number of streaming multiprocessors of the GPU. Default: that of a well-known card of `cc`.

    Returns
    -------
    list of dict
        One for each mode: ``precision``, ``accumulate``, ``operands`` and ``out`` (dtypes of A and
        B and of the result), ``family`` and ``kernel`` that a plan takes (empty if there is none)
        and ``reason`` (why there is none, otherwise empty).

    Raises
    ------
    InvalidArgument
        `cc` is not a pair, or `shape` not a triple, of whole numbers from 0; or `sm_count` is not a
        whole number from 1.

    Examples
    --------
    >>> import tcgemm
    >>> row = tcgemm.supports(None)[0]
    >>> row["precision"], row["accumulate"], row["kernel"]
    ('fp16', 'fp32', 'host_float16')
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
    """Integers of Python or NumPy as Python's; empty if any is no integer, negative or too wide."""
    try:
        numbers = tuple(operator.index(value) for value in values)
    except TypeError:
        return ()
    return numbers if all(0 <= number < 1 << bits for number in numbers) else ()


def release_unused_memory(device: int | None = None) -> None:
    """Return the GPU memory that the library keeps for its next products to the driver.

    Parameters
    ----------
    device : int, optional
        Number N of a GPU, "cuda:N". Default: all GPUs, if there are any.

    Raises
    ------
    InvalidArgument
        `device` is not a whole number from 0.
    DeviceError
        There is no such GPU, or this process was forked by one that had used CUDA.

    Notes
    -----
    The library keeps memory for packed operands, workspaces and copies of host arrays. What running
    products, plans and CUDA graphs use is not touched. CuPy arrays that are held for products on a
    given `stream` are released if it has computed them.
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
    """Folder of the C and C++ headers, for ``-I`` (``#include <tcgemm/tcgemm.hpp>``)."""
    return str(_PREFIX / "include")


def get_library_dir() -> str:
    """Folder of ``libtcgemm.so``, for ``-L``."""
    return str(_PREFIX / "lib")


def get_cmake_dir() -> str:
    """Folder of ``tcgemm-config.cmake``, for ``-Dtcgemm_DIR=``."""
    return str(_PREFIX / "lib" / "cmake" / "tcgemm")
