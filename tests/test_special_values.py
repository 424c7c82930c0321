"""Special values and BLAS semantics: what is not read, and where NaN and Inf may go."""

import itertools

import numpy as np
import pytest
import tcgemm
from harness import COL, Layout, bits_of, data, in_halves, round_to, scaled, wide

E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
SHAPES = ((17, 9, 33), (64, 64, 64), (129, 65, 70))


def floating(mode):
    return mode.operand != "int8"


def small(rng, mode, m, n, k):
    a, b = data.integers(rng, mode, (m, k), (k, n))
    return a, b, round_to(rng.integers(-8, 8, (m, n)), mode.default_output)


def bad(values):
    """The same shape full of what must not be read."""
    return round_to(
        np.full(values.shape, np.nan if values.dtype.kind != "i" else 99), values.dtype.name
    )


def test_s01_beta0_nan_c(lab, mode, rng):
    shapes = [*SHAPES, (16, 16, 16384)]  # the last one splits K where a family does that
    for m, n, k in shapes:
        a, b, c = small(rng, mode, m, n, k)
        with_nan = lab.check(mode, a, b, bad(c), expect="bound")
        with_zero = lab.check(mode, a, b, np.zeros_like(c), expect="bound")
        assert (with_nan.bits == with_zero.bits).all()
        inf = bad(c) if mode.operand == "int8" else np.full_like(c, np.inf)
        assert (lab.check(mode, a, b, inf).bits == with_zero.bits).all()


def test_s01_every_entry_point_gives_the_same_bits(lab, mode, rng):
    a, b = data.signed(rng, mode, (33, 70), (70, 17))
    run = lab.prepare(mode, a, b)
    expected = bits_of(run.execute())
    arrays = {name: operand.array for name, operand in run.operands.items()}
    how = {"precision": mode.precision, "accumulate": mode.accumulate, "out": arrays["out"]}
    for call in (
        lambda: lab.library.matmul(arrays["a"], arrays["b"], **how),
        lambda: lab.library.gemm(arrays["a"], arrays["b"], **how),
        lambda: lab.library.gemm(arrays["a"], arrays["b"], arrays["c"], beta=0.0, **how),
        lambda: lab.library.plan(arrays["a"], arrays["b"], **how).execute(),
    ):
        run.operands["out"].refill()
        call()
        assert (bits_of(run.collect()) == expected).all()


def test_s02_alpha0_nan_ab(lab, mode, rng):
    for m, n, k in SHAPES:
        a, b, c = small(rng, mode, m, n, k)
        for beta in (0, 1, 2, -3):
            lab.check(mode, bad(a), bad(b), c, alpha=0, beta=beta, expect="exact")


def test_s03_k0(lab, mode, rng):
    for m, n in ((17, 9), (128, 128), (1, 1)):
        a, b, c = small(rng, mode, m, n, 0)
        for beta in (0, 1, 2):
            lab.check(mode, a, b, c, beta=beta, expect="exact")
            lab.check(mode, a, b, c, alpha=5, beta=beta, expect="exact")
        if floating(mode):
            lab.check(mode, a, b, c, beta=0.7)  # 0.7 c: one rounding, and that of the output


def test_s04_mn0_batch0(lab, mode, rng):
    for m, n, batch in ((0, 5, ()), (5, 0, ()), (0, 0, ()), (3, 4, (0,)), (3, 4, (2, 0))):
        a, b = data.integers(rng, mode, (*batch, m, 7), (*batch, 7, n))
        got = lab.check(mode, a, b, expect="exact").out
        assert got.shape == (*batch, m, n)


@pytest.mark.modes(only=floating)
def test_s05_alpha_nan_beta_nan(lab, mode, rng):
    a, b, c = small(rng, mode, 33, 17, 20)
    for alpha, beta in ((np.nan, 0.0), (np.nan, 1.0), (1.0, np.nan), (0.0, np.nan)):
        got = lab.check(mode, a, b, c, alpha=alpha, beta=beta).out
        assert np.isnan(wide(got)).all(), (alpha, beta)


def has_inf(mode):
    return floating(mode) and mode.operand != "float8_e4m3fn"


