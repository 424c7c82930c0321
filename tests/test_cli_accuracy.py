"""The oracle of the command line: it accepts right results and finds planted faults."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import tcgemm
from tcgemm._cli import accuracy
from tcgemm._cli.backends import NumpyBackend, round_bits
from tcgemm._cli.modes import MODES, U16, U32, U64, Mode, bounds

BACKEND = NumpyBackend()
M, N, K = 70, 50, 90


def judge(a, b, d, mode, rows=None):
    return accuracy.measure(BACKEND, a, b, d, mode, bounds(mode, a.shape[1]), rows=rows)


@pytest.fixture
def operands(rng):
    a = rng.standard_normal((M, K)).astype(np.float32)
    b = rng.standard_normal((K, N)).astype(np.float32)
    return a, b, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)


def test_accepts_a_rounded_product(operands):
    a, b, d = operands
    seen = judge(a, b, d, MODES["fp32"])
    assert seen.kept
    assert 0 < seen.over_bound < 1
    assert seen.compared == M * N
    assert seen.relative < U32


@pytest.mark.parametrize("fault", ["zero tile", "sign", "nan", "tail", "swapped rows"])
def test_finds_a_planted_fault(operands, fault):
    a, b, d = operands
    if fault == "zero tile":
        d[64:, 48:] = 0
    elif fault == "sign":
        d[3, 4] = -d[3, 4]
    elif fault == "nan":
        d[0, 0] = math.nan
    elif fault == "tail":
        d = a[:, :-1] @ b[:-1]
    else:
        d[[0, 1]] = d[[1, 0]]
    assert not judge(a, b, d, MODES["fp32"]).kept


def test_products_that_underflow_are_within_the_promise():
    """2^-26 is a quarter of the least number that an FP16 sum holds."""
    a, b = (np.full(shape, 2.0**-13, np.float16) for shape in ((3, 5), (5, 2)))
    mode = Mode("float16", accumulate="fp16", out_dtype="float32")
    assert judge(a, b, tcgemm.matmul(a, b, **mode.arguments), mode).kept
    assert not judge(a, b, np.full((3, 2), 2.0**-20, np.float32), mode).kept


def test_finds_operands_rounded_in_silence(operands):
    a, b, _ = operands
    narrow = a.astype(np.float16).astype(np.float64) @ b.astype(np.float16).astype(np.float64)
    d = narrow.astype(np.float32)
    assert not judge(a, b, d, MODES["fp32"]).kept
    asked = judge(a, b, d, MODES["fp32-as-fp16"])
    assert asked.kept
    assert asked.relative > 1e-5  # what the rounding costs is shown, though it was asked for


def test_sampled_rows_meet_every_strip_of_64(operands):
    rows = accuracy.sample_rows(1000, 4)
    assert rows[-1] == 999
    assert {row // 64 for row in rows} == set(range(16))
    assert accuracy.sample_rows(1, 64) == [0]


def test_finds_a_zero_tile_in_sampled_rows(rng):
    a, b = rng.random((1000, 8)), rng.random((8, 200))
    a, b = a.astype(np.float32), b.astype(np.float32)
    d = (a.astype(np.float64) @ b).astype(np.float32)
    assert judge(a, b, d, MODES["fp32"], rows=10).kept
    d[512:640, 128:] = 0
    assert not judge(a, b, d, MODES["fp32"], rows=10).kept


def test_integers_are_exact_or_wrong(rng):
    a = rng.integers(-127, 128, (M, K), dtype=np.int8)
    b = rng.integers(-127, 128, (K, N), dtype=np.int8)
    d = a.astype(np.int32) @ b.astype(np.int32)
    assert judge(a, b, d, MODES["int8"]).over_bound == 0
    d[5, 5] += 1
    assert judge(a, b, d, MODES["int8"]).over_bound == math.inf


def test_int32_wraps():
    k = 131072
    a = np.full((1, k), -128, np.int8)
    d = np.array([[-(2**31)]], np.int32)
    assert judge(a, a.T, d, MODES["int8"]).kept


def test_fp64_is_held_against_exact_arithmetic(rng):
    a, b = rng.random((M, K)), rng.random((K, N))
    d = a @ b
    seen = judge(a, b, d, MODES["fp64"])
    assert seen.kept
    assert not judge(a, b, d * (1 + 2 * K * U64), MODES["fp64"]).kept
    single = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64)
    assert not judge(a, b, single, MODES["fp64"]).kept


def test_exact_terms_sum_to_the_dot_product(rng):
    x = rng.standard_normal(40) * np.exp2(rng.integers(-200, 200, 40).astype(float))
    y = rng.standard_normal(40) * np.exp2(rng.integers(-200, 200, 40).astype(float))
    terms = accuracy._exact_terms(x, y)
    exact = sum((Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)), Fraction(0))
    assert sum(map(Fraction, terms), Fraction(0)) == exact


def test_rounding_to_bfloat16_is_to_nearest_even(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32)
    x = bits.view(np.float32)
    x = x[np.isfinite(x)]
    ties = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 2.0**-133], np.float32)
    x = np.concatenate([x, ties])
    expected = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(round_bits(x, 16), expected)


def test_bounds_are_those_of_the_contract():
    assert bounds(MODES["fp16"], 100).hard == 200 * U32
    assert bounds(MODES["fp16"], 100, (7, 0)).hard == 300 * U32
    assert bounds(MODES["bf16"], 100, (9, 0)).gate == 28 * U32
    assert bounds(MODES["fp32"], 100).hard == 100 * U32
    assert bounds(MODES["fp32"], 4).gate == 8 * U32
    assert bounds(MODES["fp64"], 100).gate == 20 * U64
    assert bounds(MODES["fp16-promoted"], 10**6).gate == 64 * U32
    assert bounds(MODES["bf16-promoted"], 100).hard == 200 * U32
    assert bounds(MODES["fp32-promoted"], 100).gate == 20 * U32
    assert bounds(MODES["fp32-promoted"], 10**6).gate == 64 * U32
    assert bounds(MODES["fp16-sum-fp16"], 100).hard == 27 * U16
    assert bounds(MODES["fp16-sum-fp16"], 100, (7, 0), family="simt").hard == 101 * U16
    assert bounds(MODES["fp16"], 100, adds=True).hard == 203 * U32
    assert bounds(MODES["fp16"], 100, adds=True).gate == 31 * U32
    assert bounds(MODES["fp64"], 100, adds=True).hard == 103 * U64
    assert bounds(MODES["int8"], 100, adds=True).hard == 0
    assert bounds(MODES["int8"], 100).hard == 0


def test_mode_dtypes():
    assert Mode("float32", precision="bf16").compute_dtype == "bfloat16"
    assert Mode("float16", out_dtype="float32").arguments == {"out_dtype": "float32"}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_results_have_the_dtype_that_the_library_gives(monkeypatch, dtype):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(2).astype(dtype)
    precisions = [None, "fp16", "bf16", "tf32", "fp32", "fp32_simt", "fp64"]
    for precision in [*precisions, *(["int8"] if dtype == "int8" else [])]:
        result = tcgemm.matmul(a, a, precision=precision)
        assert Mode(dtype, precision=precision).result_dtype == result.dtype.name, precision
