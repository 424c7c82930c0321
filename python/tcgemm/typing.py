"""Types of arguments and results, for annotations."""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeAlias, TypedDict, TypeVar

__all__ = ["Accumulate", "Array", "Determinism", "Number", "Overflow", "Precision"]

# Any array: NumPy, CuPy, PyTorch, JAX, or an object with __dlpack__ or __cuda_array_interface__.
Array: TypeAlias = Any
# Any real number, those of NumPy too.
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
    """The keywords of matmul that do not decide on the type of its result."""

    out_dtype: Any
    precision: Precision | None
    accumulate: Accumulate | None
    determinism: Determinism
    stream: Any


class ScaleOptions(TypedDict, total=False):
    """Those that gemm and plan have in common with Plan.execute."""

    scale_a: Array | Number | None
    scale_b: Array | Number | None
    scale_d: Array | Number | None


class GemmOptions(MatmulOptions, ScaleOptions, total=False):
    """Those of gemm and plan."""

    alpha: Number
    beta: Number | None
    trans_a: bool
    trans_b: bool
    overflow: Overflow
    a_dtype: Any
    b_dtype: Any


class ExecuteOptions(ScaleOptions, total=False):
    """Those of Plan.execute; None: as bound."""

    alpha: Number | None
    beta: Number | None
    stream: Any
