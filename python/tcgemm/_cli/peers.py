"""Who is measured: the library, and its peers: cuBLAS through PyTorch or CuPy, cublasLt, NumPy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import tcgemm
from tcgemm._cli import cublaslt
from tcgemm._cli.backends import Backend, Work
from tcgemm._cli.cases import Case
from tcgemm._cli.modes import ITEM_BYTES
from tcgemm._cli.operands import Operands, OperandSet, Pool

# What frameworks raise for products that they do not compute.
REFUSALS = (RuntimeError, TypeError, ValueError, NotImplementedError)


@dataclass(frozen=True)
class Prepared:
    """One piece of work for each set of operands, in both forms."""

    kernels: Sequence[Work]  # as bare as it gets
    calls: Sequence[Work]  # as a user writes it; none where nobody does
    facts: dict[str, Any] = field(default_factory=dict)  # of what was chosen, for the results


@dataclass(frozen=True)
class Peer:
    name: str
    how: str  # exactly what is timed
    case: Case  # what it computes, and so what it promises
    prepare: Callable[[Operands], Prepared]  # raises what the framework raises where it refuses
    fair: bool = True  # does equal work; others are for context
    checked: bool = True  # its results are products


def library(case: Case) -> Peer:
    """The library itself."""
    return Peer(
        "tcgemm", "a plan for kernel times, tcgemm.matmul or gemm for calls", case, _planned
    )


def _planned(operands: Operands) -> Prepared:
    case, sets, scales = operands.case, operands.sets, operands.scales
    arguments = case.arguments | scales
    if case.beta:
        arguments["beta"] = case.beta
    first = sets[0]
    plan = tcgemm.plan(first.a, first.b, first.c, out=first.d, **arguments)
    if case.family is not None and plan.family != case.family:
        raise tcgemm.NoKernelError(f"family {case.family} was forced, but {plan.family} was taken")

    def execute(a: Any, b: Any, c: Any, d: Any) -> None:
        plan.execute(a, b, c, d, **scales)

    def call(a: Any, b: Any, c: Any, d: Any) -> None:
        if c is None and not scales:
            tcgemm.matmul(a, b, out=d, **arguments)
        else:
            tcgemm.gemm(a, b, c, out=d, **arguments)

    facts = {
        "kernel": plan.kernel,
        "family": plan.family,
        "precision": plan.precision,
        "accumulate": plan.accumulate,
        "split_k": plan.split_k,
        "workspace_bytes": plan.workspace_bytes,
    }
    return Prepared(_each(execute, operands), _each(call, operands), facts)


def _each(product: Callable[..., Any], operands: Operands) -> list[Work]:
    return [partial(product, each.a, each.b, each.c, each.d) for each in operands.sets]


def _framework(product: Callable[..., Any]) -> Callable[[Operands], Prepared]:
    """A function of (a, b, c, d) that users call as it is."""

    def prepare(operands: Operands) -> Prepared:
        works = _each(product, operands)
        return Prepared(works, works)

    return prepare


def peers(backend: Backend, case: Case) -> list[Peer]:
    """The first is the one that everybody has; the fastest of the fair ones counts."""
    if case.peer_case is not None:
        changed = case.against or {}
        name = "/".join(map(str, changed.values()))
        how = "tcgemm with " + ", ".join(f"{key} {value}" for key, value in changed.items())
        return [Peer(f"tcgemm:{name}", how, case.peer_case, _planned)]
    made = _of_framework(backend, case)
    if backend.on_gpu and not case.scales:
        how = "the best of cublasLt's heuristic candidates"
        promise = replace(case, accumulate=_of_peers(case), determinism=None)
        made.insert(1, Peer("cublaslt", how, promise, _lt))
    if case.is_memory_bound:
        how = "a copy of half as many bytes as the product reads and writes"
        made.append(Peer("copy", how, case, _copy, fair=False, checked=False))
    return made


def _of_framework(backend: Backend, case: Case) -> list[Peer]:
    if case.scales and backend.name != "torch":
        return []
    return {"torch": _torch, "cupy": _cupy, "numpy": _numpy}[backend.name](backend, case)


def multiply(backend: Backend, case: Case, a: Any, b: Any, d: Any) -> Peer | None:
    """d = a b by the framework's own product, which is returned; None where it has none."""
    peer = next((peer for peer in _of_framework(backend, case) if peer.fair), None)
    if peer is None:
        return None
    given: Any = SimpleNamespace(case=case, sets=[OperandSet(a, b, None, d)], scales={})
    try:
        peer.prepare(given).kernels[0]()
    except REFUSALS:
        return None  # torch._scaled_mm takes no two float8_e5m2
    return peer


