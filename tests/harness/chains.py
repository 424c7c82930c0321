"""Random chains of products for test_chains.py, drawn from a seed: data only, no array is made.

A chain accumulates one to four products in place into one strided D, each with a kernel of its own.
Sizes lie around tile edges and whole waves of tiles over the SMs of the device.
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import tcgemm

from .families import runs_on
from .layout import Shape

# Limits, each for an SM of the device.
MOST_RESULTS = 170_000  # elements of D
MOST_ELEMENTS = 500_000  # of A or B
MOST_MULTIPLICATIONS = 1.9e9

_WAVES = (0.01, 0.02, 0.04, 0.15, 0.5, 0.75, 1, 1, 1, 1.1, 1.5, 2, 2, 2.1, 2.3, 3, 4)
_EDGES = (0, 0, 0, 0, 1, -1, 8, -8, 3, 17, 16, 32, -16)
_BATCHES = ((2,), (3,), (5,), (2, 3), (17,), (1000,))
_FLOATS = ("float32", "float32", "float16", "bfloat16")  # results that all have
_FP8 = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_ACCUMULATE = {"promoted": "promoted", "fast": "fast", "acc16": "fp16", "acc": "fp16"}
# Dtype of A and B, and precision, by a word in the name of a kernel.
_OPERANDS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "halves": (("float32", "fp32"), ("float64", "fp32")),
    "f16": (("float16", None), ("float32", "fp16")),
    "bf16": (("bfloat16", None), ("float32", "bf16")),
    "tf32": (("float32", "tf32"),),
    "f32": (("float32", "fp32_simt"), ("float64", "fp32_simt")),
    "f64": (("float64", None), ("float32", "fp64")),
    "i8": (("int8", None),),
}


class Way(NamedTuple):
    """A kernel, and what it multiplies in the words of tcgemm.gemm."""

    kernel: str
    tile: Shape  # M, N, K
    a: str  # dtypes
    b: str
    precision: str | None = None
    accumulate: str | None = None

    @property
    def is_fp8(self) -> bool:
        return self.a in _FP8.values()

    @property
    def outputs(self) -> tuple[str, ...]:
        own = {"int8": ("int32",) * 4, "float64": ("float64",) * 4}.get(self.a, ("float64",))
        return (*_FLOATS, *(_FP8.values() if self.is_fp8 else own))


class Placed(NamedTuple):
    """An array in memory; strides and offset in elements."""

    dtype: str
    shape: Shape
    strides: Shape
    offset: int

    def __repr__(self) -> str:
        return f"{self.dtype} {self.shape} strides {self.strides} offset {self.offset}"


class Product(NamedTuple):
    """D = alpha A B + beta D."""

    kernel: str  # that is forced, unless it is empty
    operands: tuple[Placed, Placed]  # a batch of 1 is given with all matrices, its stride 0
    largest: int  # of their whole numbers
    scales: tuple[Placed, ...]  # of A and B, or none
    options: dict[str, Any]  # of tcgemm.gemm


class Chain(NamedTuple):
    out: Placed
    products: list[Product]
    in_graph: bool  # is replayed, too

    def __repr__(self) -> str:
        replayed = ", also in a graph" if self.in_graph else ""
        return "\n".join([f"D {self.out}{replayed}", *map(repr, self.products)])


def ways_of(kernel: str, tile: str) -> list[Way]:
    """By the words of its name."""
    words, extents = kernel.split("_"), tuple(map(int, tile.split("x")))
    accumulate = next((_ACCUMULATE[word] for word in words if word in _ACCUMULATE), None)
    fp8 = [_FP8[word] for word in words if word in _FP8]
    if fp8:
        return [Way(kernel, extents, fp8[0], fp8[-1], None, accumulate)]
    element = "halves" if "halves" in words else next(word for word in words if word in _OPERANDS)
    ways = [Way(kernel, extents, of, of, how, accumulate) for of, how in _OPERANDS[element]]
    if accumulate is None and element not in ("f64", "i8"):  # of a short K
        ways.append(ways[0]._replace(accumulate="promoted"))
    if accumulate is None and element == "f16" and "wgmma" not in words:  # converted
        ways += [Way(kernel, extents, a, b) for a in _FP8.values() for b in _FP8.values()]
    return ways


def kernels_for(capability: tuple[int, int]) -> list[list[Way]]:
    """The ways of each kernel that runs on a GPU of that compute capability."""
    return [
        ways_of(row["name"], row["tile"])
        for row in tcgemm.kernels()
        if row["family"] != "host" and runs_on(row["architectures"], capability)
    ]


def draw(seed: int, kernels: list[list[Way]], sms: int) -> list[Chain]:
    """A trial, the same for the same arguments: a chain, or two at once on a stream each."""
    rng = random.Random(seed)
    return [_chain(rng, kernels, sms) for _ in range(rng.choice((1, 1, 1, 2, 2)))]


def _chain(rng: random.Random, kernels: list[list[Way]], sms: int) -> Chain:
    lead = rng.choice(rng.choice(kernels))
    dtype = rng.choice(lead.outputs)
    out = _placed(rng, dtype, _shape(rng, lead.tile, sms))
    fitting = [fits for ways in kernels if (fits := [way for way in ways if dtype in way.outputs])]
    products = [_product(rng, lead, out, sms, rng.choice((0, 0, 1)))]
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        way = lead if rng.random() < 0.25 else rng.choice(rng.choice(fitting))
        products.append(_product(rng, way, out, sms, rng.choice((0, 1, 1, -1))))
    return Chain(out, products, in_graph=rng.random() < 0.08)


def _shape(rng: random.Random, tile: Shape, sms: int) -> Shape:
    """Of D."""
    if rng.random() < 0.3:  # any
        multiple = rng.choice((1, 8))
        m, n = (max(1, int(2 ** rng.uniform(0, 11.5)) // multiple * multiple) for _ in range(2))
    else:
        tiles = max(1, round(sms * rng.choice(_WAVES)) + rng.choice((-1, 0, 0, 1)))
        rows = rng.randint(1, 2 * math.isqrt(tiles))
        counts = rng.sample((rows, -(-tiles // rows)), 2)
        edges = (rng.choice((*_EDGES, extent // 2)) for extent in tile)
        m, n = (max(1, x * count + y) for x, count, y in zip(tile, counts, edges, strict=False))
        if rng.random() < 0.2:
            m, n = rng.choice(((rng.randint(1, 64), n), (m, rng.randint(1, 64))))
    n = max(1, min(n, MOST_RESULTS * sms // m))
    batch = rng.choice(_BATCHES) if rng.random() < 0.3 else ()
    return (*batch, m, n) if m * n * math.prod(batch) <= MOST_RESULTS * sms else (m, n)


def _k(rng: random.Random, way: Way, shape: Shape, sms: int) -> int:
    """K of a product whose result has that shape."""
    work = 10 ** rng.uniform(6.9, 8.1) if rng.random() < 0.75 else MOST_MULTIPLICATIONS
    most = min(
        8_000 if way.accumulate == "fp16" else rng.choice((30_000,) * 19 + (140_000,)),
        int(work * sms / math.prod(shape)),
        MOST_ELEMENTS * sms // (max(shape[-2:]) * math.prod(shape[:-2])),
    )
    of_tile = way.tile[2]
    around = of_tile * rng.randint(1, 60) + rng.choice((0, 0, 1, -1, 8, -8))
    kinds = [rng.randint(1, max(1, most)), int(2 ** rng.uniform(0, 12)), around, around]
    is_for_short_k = any(word in way.kernel for word in ("whole_k", "strips", "outer"))
    kinds += [rng.randint(1, of_tile)] * (9 if is_for_short_k else 1)
    return max(1, min(rng.choice(kinds), most)) if rng.random() < 0.97 else 0


def _product(rng: random.Random, way: Way, out: Placed, sms: int, beta: int) -> Product:
    *batch, m, n = out.shape
    k = _k(rng, way, out.shape, sms)
    of_a, of_b = ([rng.choice((extent,) * 3 + (1,)) for extent in batch] for _ in range(2))
    of_m, of_n, of_k = (-(-extent // 128) for extent in (m, n, k))
    scales: list[tuple[Shape, ...]] = [()]
    if k and (way.is_fp8 or (way.a == "int8" and out.dtype != "int32")):
        scales += [((1, 1), (1, 1)), ((m, 1), (1, n))]
    if k and way.is_fp8 and way.accumulate != "fast":
        scales += [((rows, of_k), (of_k, of_n)) for rows in (m, of_m)] + [((m, of_k), (of_k, n))]
    options: dict[str, Any] = {
        "alpha": rng.choice((1,) * 12 + (-1,) * 4 + (2,) * 4 + (0,)),
        "beta": beta,
        "precision": way.precision,
        "accumulate": way.accumulate,
        "determinism": "batch_invariant" if rng.random() < 0.05 else "run_to_run",
        "out_dtype": out.dtype,
    }
    narrow = way.accumulate in ("fp16", "fast")
    return Product(
        kernel=way.kernel if rng.random() < 0.9 else "",
        operands=(_placed(rng, way.a, (*of_a, m, k)), _placed(rng, way.b, (*of_b, k, n))),
        largest=127 if way.a == "int8" and out.dtype == "int32" else 1 if narrow else 4,
        scales=tuple(
            _placed(rng, "float32", (*rng.choice(((), batch)), *shape))
            for shape in rng.choice(scales)
        ),
        options=options | ({"a_dtype": way.a, "b_dtype": way.b} if way.is_fp8 else {}),
    )


def _placed(rng: random.Random, dtype: str, shape: Shape) -> Placed:
    """By rows or by columns, as a rule; tight, aligned for vector loads, or odd."""
    align, most_pad, most_offset = rng.choice(
        ((1, 0, 0),) * 5 + ((16, 64, 0),) * 2 + ((8, 8, 8),) + ((1, 9, 15),) * 3
    )
    axes = list(reversed(range(len(shape))))  # from the one that lies closest together
    if rng.random() < 0.4:
        axes[:2] = axes[1::-1]
    if rng.random() < 0.15:  # rows of different matrices take turns, or elements do
        rng.shuffle(axes)
    strides = [0] * len(shape)
    stride = 2 if math.prod(shape) < 4e6 and rng.random() < 0.08 else 1
    for axis in axes:
        strides[axis] = stride
        stride = stride * max(1, shape[axis]) + rng.randint(0, most_pad)
        stride += -stride % align
    return Placed(dtype, shape, tuple(strides), rng.randrange(0, most_offset + 1, min(align, 4)))
