"""The products: matmul, gemm, plan, explain."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._dtypes import dtype_name
from ._errors import InvalidArgument

# Any array: NumPy, CuPy, PyTorch, JAX, or an object with __dlpack__ or __cuda_array_interface__.
Array = Any


def _flag(value: Any, name: str) -> bool:
    if value is False or value is True:
        return value
    # Not bool(value): BLAS spells "not transposed" as "N", which is true.
    if isinstance(value, (int, np.bool_)) and value in (0, 1):
        return bool(value)
    raise InvalidArgument(f"{name} is {value!r}; it must be True or False")


def matmul(
    a: Array,
    b: Array,
    /,
    *,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: str | None = None,
    accumulate: str | None = None,
    determinism: str = "run_to_run",
    stream: Any = None,
) -> Any:
    """Matrix product of two arrays, with the rules of the Array API standard.

    Parameters
    ----------
    a : array, shape (..., M, K) or (K,)
        float16, bfloat16, float32, float64 or int8; NumPy (bfloat16 by ml_dtypes), CuPy, PyTorch,
        JAX, or any object with ``__dlpack__``. Any strides. A 1-D array counts as one row.
    b : array, shape (..., K, N) or (K,)
        On the same device as `a`. A 1-D array counts as one column.
    out : array, optional
        Where the result goes: exactly its shape and dtype, writable, apart from `a` and `b`.
        Not for JAX, whose arrays are immutable.
    out_dtype : dtype or str, optional
        float16, bfloat16, float32 or float64. Default: the dtype that holds both operands; int32
        for int8 operands, which have no other. The accumulator is rounded to it once.
    precision : {"fp16", "bf16", "fp32", "fp64", "int8"}, optional
        What the elements of `a` and `b` are rounded to before they are multiplied. Default: what
        they hold, so that nothing is lost. "tf32", "fp8_e4m3" and "fp8_e5m2" are names of versions
        to come.
    accumulate : {"fp32", "promoted", "fp16", "fp64", "int32"}, optional
        What the products are summed in. Default: FP32 for fp16, bf16 and fp32, FP64 for fp64, INT32
        for int8. "promoted" (precisions fp16, bf16 and fp32) adds FP32 sums of at most 128 products
        to a second FP32 accumulator: slower, and an error that hardly grows with K. "fp16" goes
        with precision fp16 only.
    determinism : {"run_to_run", "batch_invariant"}
        "run_to_run": the same build, device model and problem give the same bits, on any stream or
        thread. "batch_invariant": besides, a row of the result depends on the values of that row of
        `a` (and `c`), on `b`, N, K and the arguments only: not on M, on the batch, on its place in
        them, or on strides and addresses. A long K with few rows is slower then.
    stream : optional
        CUDA stream to compute on: a handle (int), a ``torch.cuda.Stream``, a ``cupy.cuda.Stream``,
        or an object with ``__cuda_stream__``. Default: the current stream of the framework of `a`.
        Host and JAX arrays are computed when the call returns, after what `stream` holds.

    Returns
    -------
    array, shape (..., M, N)
        `out`, or a new array of the framework of `a`, on its device. The batch dimensions are
        broadcast. The dimension of a 1-D operand is missing; two 1-D operands give a 0-D array.

    Raises
    ------
    ShapeError, DTypeError, LayoutError, InvalidArgument
        Operands that do not fit; nothing was launched and `out` is untouched.
    UnsupportedError
        A precision or mode that this version does not have.
    DeviceError
        Operands on different devices, or no usable GPU for them.
    NoKernelError, CudaError, OutOfMemoryError
        The device could not do it.

    Notes
    -----
    Host arrays (NumPy, CPU tensors) go through the GPU where there is one: GPU 0, or the one that
    the environment variable ``TCGEMM_DEVICE`` names ("cuda:1"; "cpu" stays on the CPU). Operands on
    a GPU may be freed as soon as the call returns if `stream` is left out; with a `stream` of your
    own, PyTorch and CuPy arrays are kept until it is done, and arrays of other frameworks are yours
    to keep.

    Examples
    --------
    >>> import numpy as np, tcgemm
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> tcgemm.matmul(a, a.T)
    array([[ 5., 14.],
           [14., 50.]], dtype=float32)
    >>> tcgemm.matmul(a, a.T, precision="fp16").dtype  # FP16 inputs, FP32 sums, FP32 result
    dtype('float32')
    """
    return _core.multiply(
        a, b, None, out, 1.0, 0.0, False, False,
        out_dtype if out_dtype is None else dtype_name(out_dtype),
        precision, accumulate, determinism, stream,
    )  # fmt: skip


def gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: str | None = None,
    accumulate: str | None = None,
    determinism: str = "run_to_run",
    stream: Any = None,
) -> Any:
    """``alpha * op(a) @ op(b) + beta * c``, with the conventions of BLAS.

    Parameters
    ----------
    a : array, shape (..., M, K), or (..., K, M) where `trans_a`
    b : array, shape (..., K, N), or (..., N, K) where `trans_b`
        Operands as in :func:`matmul`; batch dimensions are broadcast.
    c : array, optional
        Anything that broadcasts to the result's shape, of the result's dtype. Not read where
        `beta` is 0. May be `out` itself.
    alpha, beta : float
        Factors, held at the precision of the accumulator; whole numbers for int8 products. Where
        `alpha` is 0, `a` and `b` are not read.
    trans_a, trans_b : bool
        The last two dimensions of the operand trade places.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`.

    Returns
    -------
    array, shape (..., M, N)
        `out`, or a new array of the framework of `a`. ``alpha * sum`` and ``beta * c`` are added at
        the precision of the accumulator, and rounded once.

    Raises
    ------
    InvalidArgument
        `beta` is not 0 and there is no `c`. Otherwise as :func:`matmul`.

    Examples
    --------
    >>> import numpy as np, tcgemm
    >>> a = np.ones((2, 3), np.float32)
    >>> tcgemm.gemm(a, a, np.ones(2, np.float32), alpha=2.0, beta=1.0, trans_b=True)
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    return _core.multiply(
        a, b, c, out, alpha, beta, _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
    )  # fmt: skip


def plan(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: str | None = None,
    accumulate: str | None = None,
    determinism: str = "run_to_run",
    stream: Any = None,
) -> _core.Plan:
    """Check a product and choose its kernel once, to compute it many times.

    Parameters
    ----------
    a, b, c, alpha, beta, trans_a, trans_b
        As in :func:`gemm`. The plan is bound to the arrays; ``execute`` takes others of the same
        shape, dtype, strides and device.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`.

    Returns
    -------
    Plan
        With ``execute()``, ``kernel``, ``family``, ``workspace_bytes``, ``precision``,
        ``accumulate``, ``split_k``, ``out_dtype``, ``device``; ``str(plan)`` explains it.

    Raises
    ------
    As :func:`gemm`. Nothing is computed here.

    Examples
    --------
    >>> import numpy as np, tcgemm
    >>> a = np.eye(3, dtype=np.float32)
    >>> p = tcgemm.plan(a, a)
    >>> p.execute(alpha=2.0)[0, 0]
    np.float32(2.0)
    """
    return _core.plan(
        a, b, c, out, alpha, beta, _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
    )  # fmt: skip


def explain(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: str | None = None,
    accumulate: str | None = None,
    determinism: str = "run_to_run",
    stream: Any = None,
) -> list[dict[str, str]]:
    """Tell what every kernel says of a product.

    Parameters
    ----------
    a, b, c, alpha, beta, trans_a, trans_b
        As in :func:`gemm`.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`.

    Returns
    -------
    list of dict
        In order of preference: ``family``, ``name``, and ``reason`` why the kernel refuses the
        product; empty where it accepts.
    """
    return _core.explain(
        a, b, c, out, alpha, beta, _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
    )  # fmt: skip
