"""The best of cublasLt's heuristic candidates, through the C library that the framework loads.

Enumerators and structures are those of cublasLt.h and library_types.h; the C interface keeps them.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tcgemm._cli.backends import Backend, Work
from tcgemm._cli.cases import Case
from tcgemm._cli.operands import Operands, OperandSet
from tcgemm._cli.timing import fastest

_CANDIDATES = 16
_LOOKED_AT = 64  # sets of operands, to tell the candidates apart
_WORKSPACE_BYTES = 64 << 20  # twice what NVIDIA recommends for Hopper

_DATA_TYPE = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "int8": 3,
    "int32": 10,
    "bfloat16": 14,
    "float8_e4m3fn": 28,
    "float8_e5m2": 29,
}
# cublasComputeType_t, and the dtype of alpha and beta
_COMPUTE = {
    "fp16": (64, "float16"),
    "fp32": (68, "float32"),
    "fp64": (70, "float64"),
    "int32": (72, "int32"),
    "fast": (68, "float32"),
}
_COMPUTE_TF32 = 77
_DESC_TRANSA, _DESC_TRANSB, _DESC_FAST_ACCUM = 3, 4, 25
_LAYOUT_BATCH_COUNT, _LAYOUT_STRIDED_BATCH_OFFSET = 5, 6
_PREF_MAX_WORKSPACE_BYTES = 1
_PREF_MIN_ALIGNMENT_BYTES = (5, 6, 7, 8)  # of A, B, C and D
_LARGEST_ALIGNMENT = 256
_NOT_SUPPORTED = 15


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def library_path() -> str | None:
    """The file of libcublasLt: the one that the framework has loaded, so that both peers are of one
    version; else that of one of NVIDIA's packages, else the system's."""
    try:
        with open("/proc/self/maps") as file:
            loaded = [line.split()[-1] for line in file if "libcublasLt.so" in line]
    except OSError:
        loaded = []
    if loaded:
        return loaded[0]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = sorted(Path(folder).glob("**/libcublasLt.so.*"))
        if found:
            return str(found[-1])
    return ctypes.util.find_library("cublasLt")


@functools.cache
def _library() -> ctypes.CDLL:
    """RuntimeError where there is none."""
    path = library_path()
    if path is None:
        raise RuntimeError("libcublasLt was not found: neither loaded nor in the package nvidia")
    library = ctypes.CDLL(path)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    arguments: dict[str, list[Any]] = {
        "cublasLtCreate": [pointer],
        "cublasLtMatmulDescCreate": [pointer, ctypes.c_int, ctypes.c_int],
        "cublasLtMatmulDescDestroy": [pointer],
        "cublasLtMatmulDescSetAttribute": [pointer, ctypes.c_int, pointer, size],
        "cublasLtMatrixLayoutCreate": [
            pointer,
            ctypes.c_int,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_int64,
        ],
        "cublasLtMatrixLayoutDestroy": [pointer],
        "cublasLtMatrixLayoutSetAttribute": [pointer, ctypes.c_int, pointer, size],
        "cublasLtMatmulPreferenceCreate": [pointer],
        "cublasLtMatmulPreferenceDestroy": [pointer],
        "cublasLtMatmulPreferenceSetAttribute": [pointer, ctypes.c_int, pointer, size],
        # handle, description, layouts of A, B, C, D, preference, wanted, results, found
        "cublasLtMatmulAlgoGetHeuristic": [*[pointer] * 7, ctypes.c_int, pointer, pointer],
        # handle, description, alpha, A, B (each with its layout), beta, C, D (each with its
        # layout), algorithm, workspace, its bytes, stream
        "cublasLtMatmul": [*[pointer] * 14, size, pointer],
    }
    for name, types in arguments.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, ctypes.c_int
    library.cublasLtGetVersion.restype = size
    return library


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), name)(*arguments)
    if status == _NOT_SUPPORTED:
        raise RuntimeError(f"{name}: cublasLt does not support this product")
    if status:
        raise RuntimeError(f"{name} failed with cublasStatus_t {status}")


@functools.cache
def _handle(device: str) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _call("cublasLtCreate", ctypes.byref(handle))
    return handle


@functools.cache
def _workspace(backend: Backend) -> Any:
    return backend.empty((_WORKSPACE_BYTES,), "int8")


class _Object:
    """A description, layout or preference of cublasLt, destroyed with this."""

    def __init__(self, kind: str, *arguments: Any) -> None:
        self._kind = kind
        self.pointer = ctypes.c_void_p()
        _call(f"cublasLt{kind}Create", ctypes.byref(self.pointer), *arguments)
        weakref.finalize(self, getattr(_library(), f"cublasLt{kind}Destroy"), self.pointer)

    def set(self, attribute: int, value: Any) -> None:
        name = f"cublasLt{self._kind}SetAttribute"
        _call(name, self.pointer, attribute, ctypes.byref(value), ctypes.sizeof(value))


class Product:
    """What cublasLt needs to know of a case: column-major, so D^T = B^T A^T, its A is our B.

    RuntimeError for a case that cublasLt does not take.
    """

    def __init__(self, operands: Operands) -> None:
        case, backend = operands.case, operands.backend
        mode = case.mode
        is_tf32 = mode.compute_dtype == "tf32" and case.dtype == "float32"
        if mode.compute_dtype != case.dtype and not is_tf32:
            raise RuntimeError(f"cublasLt does not convert {case.dtype} to {mode.compute_dtype}")
        if mode.accumulate_name not in _COMPUTE:
            raise RuntimeError(f"cublasLt does not accumulate in {mode.accumulate_name}")
        compute, scale = _COMPUTE[mode.accumulate_name]
        if is_tf32:
            compute = _COMPUTE_TF32
        self._backend = backend
        self._scalars = np.array([1.0, case.beta], scale)
        self._description = _Object("MatmulDesc", compute, _DATA_TYPE[scale])
        if mode.accumulate_name == "fast":
            self._description.set(_DESC_FAST_ACCUM, ctypes.c_int8(1))
        first = operands.sets[0]
        for attribute, letter in ((_DESC_TRANSA, case.layout[1]), (_DESC_TRANSB, case.layout[0])):
            self._description.set(attribute, ctypes.c_int32(letter == "t"))
        self._b = self._layout(case, first.b, case.dtype, case.layout[1])
        self._a = self._layout(case, first.a, case.dtype, case.layout[0])
        self._d = self._layout(case, first.d, mode.result_dtype, "n")
        # A result of FP8 goes with a C of 16 bits alone, even one that is not read.
        if mode.results_are_fp8 and case.beta:
            raise RuntimeError(f"cublasLt adds no C of {mode.result_dtype}")
        c_dtype = "bfloat16" if mode.results_are_fp8 else mode.result_dtype
        self._c = self._layout(case, first.d, c_dtype, "n")
        self._alignments = [
            _alignment(map(backend.address, arrays))
            for arrays in zip(*(_arrays(each) for each in operands.sets), strict=True)
        ]

    def _layout(self, case: Case, array: Any, dtype: str, layout: str) -> _Object:
        """Of an array whose rows (layout n) or columns (t) are the columns of cublasLt's matrix."""
        *batch, rows, columns = self._backend.strides(array)
        extents = tuple(array.shape[-2:])
        outer = rows if layout == "n" else columns
        inner_extent, outer_extent = extents[::-1] if layout == "n" else extents
        made = _Object(
            "MatrixLayout", _DATA_TYPE[dtype], inner_extent, outer_extent, max(outer, inner_extent)
        )
        if case.batch > 1:  # a shared operand has no batch dimension: stride 0
            made.set(_LAYOUT_BATCH_COUNT, ctypes.c_int32(case.batch))
            made.set(_LAYOUT_STRIDED_BATCH_OFFSET, ctypes.c_int64(batch[0] if batch else 0))
        return made

    @property
    def _layouts(self) -> tuple[ctypes.c_void_p, ...]:
        return (self._b.pointer, self._a.pointer, self._c.pointer, self._d.pointer)

    def candidates(self) -> list[_Heuristic]:
        """In the order in which cublasLt expects them to be fast."""
        preference = _Object("MatmulPreference")
        preference.set(_PREF_MAX_WORKSPACE_BYTES, ctypes.c_uint64(_WORKSPACE_BYTES))
        for attribute, bytes_ in zip(_PREF_MIN_ALIGNMENT_BYTES, self._alignments, strict=True):
            preference.set(attribute, ctypes.c_uint32(bytes_))
        results, found = (_Heuristic * _CANDIDATES)(), ctypes.c_int()
        _call(
            "cublasLtMatmulAlgoGetHeuristic",
            _handle(self._backend.device),
            self._description.pointer,
            *self._layouts,
            preference.pointer,
            _CANDIDATES,
            results,
            ctypes.byref(found),
        )
        return [results[place] for place in range(found.value) if results[place].status == 0]

    def work(self, each: OperandSet, candidate: _Heuristic) -> Work:
        """A launch on the stream that is current when it is made."""
        b, a, c, d = (self._backend.address(array) for array in _arrays(each))
        alpha = self._scalars.ctypes.data
        beta = alpha + self._scalars.itemsize
        b_layout, a_layout, c_layout, d_layout = self._layouts
        launch = partial(
            _library().cublasLtMatmul,
            _handle(self._backend.device),
            self._description.pointer,
            alpha,
            b,
            b_layout,
            a,
            a_layout,
            beta,
            c,
            c_layout,
            d,
            d_layout,
            ctypes.byref(candidate.algorithm),
            self._backend.address(_workspace(self._backend)),
            _WORKSPACE_BYTES,
        )
        return partial(self._launch, launch)

    def _launch(self, launch: Callable[[int], int]) -> None:
        status = launch(self._backend.stream())
        if status:
            raise RuntimeError(f"cublasLtMatmul failed with cublasStatus_t {status}")


