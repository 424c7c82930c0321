"""Runs the chains of chains.py with PyTorch, and holds each result against FP64 products.

All data are small whole numbers, and scales powers of two: each sum is exact in the format of the
sums, whatever its order, and a result that differs in one bit is wrong.
"""

from __future__ import annotations

import itertools
import os

import tcgemm
import torch
from torch import Tensor

from .chains import Chain, Placed, Product
from .formats import FORMATS
from .layout import Shape

GUARD = 256  # elements before and after each array
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def integers(largest: int, shape: Shape) -> Tensor:
    return torch.randint(-largest, largest + 1, shape, dtype=torch.int8, device="cuda")


class Guarded:
    """A strided array in memory that is NaN around it, as far as its dtype has one."""

    def __init__(self, placed: Placed, values: Tensor) -> None:
        self.placed, self.values, self.dtype = placed, values, getattr(torch, placed.dtype)
        reach = sum((e - 1) * s for e, s in zip(placed.shape, placed.strides, strict=True) if e)
        size, item = 2 * GUARD + placed.offset + reach + 1, FORMATS[placed.dtype].bits.itemsize
        nan = (1 << (8 * item - 1)) - 1
        self.memory = torch.full((size,), nan, dtype=_INTEGERS[item], device="cuda")
        self.array = self.within(self.memory.view(self.dtype))
        # DLPack may lack FP8: tcgemm is given the bytes.
        self.given = self.within(self.memory) if placed.dtype.startswith("float8") else self.array
        self.write(values)
        self.before = self.memory.clone()

    def within(self, memory: Tensor) -> Tensor:
        shape, strides = self.placed.shape, self.placed.strides
        return torch.as_strided(memory, shape, strides, GUARD + self.placed.offset)

    def write(self, values: Tensor) -> None:
        """Rounded, zeros without a sign: sums of nothing have either."""
        self.array.copy_((values + 0).to(self.dtype))

    def restore(self) -> None:
        self.memory.copy_(self.before)


class Link:
    """A product of a chain with its operands."""

    def __init__(self, product: Product, chain: Chain) -> None:
        self.kernel, self.options = product.kernel, dict(product.options)
        self.operands = [Guarded(x, integers(product.largest, x.shape)) for x in product.operands]
        self.scales = [Guarded(x, torch.exp2(integers(1, x.shape).float())) for x in product.scales]
        if self.scales:
            self.options["scale_a"], self.options["scale_b"] = (x.array for x in self.scales)
        batch = chain.out.shape[:-2]
        self.given = [operand.given.expand(*batch, -1, -1) for operand in self.operands]

    def multiply(self, d: Tensor) -> None:
        """By the forced kernel or, where it does not take the product, by the library's choice."""
        os.environ["TCGEMM_FORCE_KERNEL"] = self.kernel
        a, b = self.given
        try:
            tcgemm.gemm(a, b, d if self.options["beta"] else None, out=d, **self.options)
        except tcgemm.NoKernelError:
            if not self.kernel:
                raise
            self.kernel = ""
            self.multiply(d)

    def accumulate(self, d: Guarded) -> None:
        """The same in FP64, rounded once."""
        a, b = (operand.values.double() for operand in self.operands)
        if self.scales:
            of_a, of_b = (scales.values.double() for scales in self.scales)
            a, b = a * spread(of_a, a.shape), b * spread(of_b, b.shape)
        total = self.options["alpha"] * (a @ b)
        if self.options["beta"]:
            total = total + self.options["beta"] * d.array.double()
        if d.given is not d.array:  # FP8 saturates
            largest = FORMATS[d.placed.dtype].largest
            total = total.clamp(-largest, largest)
        d.write(total)


def spread(scales: Tensor, shape: Shape) -> Tensor:
    """One scale, or one for each row, column or block of 128, so that they broadcast to `shape`."""
    for axis in (-2, -1):
        if scales.shape[axis] not in (1, shape[axis]):
            scales = scales.repeat_interleave(128, axis).narrow(axis, 0, shape[axis])
    return scales


class Run:
    """A chain with its D, on a stream."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.d = chain, Guarded(chain.out, integers(8, chain.out.shape))
        self.links = [Link(product, chain) for product in chain.products]
        self.stream = torch.cuda.Stream()

    def multiply(self, *links: Link) -> None:
        with torch.cuda.stream(self.stream):
            for link in links:
                link.multiply(self.d.given)

    def replay(self) -> None:
        """What the first launch of each kernel prepares must be there."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self.multiply(*self.links)
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.d.restore()
                graph.replay()
        torch.cuda.synchronize()  # before the graph is gone

    def want_and_got(self, *links: Link) -> tuple[Tensor, Tensor]:
        """The memory of D as it should be after these products, and as it is. Restores it."""
        torch.cuda.synchronize()
        self.d.write(self.d.array.double())
        got = self.d.memory.clone()
        self.d.restore()
        for link in links:
            link.accumulate(self.d)
        want = self.d.memory.clone()
        self.d.restore()
        torch.cuda.synchronize()
        return want, got

    def faults(self) -> list[str]:
        """What is wrong with D or with what lies around it, and whether an operand was written."""
        arrays = [array for link in self.links for array in (*link.operands, *link.scales)]
        written = [f"{x.placed} was written" for x in arrays if not torch.equal(x.memory, x.before)]
        want, got = self.want_and_got(*self.links)
        if torch.equal(want, got):
            return written
        inside = self.d.within(want != got)
        count, outside = int(inside.sum()), int((want != got).sum() - inside.sum())
        lines = [f"D {self.d.placed}: {count} elements are wrong, and {outside} of its guards"]
        for place in map(tuple, inside.nonzero()[:4].tolist()):
            found, right = (self.d.within(x.view(self.d.dtype))[place] for x in (got, want))
            lines.append(f"{place}: {found.item()}, expected {right.item()}")
        for number, link in enumerate(self.links, 1):
            self.multiply(link)
            verdict = "right" if torch.equal(*self.want_and_got(link)) else "WRONG"
            by = link.kernel or "a kernel that was not forced"
            lines.append(f"product {number}, by {by}: {verdict} when run alone")
        return lines + written


def attempt(chains: list[Chain], seed: int) -> None:
    torch.manual_seed(seed)
    runs = [Run(chain) for chain in chains]
    torch.cuda.synchronize()
    try:
        for links in itertools.zip_longest(*(run.links for run in runs)):
            for run, link in zip(runs, links, strict=True):
                if link:
                    run.multiply(link)
        torch.cuda.synchronize()
        for run in runs:
            if run.chain.in_graph:
                run.replay()
    finally:
        torch.cuda.synchronize()  # while all memory is there
    faults = [line for run in runs for line in run.faults()]
    assert not faults, "\n".join(faults)
