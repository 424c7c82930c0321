"""A DLPack producer over raw memory: any address, strides and dtype, on any device.

Frameworks refuse some of what the library accepts (PyTorch negative strides, NumPy bfloat16, most
of them strange strides of size-1 dimensions), so the numeric tests hand over arrays of their own.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence

from . import dlpack_abi as abi
from .dlpack_abi import CPU, CUDA
from .formats import Format

__all__ = ["CPU", "CUDA", "RawArray", "exports_alive"]

_exported: dict[int, object] = {}  # what an export keeps alive until its deleter is called
_serial = itertools.count(1)


@abi.Deleter
def _delete(managed: int) -> None:
    _exported.pop(abi.Versioned.from_address(managed).context, None)


class RawArray:
    """Shape and strides (elements) over `memory`, whose `address` is plus `offset` bytes."""

    def __init__(
        self,
        memory: object,
        address: int,
        fmt: Format,
        shape: Sequence[int],
        strides: Sequence[int],
        device: tuple[int, int],
    ) -> None:
        self._memory, self._address, self._format = memory, address, fmt
        self.shape, self.strides = tuple(shape), tuple(strides)
        self._device = device

    def part(self, shape: Sequence[int]) -> RawArray:
        """The first elements of each dimension."""
        return RawArray(
            self._memory, self._address, self._format, shape, self.strides, self._device
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,  # the memory was written with a synchronising copy
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if copy or dl_device not in (None, self._device) or max_version is None:
            raise BufferError("exports a versioned view of its own memory, nothing else")
        serial = next(_serial)
        ndim = len(self.shape)
        shape, strides = (
            (ctypes.c_int64 * ndim)(*self.shape),
            (ctypes.c_int64 * ndim)(*self.strides),
        )
        managed = abi.Versioned(major=1, minor=0, context=serial, deleter=_delete)
        managed.tensor = abi.Tensor(
            self._address,
            abi.Device(*self._device),
            ndim,
            abi.DataType(self._format.dlpack_code, 8 * self._format.numpy.itemsize, 1),
            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
            0,
        )
        _exported[serial] = (managed, shape, strides, self._memory)
        return abi.new_capsule(
            ctypes.addressof(managed),
            abi.NAMES[abi.Versioned],
            ctypes.cast(abi.destroy_unconsumed, ctypes.c_void_p),
        )


def exports_alive() -> int:
    """Exports whose deleter has not been called yet."""
    return len(_exported)
