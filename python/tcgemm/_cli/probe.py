"""`python -m tcgemm verify --probe`: how the tensor cores of a GPU add, align, round and underflow.

After Fasi, Higham, Mikaitis and Pranesh (PeerJ CS 7:e330): sums whose result differs between the
ways in which they could be made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tcgemm import _core
from tcgemm._cli.report import BAD, Table, heading

# d = c + sum of a[i] b[i], by one instruction, for each case.
Multiply = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

# {index: (factor, exponent)}: factor * 2^exponent in units of the probe's own.
Products = dict[int, tuple[float, int]]

# Exponents of two that elements hold, subnormals included.
_RANGES = {
    "fp16": (-24, 15),
    "bf16": (-126, 127),
    "tf32": (-126, 127),
    "fp8_e4m3": (-9, 8),
    "fp8_e5m2": (-16, 15),
}
_FP32_FRACTION = 23


@dataclass(frozen=True)
class Findings:
    """What one instruction does."""

    addends: int  # products that are aligned to each other and added in one step
    fraction_bits: int  # kept below the largest addend of a step; FP32 has 23
    with_accumulator: bool  # the accumulator is one of the addends, aligned as they are
    rounding: str  # of what is cut off: "toward zero", "to nearest", "down", "up"
    subnormal_inputs: bool  # used, not flushed to zero
    subnormal_sums: bool  # kept in the FP32 accumulator

    @property
    def extra_bits(self) -> int:
        return self.fraction_bits - _FP32_FRACTION


# (compute capability's major number, kind, precision): addends and fraction bits, as published for
# V100 and A100 (PeerJ CS 7:e330), and as this probe measured them on an H200.
EXPECTED: dict[tuple[int, str, str], tuple[int, int]] = {
    (7, "mma", "fp16"): (4, 23),
    (8, "mma", "fp16"): (8, 24),
    (8, "mma", "bf16"): (8, 24),
    (8, "mma", "tf32"): (4, 24),
    (9, "mma", "fp16"): (16, 25),
    (9, "mma", "bf16"): (16, 25),
    (9, "wgmma", "fp16"): (16, 25),
    (9, "wgmma", "bf16"): (16, 25),
    (9, "wgmma", "tf32"): (8, 25),
    (9, "wgmma", "fp8_e4m3"): (32, 13),
    (9, "wgmma", "fp8_e5m2"): (32, 13),
}


class Probe:
    """The experiments on one instruction. Products are powers of two, or 1.5 of them."""

    def __init__(self, multiply: Multiply, precision: str, k: int) -> None:
        self._multiply, self._k = multiply, k
        self._low, self._high = _RANGES[precision]
        # The largest power of two below which there is room for 2^-40 of it, or most room.
        self._one = min(2 * self._high, 8) if 2 * self._low < -60 else 2 * self._high - 2

    def measure(self) -> Findings:
        partner, bits = self._partner()
        return Findings(
            addends=self._addends(partner, bits),
            fraction_bits=bits,
            with_accumulator=self._with_accumulator(partner, bits),
            rounding=self._rounding(partner, min(bits, _FP32_FRACTION)),
            subnormal_inputs=self._subnormal_inputs(),
            subnormal_sums=self._subnormal_sums(),
        )

    def sums(self, cases: list[tuple[Products, float]]) -> np.ndarray:
        """Of products and an accumulator, each, in units of 2^_one."""
        a, b = np.zeros((len(cases), self._k)), np.ones((len(cases), self._k))
        for row, (products, _) in enumerate(cases):
            for index, (factor, exponent) in products.items():
                whole = exponent + self._one
                of_a = max(self._low, min(self._high, whole // 2))
                a[row, index] = factor * 2.0**of_a
                b[row, index] = 2.0 ** (whole - of_a)
                assert self._low <= whole - of_a <= self._high, "no such product in this format"
        d = self._multiply(a, b, np.array([c * 2.0**self._one for _, c in cases]))
        return np.asarray(d, np.float64) / 2.0**self._one

    def _sum(self, products: Products, c: float = 0.0) -> float:
        return float(self.sums([(products, c)])[0])

    def _lowest(self) -> int:
        """Exponent of the smallest product, in units of 2^_one."""
        return 2 * self._low - self._one

    def _partner(self) -> tuple[int, int]:
        """An index that is summed in one step with index 0, and the fraction bits of a step.

        1 - 1 beside an accumulator of 2^-t: in one step what is left tells the bits that are kept.
        In two, 1 + 2^-t is rounded in between, to no more bits than that.
        """
        depth = range(1, min(60, -self._lowest()))
        cases: list[tuple[Products, float]] = [
            ({0: (1, 0), index: (-1, 0)}, 2.0**-t) for index in range(1, self._k) for t in depth
        ]
        left = self.sums(cases).reshape(self._k - 1, len(depth)) != 0.0
        kept = np.where(left, np.array(depth), 0).max(axis=1)
        partner = int(kept.argmax())
        return partner + 1, int(kept[partner])

    def _addends(self, partner: int, bits: int) -> int:
        """Those beside which 2^-(bits + 1) is lost where 1 - 1 is; elsewhere it survives."""
        tiny = (1.0, max(-bits - 1, self._lowest()))
        others = [index for index in range(1, self._k) if index != partner]
        left = self.sums([({0: (1, 0), partner: (-1, 0), other: tiny}, 0.0) for other in others])
        return 2 + int(np.count_nonzero(left == 0.0))

    def _with_accumulator(self, partner: int, bits: int) -> bool:
        tiny = (1.0, max(-bits - 1, self._lowest()))
        return self._sum({0: (-1, 0), partner: tiny}, c=1.0) == 0.0

    def _rounding(self, partner: int, bits: int) -> str:
        """Of 1 + 3/4, 1 + 1/4 and their negatives, in units of the last bit."""
        unit = 2.0**-bits
        near = self._sum({0: (1, 0), partner: (1.5, -bits - 1)})
        far = self._sum({0: (1, 0), partner: (1, -bits - 2)})
        below = self._sum({0: (-1, 0), partner: (-1.5, -bits - 1)})
        if near == 1.0:
            return "toward zero" if below == -1.0 else "down"
        if near == 1.0 + unit:
            if far == 1.0 + unit:
                return "up"
            return "to nearest" if below == -1.0 - unit else "up"
        return f"unknown: {(near - 1) / unit:g} units"

    def _subnormal_inputs(self) -> bool:
        a, b = np.zeros((1, self._k)), np.zeros((1, self._k))
        a[0, 0] = 2.0**-133 if self._low == -126 else 2.0**self._low  # subnormal in each format
        b[0, 0] = 2.0**8
        return float(self._multiply(a, b, np.zeros(1))[0]) == float(a[0, 0] * b[0, 0])

    def _subnormal_sums(self) -> bool:
        zeros = np.zeros((1, self._k))
        # Within 13 fraction bits of the least normal number: no less is kept anywhere.
        return float(self._multiply(zeros, zeros, np.array([2.0**-133]))[0]) == 2.0**-133


def measure(ordinal: int) -> dict[str, Findings]:
    """Of each instruction that the GPU has."""
    found = {}
    for name, precision, k in _core.mma_instructions(ordinal):

        def multiply(a: Any, b: Any, c: Any, name: str = name) -> np.ndarray:
            d: np.ndarray = _core.run_mma(name, ordinal, a, b, c)
            return d

        found[name] = Probe(multiply, precision, k).measure()
    return found


def differences(found: dict[str, Findings], major: int) -> list[str]:
    """Where a GPU is not as its kind is known to be."""
    lines = []
    for name, seen in found.items():
        kind, _, precision = name.partition("_")
        known = EXPECTED.get((major, kind, precision))
        if known is not None and known != (seen.addends, seen.fraction_bits):
            lines.append(
                f"{name}: {seen.addends} addends and {seen.fraction_bits} fraction bits; "
                f"known: {known[0]} and {known[1]}"
            )
    return lines


def describe(found: dict[str, Findings]) -> list[dict[str, Any]]:
    return [{"instruction": name, **asdict(seen)} for name, seen in found.items()]


def show(found: dict[str, Findings], gpu: dict[str, Any], different: list[str]) -> None:
    """Prints the table, and where the GPU differs from what is known of its kind."""
    heading(f"tcgemm verify --probe: the tensor cores of {gpu['name']}")
    columns = ["<instruction", "addends", "fraction bits", "extra", "<accumulator", "<rounding"]
    table = Table([*columns, "<subnormal inputs", "<subnormal sums"])
    for name, seen in found.items():
        table.add(
            name,
            str(seen.addends),
            str(seen.fraction_bits),
            f"{seen.extra_bits:+d}",
            "an addend" if seen.with_accumulator else "apart",
            seen.rounding,
            "used" if seen.subnormal_inputs else "FLUSHED",
            "kept" if seen.subnormal_sums else "FLUSHED",
            style="" if seen.subnormal_inputs and seen.subnormal_sums else BAD,
        )
    table.print()
    print(
        "\naddends        products that are aligned to the largest of them and added in one step"
        "\nfraction bits  that are kept below the largest addend's first bit; FP32 has 23"
    )
    for line in different:
        print(f"DIFFERS: {line}")
