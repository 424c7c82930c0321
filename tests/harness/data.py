"""The data sets. Each finds faults that the others are blind to.

Every set makes A (rows x k) and B (k x cols) as values of the mode's operand dtype. `positive` and
`signed` hold the bounds; `integers` and `codes` are exact; the others stress the exponent range.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .formats import COMPUTE_FORMATS, Array, round_to
from .modes import Mode

Rng = np.random.Generator
Shape = tuple[int, ...]
Pair = tuple[Array, Array]


def integers(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """Small whole numbers: every partial sum is exact in the accumulator, in any order."""
    k = a_shape[-1]
    # Whole numbers up to 1/u are exact; int8 products may use the whole range up to K = 131,071.
    limit = {"float16": 2**11, "float32": 2**24, "float64": 2**53, "int32": 2**31 - 1}
    largest = int(min(127, max(1, np.sqrt(limit[mode.accumulator] / max(k, 1)))))
    largest = min(largest, 16) if mode.operand != "int8" else largest
    if mode.is_fp8:
        # FP8 tensor cores may sum in 13 bits, promoted ones 128 products at a time.
        terms = k if mode.accumulate == "fast" else min(k, 128)
        largest = int(min(8, max(1, np.sqrt(2**13 / max(terms, 1)))))
    return (
        round_to(rng.integers(-largest, largest, a_shape, endpoint=True), mode.operand),
        round_to(rng.integers(-largest, largest, b_shape, endpoint=True), mode.operand),
    )


def positive(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """U(0, 1): truncation of partial sums shows as a bias that grows with K."""
    scale = 127.0 if mode.operand == "int8" else 1.0
    draw = np.round if mode.operand == "int8" else np.asarray
    return (
        round_to(draw(scale * rng.random(a_shape)), mode.operand),
        round_to(draw(scale * rng.random(b_shape)), mode.operand),
    )


def signed(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    if mode.operand == "int8":
        return (
            rng.integers(-128, 128, a_shape).astype(np.int8),
            rng.integers(-128, 128, b_shape).astype(np.int8),
        )
    return (
        round_to(rng.uniform(-1, 1, a_shape), mode.operand),
        round_to(rng.uniform(-1, 1, b_shape), mode.operand),
    )


def wide_exponents(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """Signed lognormal, sigma 4, kept inside the range of what the product is computed in."""
    half = 4.0 if mode.accumulator == "float16" else 14.0
    ranges = {"float16": (-14.0, half), "float8_e4m3fn": (-6.0, 8.0), "float8_e5m2": (-14.0, 14.0)}
    low, top = ranges.get(mode.compute, (-40.0, 40.0))

    def draw(shape: Shape) -> Array:
        exponent = np.clip(rng.normal(0.0, 4.0 / np.log(2.0), shape), low, top)
        return round_to(rng.choice([-1.0, 1.0], shape) * np.exp2(exponent), mode.operand)

    return draw(a_shape), draw(b_shape)


def huge_entry(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """One huge entry in each row of A: all smaller products vanish beside it, or must not."""
    a, b = signed(rng, mode, a_shape, b_shape)
    half = 2.0**8 if mode.accumulator == "float16" else 2.0**15
    ranges = {"float16": half, "float8_e4m3fn": 2.0**8, "float8_e5m2": 2.0**15}
    huge = ranges.get(mode.compute, 2.0**60)
    a = a.copy()
    column = rng.integers(0, a_shape[-1], (*a_shape[:-1], 1))
    np.put_along_axis(a, column, round_to(huge, mode.operand), axis=-1)
    return a, b


def near_max(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """A up to the largest finite value of the compute dtype; |A||B| stays just finite."""
    k = max(a_shape[-1], 1)
    largest = min(COMPUTE_FORMATS[mode.compute].largest, COMPUTE_FORMATS[mode.operand].largest)

    def draw(shape: Shape, scale: float) -> Array:
        values = rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 0.999, shape) * scale
        return round_to(values, mode.operand)

    # An FP16 accumulator may be off by half of |A||B| at K = 4096, and must not overflow from that.
    share = 0.5 if mode.accumulator == "float16" else 1.0
    return draw(a_shape, largest), draw(b_shape, share / k)


def subnormal(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """A subnormal in the compute dtype: one that is flushed to zero is an error of 100 %."""
    step = COMPUTE_FORMATS[mode.compute].smallest
    a = rng.choice([-1.0, 1.0], a_shape) * rng.integers(1, 64, a_shape) * step
    b = rng.choice([-1.0, 1.0], b_shape) * rng.uniform(0.5, 2.0, b_shape)
    return round_to(a, mode.operand), round_to(b, mode.operand)


def permutation(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """A picks one row of B for each of its own; B is signed random."""
    a = np.zeros(a_shape)
    np.put_along_axis(a, selected_rows(rng, a_shape)[..., None], 1.0, axis=-1)
    return round_to(a, mode.operand), signed(rng, mode, a_shape, b_shape)[1]


def codes(rng: Rng, mode: Mode, a_shape: Shape, b_shape: Shape) -> Pair:
    """A picks rows, B[k, j] holds a code of (k, j): a wrong index shows as a wrong code."""
    a = permutation(rng, mode, a_shape, b_shape)[0]
    if (
        mode.is_fp8
    ):  # the positive finite numbers of both formats have these bits, one after another
        bits = np.arange(np.prod(b_shape[-2:]), dtype=np.uint8).reshape(b_shape[-2:]) % 124
        return a, np.broadcast_to(bits.view(COMPUTE_FORMATS[mode.operand].numpy), b_shape)
    span = {"float16": 2048, "bfloat16": 256, "int8": 127}.get(mode.compute, 2**22)
    values = np.arange(np.prod(b_shape[-2:])).reshape(b_shape[-2:]) % span
    return a, round_to(np.broadcast_to(values, b_shape), mode.operand)


def selected_rows(rng: Rng, a_shape: Shape) -> Array:
    """For each row of A one column: a permutation as far as there are enough of them."""
    *batch, m, k = a_shape
    order = np.concatenate([rng.permutation(k) for _ in range(-(-m // max(k, 1)))])[:m]
    return np.broadcast_to(order, (*batch, m))


DataSet = Callable[[Rng, Mode, Shape, Shape], Pair]
DATA_SETS: dict[str, DataSet] = {
    f.__name__: f
    for f in (
        integers,
        positive,
        signed,
        wide_exponents,
        huge_entry,
        near_max,
        subnormal,
        permutation,
        codes,
    )
}
_NEEDS_EXPONENTS = {"wide_exponents", "huge_entry", "near_max", "subnormal"}


def data_sets(mode: Mode) -> list[str]:
    """The sets that make sense for the mode: int8 has no exponents."""
    return [n for n in DATA_SETS if mode.operand != "int8" or n not in _NEEDS_EXPONENTS]


# Around each multiple of a tile or of an instruction's depth, and long chains.
SHORT_K = (*range(1, 41), 63, 64, 65, 127, 128, 129, 255, 256, 257)
LONG_K = (4096, 16384, 262144)
DIMS = (1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 255, 257)


def shapes_pairwise() -> list[tuple[int, int, int]]:
    """m x n x k out of DIMS so that each pair of sizes meets in each pair of dimensions."""
    count = len(DIMS)
    return [
        (DIMS[i], DIMS[j], DIMS[(i + j * 3 + 5) % count])
        for i in range(count)
        for j in range(count)
    ]


def shapes_all() -> list[tuple[int, int, int]]:
    return [(m, n, k) for m in DIMS for n in DIMS for k in DIMS]
