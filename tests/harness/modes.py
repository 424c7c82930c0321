"""The modes of computation, what each promises, and which family takes which.

`hard` and `gate` are the c of docs/numerics.md, without what alpha and C add to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

U16, U32, U64 = 2.0**-11, 2.0**-24, 2.0**-53
FP8_HARD, FP8_GATE = 1.7e-2, 2e-3
INT8_HARD = 8 * U32  # to floats: the exact sum is rounded to FP32 and scaled
FLOAT_OUTPUTS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Mode:
    name: str
    operand: str  # dtype of A and B as the user hands them over
    compute: str  # dtype that they are rounded to before they are multiplied
    accumulator: str
    hard: Callable[[int], float] | None  # c as a function of K; None: exact
    gate: Callable[[int], float] | None = None  # None: none is set
    precision: str | None = None
    accumulate: str | None = None
    outputs: tuple[str, ...] = FLOAT_OUTPUTS

    @property
    def default_output(self) -> str:
        if self.is_fp8:
            return "float32"
        return "int32" if self.operand == "int8" else self.operand

    def of_family(self, family: str) -> Mode:
        """With the bound of that family: CUDA cores round an FP16 sum after every product."""
        if family == "simt" and self.accumulator == "float16":
            return replace(self, hard=lambda k: (k + 1) * U16)
        return self

    @property
    def is_fp8(self) -> bool:
        return self.operand.startswith("float8")

    @property
    def sum_output(self) -> str:
        """The output dtype that rounds nothing away from a sum."""
        return "float32" if self.accumulator == "float16" else self.accumulator

    def __str__(self) -> str:
        return self.name


def _fp32_accumulate_hard(k: int) -> float:
    return 2 * k * U32


def _fp32_accumulate_gate(k: int) -> float:
    return (0.2 * k + 8) * U32


def _promoted_gate(k: int) -> float:
    return 64 * U32


def _fp32_hard(k: int) -> float:
    return k * U32


def _fp32_gate(k: int) -> float:
    return max(8.0, 2 * math.sqrt(k)) * U32


def _promoted(name: str, operand: str, compute: str, precision: str | None = None) -> Mode:
    """16-bit products, or FP32 ones with their own bounds where those are tighter."""
    fp32 = compute == "float32"
    return Mode(
        name,
        operand,
        compute,
        "float32",
        _fp32_hard if fp32 else _fp32_accumulate_hard,
        (lambda k: min(_fp32_gate(k), _promoted_gate(k))) if fp32 else _promoted_gate,
        precision=precision,
        accumulate="promoted",
    )


def _fp8(name: str, operand: str, accumulate: str | None = None) -> Mode:
    """Held to the promise of FP8 tensor cores. What fast ones keep is recorded, not promised, but
    no less than this on lengths in use."""
    return Mode(
        name,
        operand,
        operand,
        "float32",
        (lambda k: FP8_HARD) if accumulate is None else (lambda k: max(FP8_HARD, k * 2.0**-13)),
        (lambda k: FP8_GATE) if accumulate is None else None,
        accumulate=accumulate,
        outputs=("float16", "bfloat16", "float32"),
    )


MODES = {
    m.name: m
    for m in (
        Mode("fp16", "float16", "float16", "float32", _fp32_accumulate_hard, _fp32_accumulate_gate),
        Mode(
            "fp16_accumulate_fp16",
            "float16",
            "float16",
            "float16",
            lambda k: (k / 4 + 2) * U16,
            accumulate="fp16",
        ),
        Mode(
            "bf16", "bfloat16", "bfloat16", "float32", _fp32_accumulate_hard, _fp32_accumulate_gate
        ),
        Mode("fp32", "float32", "float32", "float32", _fp32_hard, _fp32_gate),
        Mode(
            "fp32_as_fp16",
            "float32",
            "float16",
            "float32",
            _fp32_accumulate_hard,
            _fp32_accumulate_gate,
            precision="fp16",
        ),
        Mode(
            "fp32_as_bf16",
            "float32",
            "bfloat16",
            "float32",
            _fp32_accumulate_hard,
            _fp32_accumulate_gate,
            precision="bf16",
        ),
        Mode(
            "fp64_as_fp32",
            "float64",
            "float32",
            "float32",
            _fp32_hard,
            _fp32_gate,
            precision="fp32",
        ),
        Mode(
            "fp64",
            "float64",
            "float64",
            "float64",
            lambda k: k * U64,
            lambda k: max(8.0, 2 * math.sqrt(k)) * U64,
        ),
        Mode("int8", "int8", "int8", "int32", None, outputs=("int32",)),
        Mode(
            "tf32",
            "float32",
            "tf32",
            "float32",
            _fp32_accumulate_hard,
            _fp32_accumulate_gate,
            precision="tf32",
        ),
        Mode(
            "fp32_simt",
            "float32",
            "float32",
            "float32",
            _fp32_hard,
            _fp32_gate,
            precision="fp32_simt",
        ),
        _fp8("fp8_e4m3", "float8_e4m3fn"),
        _fp8("fp8_e5m2", "float8_e5m2"),
        _fp8("fp8_e4m3_fast", "float8_e4m3fn", "fast"),
        _promoted("fp16_promoted", "float16", "float16"),
        _promoted("bf16_promoted", "bfloat16", "bfloat16"),
        _promoted("fp32_promoted", "float32", "float32"),
        _promoted("fp32_as_fp16_promoted", "float32", "float16", "fp16"),
        _promoted("fp32_as_bf16_promoted", "float32", "bfloat16", "bf16"),
    )
}

# What each family takes, written down: a kernel that disappears fails the suite, it does not
# shorten it. test_registry.py compares this table with what the library says of itself.
ALL_MODES = tuple(MODES)
_SIXTEEN_BIT_MODES = (
    "fp16",
    "fp16_accumulate_fp16",
    "bf16",
    "fp32_as_fp16",
    "fp32_as_bf16",
    "fp16_promoted",
    "bf16_promoted",
    "fp32_as_fp16_promoted",
    "fp32_as_bf16_promoted",
)
# float32 operands, or what is converted to that, in halves: such a family computes a product where
# it is the faster one, unless operands turn out on the device not to fit; then its fallback does.
# None is batch-invariant.
HALVES_MODES = dict.fromkeys(("sm90_wgmma", "sm80_mma"), ("fp32", "fp32_promoted", "fp64_as_fp32"))
# Cards that are known to multiply halves fast enough for that to pay, by compute capability.
HALVES_PAY = {"sm90_wgmma": ((9, 0),), "sm80_mma": ((8, 0),)}
FP8_MODES = ("fp8_e4m3", "fp8_e5m2", "fp8_e4m3_fast")
FAMILY_MODES = {
    "sm90_wgmma": (*_SIXTEEN_BIT_MODES, *FP8_MODES, "int8", "tf32", *HALVES_MODES["sm90_wgmma"]),
    "sm80_mma": (
        *_SIXTEEN_BIT_MODES,
        *FP8_MODES,
        "tf32",
        "fp64",
        "int8",
        *HALVES_MODES["sm80_mma"],
    ),
    "sm70_wmma": ("fp16", "fp16_accumulate_fp16", "fp32_as_fp16", "fp8_e4m3_fast", "int8"),
    "simt": ALL_MODES,
    "host": ALL_MODES,
}
# A mode that not each GPU with code of its family has: from this compute capability on. "fp8": with
# scales, or a result of FP8.
LEAST_CAPABILITY = {("sm70_wmma", "int8"): (7, 5), ("sm80_mma", "fp8"): (8, 9)}
# Whose FP32 operands need a precision by name, a narrower one.
SIXTEEN_BIT_FAMILIES = ("sm90_wgmma", "sm80_mma", "sm70_wmma")
# Which have the epilogue `scaled`: scales of operands and result, FP8 results, int8 to floats. One
# has it for int8 only.
SCALING_FAMILIES = ("sm90_wgmma", "sm80_mma", "simt", "host")
INT8_SCALING_FAMILIES = ("sm70_wmma", *SCALING_FAMILIES)
# What a family takes beside FAMILY_MODES, up to this K and where it is not batch-invariant: sums in
# FP32 keep the promise of FP8 so far.
FP8_IN_FP32 = {"sm70_wmma": ("fp8_e4m3", "fp8_e5m2")}
FP8_IN_FP32_K = 65536


def takes(family: str, mode: Mode) -> bool:
    """Whether a family computes a product that is not long."""
    return mode.name in (*FAMILY_MODES[family], *FP8_IN_FP32.get(family, ()))


def in_halves(family: str, mode: Mode) -> bool:
    return mode.name in HALVES_MODES.get(family, ())
