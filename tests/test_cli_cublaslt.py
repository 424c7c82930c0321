"""What the benchmark tells cublasLt, held against a library that does as it is told."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from tcgemm._cli import accuracy, cublaslt
from tcgemm._cli.backends import NumpyBackend
from tcgemm._cli.cases import Case
from tcgemm._cli.modes import bounds
from tcgemm._cli.operands import Operands, Pool

DTYPES = {0: np.float32, 1: np.float64, 2: np.float16}
OPERATION_A, OPERATION_B, BATCH, STRIDE = 3, 4, 5, 6


class PretendedGpu(NumpyBackend):
    def stream(self):
        return 7


class Library:
    """cublasLt's C interface on the CPU: its matrices are column-major."""

    def __init__(self):
        self.objects, self.preferences, self.launched = {}, [], []
        self.slow = self.refused = None  # candidates

    def _new(self, out, **facts):
        out._obj.value = len(self.objects) + 1
        self.objects[out._obj.value] = facts
        return 0

    def _set(self, pointer, attribute, value, size):
        assert size == ctypes.sizeof(value._obj)
        self.objects[pointer.value][attribute] = value._obj.value
        return 0

    def _destroy(self, pointer):
        return 0

    cublasLtMatmulDescSetAttribute = cublasLtMatrixLayoutSetAttribute = _set  # noqa: N815
    cublasLtMatmulPreferenceSetAttribute = _set  # noqa: N815
    cublasLtMatmulDescDestroy = cublasLtMatrixLayoutDestroy = _destroy  # noqa: N815
    cublasLtMatmulPreferenceDestroy = _destroy  # noqa: N815

    def cublasLtCreate(self, out):  # noqa: N802
        return self._new(out)

    def cublasLtGetVersion(self):  # noqa: N802
        return 130100

    def cublasLtMatmulDescCreate(self, out, compute, scale):  # noqa: N802
        return self._new(out, compute=compute, scale=scale)

    def cublasLtMatrixLayoutCreate(self, out, dtype, rows, columns, leading):  # noqa: N802
        assert leading >= rows
        return self._new(out, dtype=dtype, rows=rows, columns=columns, leading=leading)

    def cublasLtMatmulPreferenceCreate(self, out):  # noqa: N802
        return self._new(out)

    def cublasLtMatmulAlgoGetHeuristic(  # noqa: N802
        self, handle, description, a, b, c, d, preference, wanted, results, found
    ):
        self.preferences.append(self.objects[preference.value])
        found._obj.value = 4
        for place in range(4):
            results[place].algorithm[0] = place
            results[place].status = 15 if place == 3 else 0
        return 0

    def _matrices(self, address, layout):
        facts = self.objects[layout.value]
        dtype = np.dtype(DTYPES[facts["dtype"]])
        batch, stride = facts.get(BATCH, 1), facts.get(STRIDE, 0)
        shape = (batch, facts["rows"], facts["columns"])
        strides = (stride * dtype.itemsize, dtype.itemsize, facts["leading"] * dtype.itemsize)
        last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        memory = (ctypes.c_char * (last + dtype.itemsize)).from_address(address)
        return np.ndarray(shape, dtype, memory, strides=strides)

    def cublasLtMatmul(  # noqa: N802
        self, handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
        algorithm, workspace, workspace_bytes, stream,
    ):  # fmt: skip
        place = algorithm._obj[0]
        self.launched.append((place, stream, workspace_bytes))
        if place == self.refused:
            return 15
        facts = self.objects[description.value]
        scale = np.ctypeslib.as_ctypes_type(np.dtype(DTYPES[facts["scale"]]))
        alpha, beta = (scale.from_address(x).value for x in (alpha, beta))
        left, right = self._matrices(a, a_layout), self._matrices(b, b_layout)
        left = left.swapaxes(1, 2) if facts.get(OPERATION_A) else left
        right = right.swapaxes(1, 2) if facts.get(OPERATION_B) else right
        total = alpha * (left.astype(np.float64) @ right.astype(np.float64))
        if beta:
            total = total + beta * self._matrices(c, c_layout)
        self._matrices(d, d_layout)[...] = total
        return 0


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(cublaslt, "_library", lambda: made)
    return made


