"""Tensor-core matrix products for NumPy, CuPy, PyTorch and JAX arrays."""

from __future__ import annotations

from . import _interpreter  # noqa: F401  isort: skip  (before the compiled module)
from ._api import explain, gemm, matmul, plan
from ._core import Plan, __version__
from ._errors import (
    CudaError,
    DeviceError,
    DTypeError,
    InvalidArgument,
    LayoutError,
    NoKernelError,
    OutOfMemoryError,
    ShapeError,
    TcgemmError,
    UnsupportedError,
)
from ._info import (
    build_info,
    cuda_unavailable_reason,
    devices,
    get_cmake_dir,
    get_include,
    get_library_dir,
    kernels,
    release_unused_memory,
    supports,
)

__all__ = [
    "CudaError",
    "DTypeError",
    "DeviceError",
    "InvalidArgument",
    "LayoutError",
    "NoKernelError",
    "OutOfMemoryError",
    "Plan",
    "ShapeError",
    "TcgemmError",
    "UnsupportedError",
    "__version__",
    "build_info",
    "cuda_unavailable_reason",
    "devices",
    "explain",
    "gemm",
    "get_cmake_dir",
    "get_include",
    "get_library_dir",
    "kernels",
    "matmul",
    "plan",
    "release_unused_memory",
    "supports",
]
