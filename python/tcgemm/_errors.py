"""Exceptions. Each also derives from the built-in exception that a caller would expect.

A message names the operand, its value, what is required and the fix. Errors about arguments are
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
    """An argument or environment variable has a wrong value, or arguments do not go together."""


class ShapeError(InvalidArgument):
    """Shapes do not fit each other, or are too large to count or address in 64 bits."""


class LayoutError(InvalidArgument):
    """Strides, alignment or overlap are not accepted, or an output can't be written."""


class DTypeError(TcgemmError, TypeError):
    """An operand is not an array, or its dtype, or the mix of dtypes, is not accepted."""


class UnsupportedError(TcgemmError, NotImplementedError):
    """An array was exported by a version of DLPack other than 1, or this GPU or build lacks an
    instruction."""


class NoKernelError(TcgemmError, RuntimeError):
    """No kernel takes the product on this device; the message has each kernel's reason."""


class DeviceError(TcgemmError, RuntimeError):
    """No such device, no driver, arrays or a stream of different devices, or CUDA after a fork."""


class CudaError(TcgemmError, RuntimeError):
    """The CUDA runtime or driver reported an error.

    Attributes
    ----------
    status : int
        The error's number, a ``cudaError_t``.
    """

    status: int = 0


class OutOfMemoryError(TcgemmError, MemoryError):
    """Memory could not be allocated; the message has the number of bytes."""


for _name in __all__:
    globals()[_name].__module__ = "tcgemm"  # what a traceback shows