def _arrays(each: OperandSet) -> tuple[Any, Any, Any, Any]:
    """In cublasLt's order: its A is our B. C that is not read is D."""
    return (each.b, each.a, each.d if each.c is None else each.c, each.d)


def _alignment(addresses: Iterable[int]) -> int:
    """The largest power of two up to 256 that divides all."""
    together = _LARGEST_ALIGNMENT
    for address in addresses:
        together |= address
    return together & -together


def best(operands: Operands) -> tuple[Sequence[Work], dict[str, Any]]:
    """The launches of the fastest candidate, and what it is. RuntimeError where there is none."""
    product = Product(operands)
    candidates = product.candidates()
    works: list[list[Work]] = []
    taken: list[_Heuristic] = []
    for candidate in candidates:
        launches = [product.work(each, candidate) for each in operands.sets[:_LOOKED_AT]]
        try:
            launches[0]()
        except RuntimeError:  # refused after all
            continue
        works.append(launches)
        taken.append(candidate)
    if not works:
        raise RuntimeError("cublasLt has no candidate for this product")
    place = fastest(operands.backend, works)
    facts = {
        "candidates": len(works),
        "candidate": place,
        "workspace_bytes": int(taken[place].workspace_bytes),
        "cublaslt_version": int(_library().cublasLtGetVersion()),
    }
    return [product.work(each, taken[place]) for each in operands.sets], facts
