"""Who we are measured against: cuBLAS through PyTorch or CuPy, NumPy and PyTorch on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcgemm._cli.backends import Backend
from tcgemm._cli.cases import Case
from tcgemm._cli.modes import Mode


@dataclass(frozen=True)
class Peer:
    name: str
    how: str  # exactly what is timed
    mode: Mode  # what it promises, for the check of its results
    product: Callable[[Any, Any, Any], Any]  # (a, b, d) -> the result, which is d where d is used
    result_dtype: str  # of d


def peers(backend: Backend, case: Case) -> list[Peer]:
    """The first is the fair one, which does equal work; the others are for context."""
    if backend.name == "torch":
        return _torch(backend, case)
    if backend.name == "cupy":
        return _cupy(backend, case)
    return _numpy(backend, case)


def _converts(case: Case) -> bool:
    return case.mode.compute_dtype != case.dtype


def _torch(backend: Backend, case: Case) -> list[Peer]:
    torch: Any = importlib.import_module("torch")
    name = "cublas" if backend.on_gpu else "torch"
    compute, result = case.mode.compute_dtype, case.mode.result_dtype
    narrow, wide = getattr(torch, compute), getattr(torch, result)

    def into(a: Any, b: Any, d: Any) -> Any:
        return torch.mm(a, b, out=d)

    def integer(a: Any, b: Any, d: Any) -> Any:
        return torch._int_mm(a, b, out=d)

    def widening(a: Any, b: Any, d: Any) -> Any:
        return torch.mm(a, b, out_dtype=wide, out=d)

    def cast_widening(a: Any, b: Any, d: Any) -> Any:
        return torch.mm(a.to(narrow), b.to(narrow), out_dtype=wide, out=d)

    def cast(a: Any, b: Any, d: Any) -> Any:
        return d.copy_(torch.mm(a.to(narrow), b.to(narrow)))

    if compute == "int8":
        if case.m <= 16 or case.n % 8 or case.k % 8:  # what torch._int_mm asks for
            return []
        return [Peer(name, "torch._int_mm(a, b)", case.mode, integer, result)]
    own = Mode(compute)  # of a product whose result has the dtype of its operands
    can_widen = compute != result and _works(backend, widening, compute, result)
    if not _converts(case):
        if compute == result:
            return [Peer(name, "torch.mm(a, b)", own, into, result)]
        if can_widen:
            return [Peer(name, f"torch.mm(a, b, out_dtype={result})", case.mode, widening, result)]
        return [Peer(name, f"torch.mm(a, b), to {compute}", own, into, compute)]
    made = [Peer(name, f"torch.mm(a.to({compute}), b.to({compute}))", case.mode, cast, result)]
    if can_widen:
        how = f"torch.mm(a.to({compute}), b.to({compute}), out_dtype={result})"
        made = [Peer(name, how, case.mode, cast_widening, result)]
    else:  # the product is rounded to the narrow dtype on its way
        mode = Mode(case.dtype, case.precision, out_dtype=compute)
        made = [Peer(name, made[0].how, mode, cast, result)]
    if case.dtype == "float32":
        how = "torch.mm(a, b) in FP32, no TF32"
        made.append(Peer(f"{name}_fp32", how, Mode("float32"), into, "float32"))
    return made


def _works(
    backend: Backend, product: Callable[[Any, Any, Any], Any], dtype: str, result: str
) -> bool:
    """Whether this PyTorch has it: out_dtype came late, and not for every device."""
    x = backend.random((16, 16), dtype, 0)
    try:
        product(x, x, backend.empty((16, 16), result))
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


def _cupy(backend: Backend, case: Case) -> list[Peer]:
    cupy: Any = importlib.import_module("cupy")
    compute, result = case.mode.compute_dtype, case.mode.result_dtype
    if compute in ("int8", "bfloat16"):
        return []  # cupy.matmul gives int8 back for int8, and has no cuBLAS path for bfloat16

    def into(a: Any, b: Any, d: Any) -> Any:
        return cupy.matmul(a, b, out=d)

    def cast(a: Any, b: Any, d: Any) -> Any:
        return cupy.matmul(a.astype(compute), b.astype(compute), out=d)

    own = Mode(compute)
    if not _converts(case):
        how = "cupy.matmul(a, b)" if compute == result else f"cupy.matmul(a, b), to {compute}"
        return [Peer("cublas", how, own, into, compute)]
    mode = Mode(case.dtype, case.precision, out_dtype=compute)
    how = f"cupy.matmul(a.astype({compute}), b.astype({compute}))"
    made = [Peer("cublas", how, mode, cast, compute)]
    if case.dtype == "float32":
        made.append(Peer("cublas_fp32", "cupy.matmul(a, b)", Mode("float32"), into, "float32"))
    return made


def _numpy(backend: Backend, case: Case) -> list[Peer]:
    """NumPy's own matmul where BLAS has the dtype; else the fastest exact detour through BLAS."""
    compute, result = case.dtype, case.mode.result_dtype

    def into(a: Any, b: Any, d: Any) -> Any:
        return np.matmul(a, b, out=d)

    def through(wide: Any) -> Callable[[Any, Any, Any], Any]:
        def product(a: Any, b: Any, d: Any) -> Any:
            d[...] = np.matmul(a.astype(wide), b.astype(wide))
            return d

        return product

    if case.dtype in ("float32", "float64"):
        how = f"np.matmul(a, b) in {case.dtype}"
        return [Peer("numpy", how, Mode(case.dtype), into, case.dtype)]
    # float32 holds sums of int8 products exactly below 2^24
    exact = case.dtype != "int8" or case.k * 127 * 127 < 1 << 24
    wide = np.float32 if exact else np.float64
    how = f"np.matmul of the operands cast to {np.dtype(wide).name}"
    return [Peer("numpy", how, Mode(compute, out_dtype=result), through(wide), result)]
