"""A DLPack producer over raw memory: any address, strides and dtype, on any device.

Frameworks refuse some of what the library accepts (PyTorch negative strides, NumPy bfloat16, most
of them strange strides of size-1 dimensions), so the numeric tests hand over arrays of their own.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence

from .formats import Format

CPU, CUDA = 1, 2


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("ordinal", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", _Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", _DLTensor),
]
_CapsuleDestructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NAME = b"dltensor_versioned"

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]

_exported: dict[int, object] = {}  # what an export keeps alive until its deleter is called
_serial = itertools.count(1)


@_Deleter
def _delete(managed: ctypes._Pointer) -> None:  # type: ignore[type-arg]
    _exported.pop(managed.contents.manager_ctx, None)


@_CapsuleDestructor
def _destroy_unconsumed(capsule: int) -> None:
    if _is_valid(capsule, _NAME):
        _delete(ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)))


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
        managed = _Managed(major=1, minor=0, manager_ctx=serial, deleter=_delete)
        managed.tensor = _DLTensor(
            self._address,
            _DLDevice(*self._device),
            ndim,
            _DLDataType(self._format.dlpack_code, 8 * self._format.numpy.itemsize, 1),
            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
            0,
        )
        _exported[serial] = (managed, shape, strides, self._memory)
        return _new(
            ctypes.addressof(managed), _NAME, ctypes.cast(_destroy_unconsumed, ctypes.c_void_p)
        )


def exports_alive() -> int:
    """Exports whose deleter has not been called yet."""
    return len(_exported)
