"""The products: matmul, gemm, plan, explain."""

from __future__ import annotations

from typing import Any, Unpack, overload

import numpy as np

from . import _core
from ._dtypes import dtype_name
from ._errors import InvalidArgument
from .typing import (
    Accumulate,
    Array,
    ArrayT,
    Determinism,
    GemmOptions,
    MatmulOptions,
    Number,
    OutT,
    Overflow,
    Precision,
)


def _flag(value: Any, name: str) -> bool:
    if value is False or value is True:
        return value
    # Not bool(value): BLAS spells "not transposed" as "N", which is true.
    if isinstance(value, (int, np.bool_)) and value in (0, 1):
        return bool(value)
    raise InvalidArgument(f"{name} is {value!r}; it must be True or False")


def _beta(value: Number | None, c: Array | None) -> Number:
    if value is None:
        return 0.0 if c is None else 1.0
    return value


# The result is `out`, or an array like `a`, of NumPy with the dtype and shape that it gets.
@overload
def matmul(
    a: np.ndarray[Any, Any], b: Array, /, *, out: None = None, **options: Unpack[MatmulOptions]
) -> np.ndarray[Any, Any]: ...
@overload
def matmul(
    a: ArrayT, b: Array, /, *, out: None = None, **options: Unpack[MatmulOptions]
) -> ArrayT: ...
@overload
def matmul(a: Array, b: Array, /, *, out: OutT, **options: Unpack[MatmulOptions]) -> OutT: ...
def matmul(
    a: Array,
    b: Array,
    /,
    *,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: Precision | None = None,
    accumulate: Accumulate | None = None,
    determinism: Determinism = "run_to_run",
    stream: Any = None,
) -> Any:
    """Matrix product of two arrays, with the rules of the Array API standard.

    Parameters
    ----------
    a : array, shape (..., M, K) or (K,)
        float16, bfloat16, float32, float64, int8, float8_e4m3fn or float8_e5m2; NumPy (bfloat16 and
        FP8 by ml_dtypes), CuPy, PyTorch, JAX, or any object with ``__dlpack__`` or
        ``__cuda_array_interface__``. Any strides. A 1-D array counts as one row. FP8 goes with FP8,
        of either format, with float16, and under precision "fp16" with any other.
    b : array, shape (..., K, N) or (K,)
        On the same device as `a`. A 1-D array counts as one column.
    out : array, optional
        Where the result goes: exactly its shape and dtype, writable, apart from `a` and `b`. Views
        of one buffer that interleave in a strange way may be refused though they are apart. Not for
        JAX, whose arrays are immutable.
    out_dtype : dtype or str, optional
        float16, bfloat16, float32 or float64; of int8 operands int32, float16, bfloat16 or float32;
        of FP8 operands float16, bfloat16, float32, float8_e4m3fn or float8_e5m2. Default: the dtype
        that holds both operands; of int8 operands int32, with scales or a floating-point
        `precision` float32 (float64 for fp64); of FP8 operands float32. The accumulator is rounded
        to it once; that of int8 is int32, which wraps around beyond a K of 131,071.
    precision : {"fp16", "bf16", "tf32", "fp32", "fp32_simt", "fp64", "int8", "fp8", ...}, optional
        What the elements of `a` and `b` are rounded to before they are multiplied. Default: what
        they hold, so that nothing is lost. "tf32" leaves 11 significant bits of float32. "fp32"
        gives FP32-grade results by whichever kernel is the fastest that does; "fp32_simt"
        multiplies in FP32 itself, on CUDA cores. "fp8_e4m3", "fp8_e5m2" and "fp8" (each in its own
        format) take operands of FP8, "int8" those of int8. FP8 operands take these and "fp16".
    accumulate : {"fp32", "promoted", "fp16", "fp64", "int32", "fast"}, optional
        What the products are summed in. Default: FP32 for fp16, bf16, tf32 and fp32, FP64 for fp64,
        INT32 for int8, promoted for FP8. "promoted" adds FP32 sums of at most 128 products to a
        second FP32 accumulator: slower, and an error that hardly grows with K. "fp16" goes with
        precision fp16 only, and allows FP16 sums where they are the faster ones. "fast" goes with
        FP8: the accumulator of the tensor cores as it is, of fewer bits than FP32.
    determinism : {"run_to_run", "batch_invariant"}
        "run_to_run": the same build, device model and problem give the same bits, on any stream or
        thread. "batch_invariant": besides, a row of the result depends on the values of that row of
        `a` (and `c`), on `b`, N, K and the arguments only: not on M, on the batch, on its place in
        them, or on strides and addresses. A long K with few rows is slower then.
    stream : optional
        CUDA stream to compute on: a handle (int), a ``torch.cuda.Stream``, a ``cupy.cuda.Stream``,
        or an object with ``__cuda_stream__``. Default: the current stream of the framework of `a`.
        Host and JAX arrays are computed when the call returns, after what `stream` holds; on the
        CPU no stream is waited for.

    Returns
    -------
    array, shape (..., M, N)
        `out`, or a new array of the framework of `a`, on its device. The batch dimensions are
        broadcast. The dimension of a 1-D operand is missing; two 1-D operands give a 0-D array.

    Raises
    ------
    ShapeError, DTypeError, LayoutError, InvalidArgument
        Operands that do not fit, names of modes that there are not, or modes that do not go with
        each other or with the operands; nothing was launched and `out` is untouched.
    UnsupportedError
        An array that comes by another version of DLPack than 1.
    DeviceError
        Operands on different devices, or no usable GPU for them.
    NoKernelError
        No kernel takes the product on this device, or none of those that the environment asks for.
    CudaError, OutOfMemoryError
        The device could not do it.

    Notes
    -----
    Host arrays (NumPy, CPU tensors) go through the first GPU that this build has code for, or the
    one that the environment variable ``TCGEMM_DEVICE`` names ("cuda:1"; "cpu" stays on the CPU),
    and stay on the CPU where there is none. Operands of
    PyTorch, CuPy and JAX on a GPU may be freed as soon as the call returns if `stream` is left out;
    with a `stream` of your own, those of PyTorch and CuPy are kept until it is done. Arrays of
    other frameworks are yours to keep.

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
        "saturate", None, None, None, None, None,
    )  # fmt: skip


@overload
def gemm(
    a: np.ndarray[Any, Any],
    b: Array,
    c: Array | None = None,
    *,
    out: None = None,
    **options: Unpack[GemmOptions],
) -> np.ndarray[Any, Any]: ...
@overload
def gemm(
    a: ArrayT, b: Array, c: Array | None = None, *, out: None = None, **options: Unpack[GemmOptions]
) -> ArrayT: ...
@overload
def gemm(
    a: Array, b: Array, c: Array | None = None, *, out: OutT, **options: Unpack[GemmOptions]
) -> OutT: ...
def gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: Number = 1.0,
    beta: Number | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: Precision | None = None,
    accumulate: Accumulate | None = None,
    determinism: Determinism = "run_to_run",
    stream: Any = None,
    scale_a: Array | Number | None = None,
    scale_b: Array | Number | None = None,
    scale_d: Array | Number | None = None,
    overflow: Overflow = "saturate",
    a_dtype: Any = None,
    b_dtype: Any = None,
) -> Any:
    """``alpha * op(a) @ op(b) + beta * c``, the product of BLAS.

    Parameters
    ----------
    a : array, shape (..., M, K), or (..., K, M) where `trans_a`
    b : array, shape (..., K, N), or (..., N, K) where `trans_b`
        Operands as in :func:`matmul`; batch dimensions are broadcast.
    c : array, optional
        Anything that broadcasts to the result's shape, of the result's dtype. It is added in the
        dtype of the sums (`accumulate`): float64 elements are rounded to float32 but with precision
        "fp64". Not read where `beta` is 0. May be `out` itself.
    alpha, beta : float
        Factors, held in float32, of FP64 products in float64; whole numbers where the result is
        int32. Where `alpha` is 0, `a` and `b` are not read. `beta` is 1 by default where there is
        a `c`, otherwise 0.
    trans_a, trans_b : bool
        The last two dimensions of the operand trade places.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`.
    scale_a, scale_b : float, or float32 array, optional
        What the elements of FP8 and int8 operands stand for, divided by them: the result is that of
        ``scale_a * op(a)`` and ``scale_b * op(b)``. One number of shape (), one for each row of A
        and column of B, of shape (M, 1) or (M,) and (1, N) or (N,), and for FP8 one for each 128 k,
        of shape (M, ceil(K / 128)) and (ceil(K / 128), N), or for each block of 128 x 128, of shape
        (ceil(M / 128), ceil(K / 128)) and (ceil(K / 128), ceil(N / 128)). They are for every matrix
        of a batch. With batch dimensions write all of them: (B, 1, 1) for one per matrix, (B, M, 1)
        and (B, 1, N) for rows and columns; (B,) is read as (M,) or (N,). Where `a` or `b` is
        transposed, its scales are, too. int8 products with scales go to a floating-point dtype.
    scale_d : float, or float32 array of one element, optional
        Factor of the whole result, before it is rounded to `out_dtype`.
    overflow : {"saturate", "nan"}
        What becomes of values beyond the range of an FP8 `out_dtype`: its largest number, or NaN
        (Inf for float8_e5m2, which has it).
    a_dtype, b_dtype : dtype or str, optional
        "float8_e4m3fn" or "float8_e5m2", and no other, where `a` or `b` is a uint8 array that holds
        the bytes of one, for frameworks whose DLPack has no FP8; an FP8 array may name its own
        dtype. `out` and `c` are read so by `out_dtype`.

    Returns
    -------
    array, shape (..., M, N)
        `out`, or a new array of the framework of `a`. ``alpha * sum`` and ``beta * c`` are added at
        the precision of the accumulator, and rounded once.

    Raises
    ------
    InvalidArgument
        `beta` is not 0 and there is no `c`; scales where the operands have none. Otherwise as
        :func:`matmul`.

    Examples
    --------
    >>> import numpy as np, tcgemm
    >>> a = np.ones((2, 3), np.float32)
    >>> tcgemm.gemm(a, a, np.ones(2, np.float32), alpha=2.0, beta=1.0, trans_b=True)
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    return _core.multiply(
        a, b, c, out, alpha, _beta(beta, c), _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
        overflow, dtype_name(a_dtype, "a_dtype"), dtype_name(b_dtype, "b_dtype"),
        scale_a, scale_b, scale_d,
    )  # fmt: skip


@overload
def plan(
    a: np.ndarray[Any, Any],
    b: Array,
    c: Array | None = None,
    *,
    out: None = None,
    **options: Unpack[GemmOptions],
) -> _core.Plan[np.ndarray[Any, Any]]: ...
@overload
def plan(
    a: ArrayT, b: Array, c: Array | None = None, *, out: None = None, **options: Unpack[GemmOptions]
) -> _core.Plan[ArrayT]: ...
@overload
def plan(
    a: Array, b: Array, c: Array | None = None, *, out: OutT, **options: Unpack[GemmOptions]
) -> _core.Plan[OutT]: ...
def plan(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: Number = 1.0,
    beta: Number | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: Precision | None = None,
    accumulate: Accumulate | None = None,
    determinism: Determinism = "run_to_run",
    stream: Any = None,
    scale_a: Array | Number | None = None,
    scale_b: Array | Number | None = None,
    scale_d: Array | Number | None = None,
    overflow: Overflow = "saturate",
    a_dtype: Any = None,
    b_dtype: Any = None,
) -> _core.Plan[Any]:
    """Check a product and choose its kernel once, to compute it many times.

    Parameters
    ----------
    a, b, c, alpha, beta, trans_a, trans_b
        As in :func:`gemm`. The plan is bound to the arrays; ``execute`` takes others of the same
        shape, dtype, strides and device.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`. ``execute`` computes on this `stream` unless it is given another.
    scale_a, scale_b, scale_d, overflow, a_dtype, b_dtype
        As in :func:`gemm`. A scale given as a number stays in force for every ``execute``, beside
        its own `alpha` and `beta`.

    Returns
    -------
    Plan
        With ``execute()``, ``kernel``, ``family``, ``workspace_bytes``, ``precision``,
        ``accumulate``, ``epilogue``, ``split_k``, ``fallback``, ``out_dtype``, ``device``;
        ``str(plan)`` explains it.

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
        a, b, c, out, alpha, _beta(beta, c), _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
        overflow, dtype_name(a_dtype, "a_dtype"), dtype_name(b_dtype, "b_dtype"),
        scale_a, scale_b, scale_d,
    )  # fmt: skip