def _of_peers(case: Case) -> str | None:
    """Promotion is ours: FP32 sums are what cuBLAS has in its place, and of FP8 the fast ones."""
    if case.mode.is_fp8:
        return "fast"
    return None if case.accumulate == "promoted" else case.accumulate


def _lt(operands: Operands) -> Prepared:
    kernels, facts = cublaslt.best(operands)
    return Prepared(kernels, (), facts)


def _copy(operands: Operands) -> Prepared:
    case, backend = operands.case, operands.backend
    sets = len(operands.sets)
    # From and to multiples of 4 KiB: an H200 copies 58 MB at 2 KiB in 44 us, and at 4 KiB in 29.
    count = case.bytes // 2 // ITEM_BYTES[case.dtype] // 4096 * 4096
    source = operands.pool.numbers(case.dtype, sets * count)
    target = backend.empty((sets * count,), case.dtype)
    works = [
        partial(backend.copy, target[start : start + count], source[start : start + count])
        for start in range(0, sets * count, count)
    ]
    return Prepared(works, works)


def _torch_fp8(torch: Any, case: Case) -> list[Peer]:
    """What torch._scaled_mm takes: A in rows, B in columns, both multiples of 16.

    With scales of blocks: multiples of 128, and no fast sums.
    """
    of_blocks = case.scales in ("blocks", "columns")
    multiple = 128 if of_blocks else 16
    if case.n % multiple or case.k % multiple:
        return []
    if case.batch > 1 or case.beta or case.padding or case.offset:
        return []
    if case.scales not in ("", "matrices") and case.layout != "nt":
        return []
    one = torch.ones((), device="cuda")
    out_dtype = getattr(torch, case.mode.result_dtype)

    def prepare(operands: Operands) -> Prepared:
        scales = operands.scales or {"scale_a": one, "scale_b": one}
        arguments = {**scales, "out_dtype": out_dtype, "use_fast_accum": not of_blocks}

        def product(a: Any, b: Any, c: Any, d: Any) -> Any:
            a, b = a.contiguous(), b.mT.contiguous().mT  # copies of other layouts
            return torch._scaled_mm(a, b, **arguments, out=d)

        return _framework(product)(operands)

    if of_blocks:
        promise = replace(case, determinism=None)
        return [Peer("cublas", "torch._scaled_mm with scales of blocks", promise, prepare)]
    promise = replace(case, accumulate=_of_peers(case), determinism=None)
    how = "torch._scaled_mm of A in rows and B in columns, use_fast_accum"
    return [Peer("cublas", how, promise, prepare)]


def _torch_tf32(torch: Any, case: Case) -> list[Peer]:
    if case.batch > 1 or case.beta:
        return []

    def product(a: Any, b: Any, c: Any, d: Any) -> Any:
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return torch.mm(a, b, out=d)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed

    promise = replace(case, accumulate=None, determinism=None)
    return [Peer("cublas", "torch.mm(a, b), TF32 allowed", promise, _framework(product))]


def _torch(backend: Backend, case: Case) -> list[Peer]:
    torch: Any = importlib.import_module("torch")
    name = "cublas" if backend.on_gpu else "torch"
    compute, result = case.mode.compute_dtype, case.mode.result_dtype
    if case.mode.is_fp8 or compute == "tf32":
        if not backend.on_gpu:
            return []
        return _torch_fp8(torch, case) if case.mode.is_fp8 else _torch_tf32(torch, case)
    narrow = getattr(torch, compute)
    promise = replace(case, accumulate=None, determinism=None)
    if compute == "int8":

        def integer(a: Any, b: Any, c: Any, d: Any) -> Any:
            return torch._int_mm(a, b, out=d)

        # what torch._int_mm asks for
        if case.m <= 16 or case.n % 8 or case.k % 8 or case.batch > 1 or case.beta:
            return []
        return [Peer(name, "torch._int_mm(a, b)", promise, _framework(integer))]

    # One B for all of A's products is one long A, where A is contiguous, as in torch.matmul.
    folds = case.broadcast == "b" and not case.padding and case.layout[0] == "n" and not case.beta
    batched = case.batch > 1 and not folds
    plain = "bmm" if batched else "mm"
    function = {"mm": "addmm", "bmm": "baddbmm"}[plain] if case.beta else plain

    def product(a: Any, b: Any, c: Any, d: Any, **out_dtype: Any) -> Any:
        if a.dtype != narrow:
            a, b = a.to(narrow), b.to(narrow)
        if folds:
            a, d = a.reshape(-1, a.shape[-1]), d.reshape(-1, d.shape[-1])
        elif batched:
            a, b = (x.expand(d.shape[0], -1, -1) for x in (a, b))
        if c is None:
            return getattr(torch, function)(a, b, out=d, **out_dtype)
        return getattr(torch, function)(c, a, b, beta=case.beta, out=d, **out_dtype)

    widening = partial(product, out_dtype=getattr(torch, result))
    converts = compute != case.dtype
    given = f"a.to({compute}), b.to({compute})" if converts else "a, b"
    if case.beta:
        given = f"c, {given}, beta={case.beta:g}"
    if compute == result:
        made = [Peer(name, f"torch.{function}({given})", promise, _framework(product))]
    elif _widens(backend, widening, case):
        how = f"torch.{function}({given}, out_dtype={result})"
        made = [Peer(name, how, promise, _framework(widening))]
    elif case.beta:
        made = []
    else:  # the product is rounded to the narrow dtype
        rounded = replace(promise, out_dtype=compute)
        how = f"torch.{function}({given}), to {compute}"
        made = [Peer(name, how, rounded, _framework(product), fair=False)]
    if converts and case.dtype == "float32" and not case.beta and case.batch == 1:

        def unrounded(a: Any, b: Any, c: Any, d: Any) -> Any:
            return torch.mm(a, b, out=d)

        how = "torch.mm(a, b) in FP32, no TF32"
        wide = replace(promise, precision=None, out_dtype=None)
        made.append(Peer(f"{name}_fp32", how, wide, _framework(unrounded), fair=False))
    return made