@pytest.mark.modes(only=has_inf)
def test_s06_zero_times_inf(lab, mode):
    for m, n, k in ((5, 4, 3), (70, 70, 70)):
        a = np.ones((m, k))
        b = np.ones((k, n))
        a[1, 2], b[2, 1] = 0.0, np.inf
        got = wide(lab.check(mode, round_to(a, mode.operand), round_to(b, mode.operand)).out)
        assert np.isnan(got[1, 1])
        assert np.isnan(got).sum() == 1  # 0 * Inf there, nowhere else
        assert np.isinf(got[[i for i in range(m) if i != 1], 1]).all()
        assert (got[:, [j for j in range(n) if j != 1]] == wide(a).sum(1, keepdims=True)).all()
    a, b = np.array([[1.0, 1.0]]), np.array([[np.inf, np.inf], [-np.inf, np.inf]])
    got = wide(lab.check(mode, round_to(a, mode.operand), round_to(b, mode.operand)).out)
    assert np.isnan(got[0, 0])
    assert got[0, 1] == np.inf


@pytest.mark.modes(only=floating)
def test_s07_nan_row_containment(lab, mode, rng):
    m, n, k = 70, 66, 65
    a, b = data.signed(rng, mode, (m, k), (k, n))
    for layouts in ({}, {"a": COL, "b": COL}):
        clean = lab.check(mode, a, b, layouts=layouts).bits
        for row, column in ((0, 0), (m - 1, k - 1), (31, 64), (64, 3)):
            dirty = a.copy()
            dirty[row, column] = np.nan
            got = lab.check(mode, dirty, b, layouts=layouts)
            assert np.isnan(wide(got.out)[row]).all()
            others = [i for i in range(m) if i != row]
            if in_halves(lab.family, mode):  # another kernel computes what has NaN in it
                assert np.isfinite(wide(got.out)[others]).all()
            else:
                assert (got.bits[others] == clean[others]).all()
        dirty = b.copy()
        dirty[k - 1, n - 1] = np.inf
        got = lab.check(mode, a, dirty, layouts=layouts)
        if in_halves(lab.family, mode):
            assert np.isfinite(wide(got.out)[:, : n - 1]).all()
        else:
            assert (got.bits[:, : n - 1] == clean[:, : n - 1]).all()


def test_s08_nan_in_padding(lab, mode, rng):
    """Rows and matrices of a batch with gaps: NaN in them or zeros, the bits are the same."""
    for batch in ((), (3,)):
        a, b = data.signed(rng, mode, (*batch, 33, 30), (*batch, 30, 20))
        for order in ("row", "col"):
            for pad in (1, 2, 8):
                gaps = Layout(order, pad=pad, batch_pad=5)
                layouts = dict.fromkeys(("a", "b", "c", "out"), gaps)
                with_nan = lab.check(mode, a, b, layouts=layouts)
                with_zero = lab.check(mode, a, b, layouts=layouts, filler=0)
                assert (with_nan.bits == with_zero.bits).all()


@pytest.mark.modes(only=floating)
def test_s10_negative_zero(lab, mode):
    """Accumulation starts from +0: a sum of negative zeros, or of none, is +0, on every kernel."""
    for k in (1, 4, 33):
        a = round_to(np.full((5, k), -0.0), mode.operand)
        b = round_to(np.ones((k, 6)), mode.operand)
        got = wide(lab.check(mode, a, b, expect="exact").out)
        assert not np.signbit(got).any()
    c = round_to(np.full((5, 6), -0.0), mode.default_output)
    got = wide(lab.check(mode, a[:, :0], b[:0], c, beta=1, expect="exact").out)
    assert not np.signbit(got).any()


@pytest.mark.parametrize("n", [7, 96, 2080])
def test_fp8_neighbours_overflow_each_for_itself(lab, n, monkeypatch):
    """By every kernel: one instruction rounds two of them."""
    rng, m = np.random.default_rng(n), 2300 if lab.on_gpu and n > 96 else 70
    a, b = round_to(np.ones((m, 1)), E4M3), round_to(np.ones((1, n)), E4M3)
    each = [464.0, 465.0, 3.0, 61439.0, 61440.0, 1e9, np.inf, np.nan]
    totals = (rng.choice(each, n) * rng.choice([1, -1], n)).astype(np.float32)
    accepted = 0
    for _ in lab.force_each(monkeypatch):
        for out, overflow in itertools.product((E4M3, E5M2), ("saturate", "nan")):
            how = {"out_dtype": out, "overflow": overflow, "scales": {"scale_b": totals[None]}}
            try:
                _, d = scaled.run(lab, a, b, **how)
            except tcgemm.NoKernelError:
                break
            want = wide(scaled.saturated(totals, out, overflow))
            np.testing.assert_array_equal(wide(d), np.broadcast_to(want, (m, n)))
            accepted += 1
    assert accepted
