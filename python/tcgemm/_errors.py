"""Exceptions. Each also derives from the built-in that a caller would catch anyway.

A message names the operand, its value, what is required and the way out. Errors about arguments are
raised before anything is launched: the output is untouched.
"""

from __future__ import annotations

__all__ = [
    "CudaError",
    "DTypeError",
    "DeviceError",
    "InvalidArgument",
    "LayoutError",
    "NoKernelError",
    "OutOfMemoryError",
    "ShapeError",
    "TcgemmError",
    "UnsupportedError",
]


class TcgemmError(Exception):
    """Base of every error that tcgemm raises."""


class InvalidArgument(TcgemmError, ValueError):  # noqa: N818 (the C++ class has this name)
    """A value that no call accepts."""


class ShapeError(InvalidArgument):
    """Shapes that do not fit each other, or that overflow 64 bits."""


class LayoutError(InvalidArgument):
    """Strides, alignment, overlap, or an output that can't be written."""


class DTypeError(TcgemmError, TypeError):
    """No array, or an element type (or a mix of them) that is not accepted."""


class UnsupportedError(TcgemmError, NotImplementedError):
    """An array that comes by another version of DLPack than 1, or an instruction that this GPU or
    build does not have."""


class NoKernelError(TcgemmError, RuntimeError):
    """No kernel accepts the problem on this device; the message has each kernel's reason."""


class DeviceError(TcgemmError, RuntimeError):
    """No such device, no driver, arrays on different devices, or CUDA used after a fork."""


class CudaError(TcgemmError, RuntimeError):
    """The CUDA runtime reported an error.

    Attributes
    ----------
    status : int
        The ``cudaError_t``.
    """

    status: int = 0


class OutOfMemoryError(TcgemmError, MemoryError):
    """Memory could not be allocated; the message has the number of bytes."""


for _name in __all__:
    globals()[_name].__module__ = "tcgemm"  # what a traceback shows
