"""The modes in which a product can be computed, and what docs/numerics.md promises of each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

U16, U32, U64 = 2.0**-11, 2.0**-24, 2.0**-53

UNIT_ROUNDOFF = {
    "float16": U16,
    "bfloat16": 2.0**-8,
    "float32": U32,
    "float64": U64,
    "int32": 0.0,
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
ACCUMULATOR_DTYPE = {
    "fp16": "float16",
    "fp32": "float32",
    "promoted": "float32",
    "fp64": "float64",
    "int32": "float32",  # where the result is a floating-point number
    "fast": "float32",
}
# Half of the smallest subnormal: the absolute error of a rounding there. That of FP64 is no FP64
# number, so that it is the whole one.
HALF_SUBNORMAL = {
    "float16": 2.0**-25,
    "bfloat16": 2.0**-134,
    "float32": 2.0**-150,
    "float64": 2.0**-1074,
    "int32": 0.0,
    "float8_e4m3fn": 2.0**-10,
    "float8_e5m2": 2.0**-17,
}
LARGEST_FP16 = 65504.0
LARGEST_FP8 = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
ITEM_BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int8": 1,
    "int32": 4,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}

# The dtype that a precision rounds A and B to.
PRECISION_DTYPE = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "fp32": "float32",
    "fp32_simt": "float32",
    "fp64": "float64",
    "int8": "int8",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}


@dataclass(frozen=True)
class Mode:
    """The arguments of a product that decide its accuracy; None leaves the library's default."""

    dtype: str  # of A and B
    precision: str | None = None
    accumulate: str | None = None
    out_dtype: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for matmul, gemm and plan."""
        given = {
            "precision": self.precision,
            "accumulate": self.accumulate,
            "out_dtype": self.out_dtype,
        }
        return {key: value for key, value in given.items() if value is not None}

    @property
    def compute_dtype(self) -> str:
        """What A and B are rounded to. KeyError for a precision that has no dtype here."""
        return self.dtype if self.precision is None else PRECISION_DTYPE[self.precision]

    @property
    def result_dtype(self) -> str:
        """The library's default, where none is named."""
        if self.out_dtype is not None:
            return self.out_dtype
        if self.dtype == "int8":  # a precision of floating-point numbers has such results
            return {"int8": "int32", "float64": "float64"}.get(self.compute_dtype, "float32")
        return "float32" if self.is_fp8 else self.dtype

    @property
    def results_are_fp8(self) -> bool:
        return self.result_dtype in LARGEST_FP8

    @property
    def is_fp8(self) -> bool:
        return self.dtype.startswith("float8")

    @property
    def is_exact(self) -> bool:
        """Whether every result is, modulo 2^32."""
        return self.result_dtype == "int32"

    @property
    def accumulate_name(self) -> str:
        if self.accumulate is not None:
            return self.accumulate
        if self.is_fp8:
            return "promoted"
        return {"float64": "fp64", "int8": "int32"}.get(self.compute_dtype, "fp32")

    @property
    def unit(self) -> str:
        """FLOP for floating-point operations, OP for integer ones."""
        return "OP" if self.compute_dtype == "int8" else "FLOP"


# What the library has, under the names that demo and verify print.
MODES = {
    "fp32": Mode("float32"),
    "fp32-simt": Mode("float32", precision="fp32_simt"),
    "tf32": Mode("float32", precision="tf32"),
    "fp16": Mode("float16"),
    "bf16": Mode("bfloat16"),
    "fp8-e4m3": Mode("float8_e4m3fn"),
    "fp8-e5m2": Mode("float8_e5m2"),
    "fp8-e4m3-fast": Mode("float8_e4m3fn", accumulate="fast"),
    "fp8-to-fp8": Mode("float8_e4m3fn", out_dtype="float8_e4m3fn"),
    "fp64": Mode("float64"),
    "int8": Mode("int8"),
    "int8-to-fp32": Mode("int8", out_dtype="float32"),
    "fp32-as-fp16": Mode("float32", precision="fp16"),
    "fp32-as-bf16": Mode("float32", precision="bf16"),
    "fp16-sum-fp16": Mode("float16", accumulate="fp16"),
    "fp16-promoted": Mode("float16", accumulate="promoted"),
    "bf16-promoted": Mode("bfloat16", accumulate="promoted"),
    "fp32-promoted": Mode("float32", accumulate="promoted"),
}


def verified(name: str) -> Mode:
    """A mode as verify measures it: rounding D to 16 bits would hide the sum's own error."""
    mode = MODES[name]
    wide = mode.compute_dtype in ("float16", "bfloat16") and mode.accumulate_name != "fp16"
    return replace(mode, out_dtype="float32") if wide else mode


@dataclass(frozen=True)
class Bounds:
    """c of docs/numerics.md."""

    hard: float
    gate: float | None  # None: no gate is set for this mode


def bounds(
    mode: Mode,
    k: int,
    compute_capability: tuple[int, int] | None = None,
    *,
    family: str = "",
    adds: bool = False,
) -> Bounds:
    """For a product of length k on a GPU of this compute capability, or on the CPU (None).

    `family`: that computes it. `adds`: C is added.
    """
    limits = _bounds(mode, k, compute_capability, family)
    if not adds or mode.is_exact:
        return limits
    scaling = 3 * (U64 if mode.compute_dtype == "float64" else U32)  # alpha, its product, the sum
    gate = None if limits.gate is None else limits.gate + scaling
    return Bounds(limits.hard + scaling, gate)


def _bounds(mode: Mode, k: int, compute_capability: tuple[int, int] | None, family: str) -> Bounds:
    compute = mode.compute_dtype
    if compute == "int8":  # an exact sum, which FP32 may have to round
        return Bounds(0.0, 0.0) if mode.is_exact else Bounds(8 * U32, 8 * U32)
    if mode.is_fp8:
        # What FP8 tensor cores keep; fast ones promise no constant.
        fast = mode.accumulate_name == "fast"
        return Bounds(max(1.7e-2, k * 2.0**-13), None) if fast else Bounds(1.7e-2, 2e-3)
    if mode.accumulate_name == "fp16":
        return Bounds((k + 1 if family == "simt" else k / 4 + 2) * U16, None)
    if compute == "float64":
        return Bounds(k * U64, max(8.0, 2 * math.sqrt(k)) * U64)
    promoted = mode.accumulate_name == "promoted"
    if compute == "float32":
        gate = max(8.0, 2 * math.sqrt(k))
        return Bounds(k * U32, (min(64.0, gate) if promoted else gate) * U32)
    # Tensor cores truncate after alignment; Volta and Turing keep fewer bits than later ones.
    truncation = 3 if compute_capability is not None and compute_capability[0] == 7 else 2
    return Bounds(truncation * k * U32, (64.0 if promoted else 0.2 * k + 8) * U32)
