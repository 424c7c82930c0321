"""Types of arguments and results, for annotations."""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeAlias, TypedDict, TypeVar

__all__ = ["Accumulate", "Array", "Determinism", "Number", "Overflow", "Precision"]

# An array of NumPy, CuPy, PyTorch or JAX, or any object with __dlpack__ or
# __cuda_array_interface__.
Array: TypeAlias = Any
# A real number, of Python or NumPy.
Number: TypeAlias = SupportsFloat | SupportsIndex

Precision: TypeAlias = Literal[
    "fp16", "bf16", "tf32", "fp32", "fp64", "int8", "fp8_e4m3", "fp8_e5m2", "fp8", "fp32_simt"
]
Accumulate: TypeAlias = Literal["fp16", "fp32", "promoted", "fp64", "int32", "fast"]
Determinism: TypeAlias = Literal["run_to_run", "batch_invariant"]
Overflow: TypeAlias = Literal["saturate", "nan"]

ArrayT = TypeVar("ArrayT")
OutT = TypeVar("OutT")


class MatmulOptions(TypedDict, total=False):
    """Keyword arguments of matmul, except `out`, which decides the type of the result."""

    out_dtype: Any
    precision: Precision | None
    accumulate: Accumulate | None
    determinism: Determinism
    stream: Any


class ScaleOptions(TypedDict, total=False):
    """Keyword arguments that gemm and plan share with Plan.execute."""

    scale_a: Array | Number | None
    scale_b: Array | Number | None
    scale_d: Array | Number | None


class GemmOptions(MatmulOptions, ScaleOptions, total=False):
    """Keyword arguments of gemm, plan and explain, except `out`."""

    alpha: Number
    beta: Number | None
    trans_a: bool
    trans_b: bool
    overflow: Overflow
    a_dtype: Any
    b_dtype: Any


class ExecuteOptions(ScaleOptions, total=False):
    """Keyword arguments of Plan.execute; None keeps what the plan was made with."""

    alpha: Number | None
    beta: Number | None
    stream: Any