def _widens(backend: Backend, product: Callable[..., Any], case: Case) -> bool:
    """Whether this PyTorch has the product: out_dtype came late, and not for every device."""
    tiny = replace(case, m=8, n=8, k=8, batch=min(case.batch, 2))
    each = Operands(Pool(backend), tiny, 1).sets[0]
    try:
        product(each.a, each.b, each.c, each.d)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


def _cupy(backend: Backend, case: Case) -> list[Peer]:
    cupy: Any = importlib.import_module("cupy")
    compute, result = case.mode.compute_dtype, case.mode.result_dtype
    if compute in ("int8", "bfloat16") or case.beta:
        return []  # cupy.matmul gives int8 for int8, has no bfloat16 in cuBLAS, and takes no C

    def into(a: Any, b: Any, c: Any, d: Any) -> Any:
        return cupy.matmul(a, b, out=d)

    def cast(a: Any, b: Any, c: Any, d: Any) -> Any:
        return cupy.matmul(a.astype(compute), b.astype(compute), out=d)

    promise = replace(case, accumulate=None, determinism=None, out_dtype=compute)
    if compute == case.dtype:
        how = "cupy.matmul(a, b)" if compute == result else f"cupy.matmul(a, b), to {compute}"
        return [Peer("cublas", how, promise, _framework(into), fair=compute == result)]
    how = f"cupy.matmul(a.astype({compute}), b.astype({compute}))"
    made = [Peer("cublas", how, promise, _framework(cast))]
    if case.dtype == "float32":
        wide = replace(promise, precision=None, out_dtype=None)
        how = "cupy.matmul(a, b)"
        made.append(Peer("cublas_fp32", how, wide, _framework(into), fair=False))
    return made


def _numpy(backend: Backend, case: Case) -> list[Peer]:
    """NumPy's own matmul where BLAS has the dtype; else the fastest exact detour through BLAS."""
    added = f" + {case.beta:g} * c" if case.beta else ""

    def product(a: Any, b: Any, c: Any, d: Any) -> Any:
        if c is None:
            return np.matmul(a, b, out=d)
        d[...] = np.matmul(a, b) + case.beta * c
        return d

    def through(wide: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        wider = np.matmul(a.astype(wide), b.astype(wide))
        with np.errstate(over="ignore"):  # Inf where D's dtype ends, as ours
            d[...] = wider if c is None else wider + case.beta * c.astype(wide)
        return d

    promise = replace(case, precision=None, accumulate=None, determinism=None)
    if case.dtype in ("float32", "float64"):
        promise = replace(promise, out_dtype=None)
        how = f"np.matmul(a, b){added} in {case.dtype}"
        return [Peer("numpy", how, promise, _framework(product))]
    if case.precision is not None:  # without it, the promise has another result where A is int8
        promise = replace(promise, out_dtype=case.mode.result_dtype)
    # float32 holds sums of int8 products exactly below 2^24
    exact = case.dtype != "int8" or case.k * 127 * 127 < 1 << 24
    wide = np.dtype(np.float32 if exact else np.float64)
    how = f"np.matmul of the operands cast to {wide.name}{added}"
    return [Peer("numpy", how, promise, _framework(partial(through, wide)))]