def explain(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: Number = 1.0,
    beta: Number | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Array | None = None,
    out_dtype: Any = None,
    precision: Precision | None = None,
    accumulate: Accumulate | None = None,
    determinism: Determinism = "run_to_run",
    stream: Any = None,
    scale_a: Array | Number | None = None,
    scale_b: Array | Number | None = None,
    scale_d: Array | Number | None = None,
    overflow: Overflow = "saturate",
    a_dtype: Any = None,
    b_dtype: Any = None,
) -> list[dict[str, Any]]:
    """Tell what every kernel says of a product.

    Parameters
    ----------
    a, b, c, alpha, beta, trans_a, trans_b
        As in :func:`gemm`.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`.
    scale_a, scale_b, scale_d, overflow, a_dtype, b_dtype
        As in :func:`gemm`.

    Returns
    -------
    list of dict
        In order of preference: ``family``, ``name``, ``reason`` why the kernel refuses the product
        (empty where it accepts), and ``chosen``: whether a plan takes it, where none is forced.
    """
    return _core.explain(
        a, b, c, out, alpha, _beta(beta, c), _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
        overflow, dtype_name(a_dtype, "a_dtype"), dtype_name(b_dtype, "b_dtype"),
        scale_a, scale_b, scale_d,
    )  # fmt: skip
