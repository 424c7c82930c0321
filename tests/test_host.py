"""The host family's instruction sets: each that this CPU has gives the same contract."""

import numpy as np
import pytest
import tcgemm
from harness import COL, MODES, Lab, Layout, data

INSTRUCTION_SETS = ("generic", "avx2", "avx512")


@pytest.fixture(params=INSTRUCTION_SETS)
def host(request, monkeypatch):
    """The host family limited to one instruction set."""
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", "host")
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    monkeypatch.setenv("TCGEMM_HOST_ISA", request.param)
    one = np.ones((1, 1), np.float32)
    try:
        tcgemm.matmul(one, one)
    except tcgemm.InvalidArgument:  # says TCGEMM_HOST_ISA: see the last test
        if request.param == "generic":
            raise  # the one for any CPU must be there
        pytest.skip(f"no {request.param} on this CPU or in this build")
    return Lab(tcgemm, "host")


@pytest.mark.parametrize("mode", MODES.values(), ids=str)
def test_each_instruction_set_is_exact_on_whole_numbers(host, mode, rng):
    for m, n, k in data.shapes_pairwise()[::7]:
        a, b = data.integers(rng, mode, (m, k), (k, n))
        host.check(mode, a, b, expect="exact", layouts={"a": COL, "out": Layout(pad=1)})
        host.check(mode, a, b, expect="exact", layouts={"b": COL, "out": COL})


@pytest.mark.parametrize("mode", MODES.values(), ids=str)
def test_each_instruction_set_keeps_the_bounds(host, mode, rng):
    for name in data.data_sets(mode):
        for k in (1, 15, 64, 257, 1000):
            a, b = data.DATA_SETS[name](rng, mode, (33, k), (k, 19))
            gate = "gate" if name == "positive" else "bound"
            host.check(mode, a, b, out_dtype=mode.outputs[-1], expect=gate)
    a, b = data.positive(rng, mode, (3, 16384), (16384, 2))
    if mode.accumulator != "float16":
        host.check(mode, a, b, out_dtype=mode.sum_output, expect="gate")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.usefixtures("host")
def test_b_where_it_lies_gives_the_bits_of_b_packed(dtype, rng):
    """Few rows times a row-major B, of which only the last columns are packed."""
    for m in (1, 2, 3, 5, 8, 9):
        for k, n in ((1, 48), (127, 47), (128, 96), (129, 49), (300, 1), (1000, 203)):
            a = rng.standard_normal((m, k)).astype(dtype)
            memory = rng.standard_normal((k, n + 3)).astype(dtype)
            b, c = memory[:, 1 : n + 1], rng.standard_normal((m, n)).astype(dtype)
            column_major = np.asfortranarray(b)
            assert (tcgemm.matmul(a, b) == tcgemm.matmul(a, column_major)).all()
            got = tcgemm.gemm(a, b[::-1], c, alpha=0.5, beta=2.0)
            assert (got == tcgemm.gemm(a, column_major[::-1], c, alpha=0.5, beta=2.0)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.usefixtures("host")
def test_products_of_vectors_have_the_bits_of_larger_products(dtype, rng):
    """Blocks of K side by side, where a larger product has elements of D side by side."""
    for k in (1, 127, 129, 511, 513, 1023, 1024, 1025, 2049, 4095, 4097, 5121, 20001):
        a = rng.standard_normal((9, k + 1)).astype(dtype)[:, 1:]
        lines_of_b = rng.standard_normal((50, k)).astype(dtype)
        whole = tcgemm.matmul(a, np.ascontiguousarray(lines_of_b.T))
        for m, n in ((1, 1), (2, 1), (1, 4), (2, 2)):
            assert (tcgemm.matmul(a[:m], lines_of_b[:n].T) == whole[:m, :n]).all(), (m, n, k)
        assert tcgemm.matmul(a[8], lines_of_b[49]) == whole[8, 49]


def test_an_unknown_instruction_set_is_an_error(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    monkeypatch.setenv("TCGEMM_HOST_ISA", "mmx")
    one = np.ones((1, 1), np.float32)
    with pytest.raises(tcgemm.InvalidArgument, match=r"TCGEMM_HOST_ISA.*mmx.*generic"):
        tcgemm.matmul(one, one)
