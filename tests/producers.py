"""DLPack producers made by hand: every variant of the protocol, and a count of deleter calls."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
from harness.dlpack_abi import (
    CPU,
    CUDA,
    CUDA_HOST,
    NAMES,
    ROCM,
    DataType,
    Deleter,
    Device,
    Legacy,
    Tensor,
    Versioned,
    destroy_unconsumed,
    new_capsule,
)

__all__ = ["CPU", "CUDA", "CUDA_HOST", "ROCM"]

READ_ONLY, IS_COPIED, SUBBYTE_PADDED = 1, 2, 4
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


_exports: dict[int, tuple[Any, ...]] = {}  # address of a managed tensor: what it keeps alive
_deleted: list[int] = []  # serial numbers of the exports whose deleter was called
_serials = itertools.count(1)
_kept: list[ExchangeTable] = []  # tables, as a type that offers one may keep it for ever


@Deleter
def _delete(managed: int) -> None:
    # A second call finds nothing, and shows as a second entry of the producer's first export.
    struct, serial, *_ = _exports.pop(managed, (None, None))
    _deleted.append(serial)
    del struct


def describe(values: np.ndarray, **changes: Any) -> tuple[Tensor, list[Any]]:
    """A DLTensor over a NumPy array, and what must live as long as it."""
    ndim = values.ndim
    shape = (ctypes.c_int64 * ndim)(*changes.get("shape", values.shape))
    strides = (ctypes.c_int64 * ndim)(
        *changes.get("strides", [s // values.itemsize for s in values.strides])
    )
    code, bits, lanes = changes.get("dtype", (CODES[values.dtype.kind], 8 * values.itemsize, 1))
    offset = changes.get("byte_offset", 0)
    tensor = Tensor(
        changes.get("data", values.ctypes.data - offset),
        Device(*changes.get("device", (CPU, 0))),
        changes.get("ndim", ndim),
        DataType(code, bits, lanes),
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
        None
        if changes.get("null_strides")
        else ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
        offset,
    )
    return tensor, [values, shape, strides]


class Producer:
    """An array with `__dlpack__` over the memory of `values`, altered as the keywords say."""

    versioned = True

    def __init__(self, values: np.ndarray, **changes: Any) -> None:
        self.values, self.changes = values, changes
        self.serials: list[int] = []
        self.streams: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.changes.get("device", (CPU, 0))

    def export(self) -> int:
        """A new managed tensor; its address."""
        tensor, alive = describe(self.values, **self.changes)
        serial = next(_serials)
        self.serials.append(serial)
        managed = (Versioned if self.versioned else Legacy)()
        managed.tensor, managed.deleter = tensor, _delete
        if self.versioned:
            managed.major, managed.minor = self.changes.get("version", (1, 3))
            managed.flags = self.changes.get("flags", 0)
        address = ctypes.addressof(managed)
        _exports[address] = (managed, serial, *alive)
        return address

    def capsule(self) -> object:
        name = NAMES[Versioned if self.versioned else Legacy]
        return new_capsule(self.export(), name, ctypes.cast(destroy_unconsumed, ctypes.c_void_p))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        self.streams.append(stream)
        assert max_version is not None
        assert max_version[0] == 1
        return self.capsule()

    @property
    def exports(self) -> int:
        return len(self.serials)

    @property
    def deletions(self) -> int:
        return sum(_deleted.count(serial) for serial in self.serials)


class LegacyProducer(Producer):
    """Takes `max_version` and answers with an unversioned capsule all the same, as JAX does."""

    versioned = False


class OldProducer(LegacyProducer):
    """Of before DLPack 1.0: `__dlpack__` knows no `max_version`."""

    def __dlpack__(self, stream=None) -> object:
        self.streams.append(stream)
        return self.capsule()


# ---- the C exchange API --------------------------------------------------------------------------

_ToManaged = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_Allocate = ctypes.PYFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(Tensor),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_ToTensor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Tensor))
_Stream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class ExchangeTable(ctypes.Structure):
    pass


ExchangeTable._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("previous", ctypes.POINTER(ExchangeTable)),
    ("allocate", _Allocate),
    ("to_managed", _ToManaged),
    ("from_managed", _ToManaged),
    ("to_tensor", _ToTensor),
    ("current_stream", _Stream),
]


class ExchangeArray(Producer):
    """An array whose type has the C exchange API. `__dlpack__` is a trap: it must not be called."""

    def __dlpack__(self, **_: object) -> object:
        raise AssertionError("the C exchange API was not used")


@_ToManaged
def _to_managed(self: int, out: Any) -> int:
    out[0] = ctypes.cast(self, ctypes.py_object).value.export()
    return 0


@_Allocate
def _allocate(prototype: Any, out: Any, _context: int, _set_error: int) -> int:
    wanted = prototype.contents
    dtype = {(0, 8): "i1", (0, 32): "i4", (2, 16): "f2", (2, 32): "f4", (2, 64): "f8"}
    values = np.empty(wanted.shape[: wanted.ndim], dtype[wanted.dtype.code, wanted.dtype.bits])
    out[0] = ExchangeArray(values).export()
    return 0


@_Stream
def _current_stream(_type: int, _ordinal: int, out: Any) -> int:
    out[0] = None
    return 0


def exchange_table(**changes: Any) -> ExchangeTable:
    table = ExchangeTable(
        1, 3, None, _allocate, _to_managed, _ToManaged(), _ToTensor(), _current_stream
    )
    for field, value in changes.items():
        setattr(table, field, value)
    return table


def exchange_type(
    table: ExchangeTable, attribute: str = "__dlpack_c_exchange_api__"
) -> type[ExchangeArray]:
    """A new subclass of ExchangeArray that offers `table` under `attribute`, and that it makes."""

    @_ToManaged
    def from_managed(managed: int, out: Any) -> int:
        array = made(_exports[managed][2])
        Versioned.from_address(managed).deleter(managed)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
        out[0] = id(array)
        return 0

    first = table if table.major == 1 or not table.previous else table.previous.contents
    first.from_managed = from_managed
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    made = type("Made", (ExchangeArray,), {attribute: capsule, "kept": (table, from_managed)})
    return made


def failing_exchange_api(table: ExchangeTable) -> object:
    """The capsule of `table`, altered to export nothing: it raises what `__bool__` raises."""
    table.to_managed = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, _ToManaged)
    _kept.append(table)
    return new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