CASES = [
    Case(9, 7, 5, "float16"),
    Case(9, 7, 5, "float16", "nt"),
    Case(9, 7, 5, "float32", "tn"),
    Case(9, 7, 5, "float64", "tt"),
    Case(9, 7, 5, "float16", "nt", padding=3, offset=1),
    Case(9, 7, 5, "float16", out_dtype="float32", beta=2.0),
    Case(9, 7, 5, "float32", beta=-1.0, in_place=True),
    Case(9, 7, 5, "float16", "tn", batch=3, padding=1),
    Case(9, 7, 5, "float32", batch=3, broadcast="b"),
    Case(9, 7, 5, "float32", "tt", batch=3, broadcast="a", beta=1.0),
    Case(1, 7, 5, "float16", "nt"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.size} {case.form} {case.dtype}")
def test_every_layout_is_what_cublaslt_reads(library, case):
    backend = PretendedGpu()
    operands = Operands(Pool(backend), case, 2)
    works, facts = cublaslt.best(operands)
    assert facts["candidates"] == 3
    assert len(works) == 2
    for place, each in enumerate(operands.sets):
        operands.reset()
        works[place]()
        c = operands.initial_c(place)
        reference = accuracy.Reference(backend, each.a, each.b, case.mode, c=c, beta=case.beta)
        assert reference.judge(each.d, case.mode, bounds(case.mode, case.k)).kept
    assert {(stream, size) for _, stream, size in library.launched} == {(7, 64 << 20)}


def test_a_result_of_fp8_goes_with_a_c_of_16_bits(library):
    for out_dtype, c_type in (("float8_e4m3fn", 14), ("bfloat16", 14), ("float32", 0)):
        case = Case(16, 16, 16, "float8_e4m3fn", "nt", accumulate="fast", out_dtype=out_dtype)
        product = cublaslt.Product(Operands(Pool(PretendedGpu()), case, 1))
        c, d = (library.objects[layout.value] for layout in product._layouts[2:])
        assert (c["dtype"], d["dtype"]) == (c_type, cublaslt._DATA_TYPE[out_dtype])
    case = Case(16, 16, 16, "float8_e4m3fn", "nt", accumulate="fast", out_dtype="float8_e4m3fn")
    operands = Operands(Pool(PretendedGpu()), replace(case, beta=1.0), 1)
    with pytest.raises(RuntimeError, match="adds no C of float8_e4m3fn"):
        cublaslt.Product(operands)


def test_the_alignment_is_that_of_the_operands(library):
    even, odd = Case(64, 64, 64, "float16"), Case(64, 64, 64, "float16", offset=1)
    for case in (even, odd):
        cublaslt.best(Operands(Pool(PretendedGpu()), case, 1))
    aligned, shifted = library.preferences
    assert [shifted[attribute] for attribute in (5, 6, 7, 8)] == [2] * 4
    assert all(aligned[attribute] >= 16 for attribute in (5, 6, 7, 8))
    assert aligned[1] == 64 << 20


def test_a_candidate_that_is_refused_is_left_out(library):
    library.refused = 1
    _, facts = cublaslt.best(Operands(Pool(PretendedGpu()), Case(8, 8, 8), 1))
    assert facts["candidates"] == 2


@pytest.mark.parametrize(
    ("case", "named"),
    [
        (Case(8, 8, 8, "float32", precision="fp16"), "does not convert float32 to float16"),
        (Case(8, 8, 8, "float16", accumulate="promoted"), "does not accumulate in promoted"),
    ],
)
def test_what_it_does_not_take_is_named(library, case, named):
    with pytest.raises(RuntimeError, match=named):
        cublaslt.best(Operands(Pool(PretendedGpu()), case, 1))


def test_a_machine_without_it_says_so(monkeypatch):
    monkeypatch.setattr(cublaslt, "library_path", lambda: None)
    cublaslt._library.cache_clear()
    with pytest.raises(RuntimeError, match="libcublasLt was not found"):
        cublaslt.best(Operands(Pool(PretendedGpu()), Case(8, 8, 8), 1))
