"""The modes in which a product can be computed, and what each promises.

The promise, componentwise, for R = A B + beta C, exact, of the operands as the mode rounds them:

    |D - R| <= c |A||B| + 2 u_acc |beta C| + u_out |R|

with |A||B| the product of the absolute values, u_acc and u_out the unit roundoffs of the
accumulator and of D's dtype. `hard` is a proven c, which never fails. `gate` is the regression
limit on data of one sign, U(0,1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

U16, U32, U64 = 2.0**-11, 2.0**-24, 2.0**-53

UNIT_ROUNDOFF = {
    "float16": U16,
    "bfloat16": 2.0**-8,
    "float32": U32,
    "float64": U64,
    "int32": 0.0,
}
ACCUMULATOR_ROUNDOFF = {
    "fp16": U16,
    "fp32": U32,
    "promoted": U32,
    "fp64": U64,
    "int32": 0.0,
}
# Half of the smallest subnormal: the absolute error of a result that underflows.
HALF_SUBNORMAL = {
    "float16": 2.0**-25,
    "bfloat16": 2.0**-134,
    "float32": 2.0**-150,
    "float64": 2.0**-1074,
    "int32": 0.0,
}
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "int32": 4}

# The dtype that a precision rounds A and B to.
PRECISION_DTYPE = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "int8": "int8",
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
        if self.out_dtype is not None:
            return self.out_dtype
        return "int32" if self.compute_dtype == "int8" else self.dtype

    @property
    def accumulate_name(self) -> str:
        if self.accumulate is not None:
            return self.accumulate
        return {"float64": "fp64", "int8": "int32"}.get(self.compute_dtype, "fp32")

    @property
    def unit(self) -> str:
        """FLOP for floating-point operations, OP for integer ones."""
        return "OP" if self.compute_dtype == "int8" else "FLOP"


# What the library has, under the names that demo and verify print.
MODES = {
    "fp32": Mode("float32"),
    "fp16": Mode("float16"),
    "bf16": Mode("bfloat16"),
    "fp64": Mode("float64"),
    "int8": Mode("int8"),
    "fp32-as-fp16": Mode("float32", precision="fp16"),
    "fp32-as-bf16": Mode("float32", precision="bf16"),
    "fp16-sum-fp16": Mode("float16", accumulate="fp16"),
    "fp16-promoted": Mode("float16", accumulate="promoted"),
    "bf16-promoted": Mode("bfloat16", accumulate="promoted"),
    "fp32-promoted": Mode("float32", accumulate="promoted"),
}


@dataclass(frozen=True)
class Bounds:
    hard: float
    gate: float | None  # None: no gate is set for this mode


def bounds(mode: Mode, k: int, compute_capability: tuple[int, int] | None = None) -> Bounds:
    """c for a product of length k on a GPU of this compute capability, or on the CPU (None)."""
    compute = mode.compute_dtype
    if compute == "int8":
        return Bounds(0.0, 0.0)
    if mode.accumulate_name == "fp16":
        return Bounds((k / 4 + 2) * U16, None)
    if compute == "float64":
        return Bounds(k * U64, max(8.0, 2 * math.sqrt(k)) * U64)
    promoted = mode.accumulate_name == "promoted"
    if compute == "float32":
        gate = max(8.0, 2 * math.sqrt(k))
        return Bounds(k * U32, (min(64.0, gate) if promoted else gate) * U32)
    # Tensor cores truncate after alignment; Volta and Turing keep fewer bits than later ones.
    truncation = 3 if compute_capability is not None and compute_capability[0] == 7 else 2
    return Bounds(truncation * k * U32, (64.0 if promoted else 0.2 * k + 8) * U32)
