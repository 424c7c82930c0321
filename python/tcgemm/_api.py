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
    """Matrix product ``a @ b``, by the shape rules of the Array API standard.

    Parameters
    ----------
    a : array, shape (..., M, K) or (K,)
        Array of NumPy, CuPy, PyTorch or JAX, or any object with ``__dlpack__`` or
        ``__cuda_array_interface__``, with any strides. A 1-D array is one row. Its dtype is
        float16, bfloat16, float32, float64, int8, float8_e4m3fn or float8_e5m2 (bfloat16 and FP8
        in NumPy by ml_dtypes). Dtypes may differ, but int8 with a floating-point dtype, and FP8
        with any but FP8 and float16, need a `precision` that takes both (for FP8: "fp16").
    b : array, shape (..., K, N) or (K,)
        As `a`, on the same device. A 1-D array is one column.
    out : array, optional
        Array for the result, of exactly its shape and dtype. It must be writable and share no
        memory with `a` and `b`; views of one buffer that interleave irregularly may be refused
        even if they share none. Not for JAX, whose arrays are immutable.
    out_dtype : dtype or str, optional
        Dtype of the result, to which the sums are rounded once. int8 products: int32, float16,
        bfloat16 or float32; FP8 products: float16, bfloat16, float32, float8_e4m3fn or
        float8_e5m2; all others: float16, bfloat16, float32 or float64. Default: int32 for int8
        products, float32 for FP8 operands, float32 for int8 operands with scales or with a
        floating-point `precision` (float64 with "fp64"), otherwise the dtype that holds the
        values of both operands. int32 sums wrap around for a K beyond 131,071.
    precision : {"fp16", "bf16", "tf32", "fp32", "fp32_simt", "fp64", "int8", "fp8", ...}, optional
        Format that the elements of `a` and `b` are rounded to, to nearest even, before they are
        multiplied. Default: that of the operands, so that nothing is lost. "tf32" keeps 11
        significant bits of float32. "fp32" gives FP32-grade results by the fastest kernel that can,
        on tensor cores or not; "fp32_simt" multiplies in FP32 itself, on CUDA cores. "int8" takes
        int8 operands, "fp8_e4m3" and "fp8_e5m2" FP8 operands of that format, "fp8" any. FP8
        operands take these three and "fp16".
    accumulate : {"fp32", "promoted", "fp16", "fp64", "int32", "fast"}, optional
        Format of the sums. Default: FP32 for fp16, bf16, tf32 and fp32, FP64 for fp64, INT32 for
        int8, promoted for FP8. "promoted" adds FP32 sums of at most 128 products to a second FP32
        accumulator: slower, but the error hardly grows with K. "fp16", with precision fp16 only,
        allows FP16 sums where they are faster. "fast", with FP8 only, takes the tensor cores'
        accumulator as it is, which keeps fewer bits than FP32.
    determinism : {"run_to_run", "batch_invariant"}
        "run_to_run" (default): the same build, GPU model and problem give the same bits, on any
        stream or thread. "batch_invariant": in addition, the bits of a row of the result depend
        only on the values of that row of `a` (and `c`), on `b`, N, K and the arguments; not on M,
        the batch, the row's position, strides or addresses. Slower for few rows with a long K.
    stream : optional
        CUDA stream to compute on: a handle (int), a ``torch.cuda.Stream``, a ``cupy.cuda.Stream``
        or an object with ``__cuda_stream__``. Default: the current stream of the framework of `a`,
        or the legacy default stream for arrays of other origin. With host and JAX arrays the call
        starts after the work that `stream` holds and returns when the result is complete. Products
        on the CPU wait for no stream.

    Returns
    -------
    array, shape (..., M, N)
        `out`, or a new array of the framework of `a`, on its device. The batch dimensions are
        broadcast. A 1-D operand has no dimension in it; two give a 0-D array.

    Raises
    ------
    ShapeError, DTypeError, LayoutError
        Operands whose shapes, dtypes or memory are not accepted, or do not fit each other.
    InvalidArgument
        An unknown mode, modes that do not go with each other or with the operands, or a wrong
        value of an environment variable.
    UnsupportedError
        An array exported by a version of DLPack other than 1.
    DeviceError
        Operands on different devices, a `stream` of another one, or no usable GPU for them.
    NoKernelError
        No kernel takes the product on this device, or none that ``TCGEMM_FORCE_FAMILY`` and
        ``TCGEMM_FORCE_KERNEL`` allow. :func:`explain` has the reason of each.
    CudaError, OutOfMemoryError
        The device failed, or has too little memory.

    Notes
    -----
    All errors but the last two are raised before anything is launched: `out` is untouched.

    Host arrays (NumPy, CPU tensors) are multiplied on the first GPU that this build has code for,
    and on the CPU if there is none; the environment variable ``TCGEMM_DEVICE`` names another
    ("cuda:1", "cpu").

    A product on the CPU is not interrupted by ^C: the KeyboardInterrupt comes after it.

    GPU arrays of PyTorch, CuPy and JAX may be freed as soon as the call returns. With a `stream`
    given, those of PyTorch and CuPy are kept until it has computed the product. Arrays of other
    origin have to be kept by the caller until then.

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
    """``alpha * op(a) @ op(b) + beta * c``, the GEMM of BLAS, with scales for FP8 and int8.

    Parameters
    ----------
    a : array, shape (..., M, K), or (..., K, M) if `trans_a`
    b : array, shape (..., K, N), or (..., N, K) if `trans_b`
        Operands as in :func:`matmul`; batch dimensions are broadcast.
    c : array, optional
        Array that broadcasts to the result's shape, of the result's dtype. It is added in the
        format of the sums (`accumulate`): float64 elements are rounded to float32 unless the
        precision is "fp64". Not read if `beta` is 0. May be `out` itself.
    alpha, beta : float
        Factors, rounded to float32 except in FP64 products. Whole numbers of at most 2^31 in
        magnitude if the result is int32. `a` and `b` are not read if `alpha` is 0. `beta` is 1 by
        default if there is a `c`, otherwise 0.
    trans_a, trans_b : bool
        Whether the last two dimensions of the operand are swapped.
    out, out_dtype, precision, accumulate, determinism, stream
        As in :func:`matmul`.
    scale_a, scale_b : float, or float32 array, optional
        Factors of FP8 and int8 operands, as of quantised values: the product is that of
        ``scale_a * op(a)`` and ``scale_b * op(b)``. Not with a wider `precision` ("fp16" for FP8,
        "fp32" for int8). int8 products with scales have a floating-point result. Shapes, of
        `scale_a` and of `scale_b`:

        - (): one for the whole matrix;
        - (M,) or (M, 1), and (N,) or (1, N): one for each row of op(a) and column of op(b);
        - (M, ceil(K / 128)) and (ceil(K / 128), N), FP8 only: one for each 128 k of them;
        - (ceil(M / 128), ceil(K / 128)) and (ceil(K / 128), ceil(N / 128)), FP8 only: one for each
          block of 128 x 128.

        The last two dimensions are swapped if the operand is transposed. Scales without batch
        dimensions are those of every matrix of the batch; otherwise put the batch dimensions in
        front, such as (B, 1, 1) for one per matrix, (B, M, 1) and (B, 1, N) for rows and columns.
        1-D scales are of rows or columns, or one for the whole matrix: (B,) is read as (M,) or
        (N,), (1,) as ().
    scale_d : float, or float32 array of one element, optional
        Factor of the whole result, applied before it is rounded to `out_dtype`; FP8 and int8
        products only, as the others.
    overflow : {"saturate", "nan"}
        What values beyond the range of an FP8 `out_dtype` become: its largest number of their sign
        (default), or NaN (Inf in float8_e5m2, which has it).
    a_dtype, b_dtype : dtype or str, optional
        "float8_e4m3fn" or "float8_e5m2": the format whose bytes `a` or `b` holds, if it is a uint8
        array, for frameworks whose DLPack has no FP8. An FP8 array may name its own dtype. uint8
        arrays as `out` and `c` are read as an FP8 `out_dtype`.

    Returns
    -------
    array, shape (..., M, N)
        `out`, or a new array of the framework of `a`. ``alpha`` times the sum and ``beta * c`` are
        added in the format of the sums, and rounded once.

    Raises
    ------
    InvalidArgument
        `beta` is not 0 and there is no `c`, or a scale for a product that takes none.
    ShapeError, DTypeError, LayoutError and others
        As :func:`matmul`.

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
        As in :func:`gemm`. A scale given as a number is kept for every ``execute``, also where
        that is given another `alpha` or `beta`.

    Returns
    -------
    Plan
        Its ``execute()`` computes the product; its properties (``kernel``, ``workspace_bytes``
        and others) and ``str(plan)`` tell what was chosen.

    Raises
    ------
    TcgemmError
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
    """List every kernel, with the reason why it does not take a product.

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
        One for each kernel of this build, in order of preference: ``family`` (str), ``name`` (str),
        ``reason`` (str: why it refuses the product; empty if it accepts) and ``chosen`` (bool:
        whether a plan takes it, if no environment variable forces another).

    Raises
    ------
    TcgemmError
        As :func:`gemm`, but for NoKernelError: then no kernel is chosen.

    Examples
    --------
    >>> import numpy as np, tcgemm
    >>> a = np.eye(3, dtype=np.float32)
    >>> [row["reason"] for row in tcgemm.explain(a, a) if row["chosen"]]
    ['']
    """
    return _core.explain(
        a, b, c, out, alpha, _beta(beta, c), _flag(trans_a, "trans_a"), _flag(trans_b, "trans_b"),
        dtype_name(out_dtype), precision, accumulate, determinism, stream,
        overflow, dtype_name(a_dtype, "a_dtype"), dtype_name(b_dtype, "b_dtype"),
        scale_a, scale_b, scale_d,
    )  # fmt: skip
