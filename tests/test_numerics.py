"""Numerics: exact integers for indexing, error bounds for precision, on every data set."""

import numpy as np
import pytest
import tcgemm
from harness import (
    COL,
    FP8_IN_FP32,
    FP8_IN_FP32_K,
    MODES,
    ROW,
    SIXTEEN_BIT_FAMILIES,
    Lab,
    Layout,
    data,
    families,
    round_to,
    wide,
)

ROOM = Layout(pad=8)  # rows that keep their alignment, with gaps


def fp16_computing(mode):
    return mode.compute == "float16" and mode.accumulator == "float32"


def sweep_exact(lab, mode, rng, shapes, **how):
    for m, n, k in shapes:
        a, b = data.integers(rng, mode, (m, k), (k, n))
        lab.check(mode, a, b, expect="exact", **how)


def test_n01_exact_int_sweep(lab, mode, rng):
    shapes = data.shapes_pairwise()
    # One output dtype a quarter of the shapes; each pair of sizes meets in some of them.
    for start, out in zip(range(4), 4 * mode.outputs, strict=False):
        sweep_exact(lab, mode, rng, shapes[start::4], out_dtype=out)


@pytest.mark.slow
def test_n01_exact_int_sweep_of_all_shapes(lab, mode, rng):
    sweep_exact(lab, mode, rng, data.shapes_all())


def test_n01_exact_int_sweep_with_alpha_beta_c(lab, mode, rng):
    for m, n, k in data.shapes_pairwise()[::5]:
        a, b = data.integers(rng, mode, (m, k), (k, n))
        c = round_to(rng.integers(-8, 8, (m, n)), mode.default_output)
        lab.check(mode, a, b, c, alpha=-2, beta=3, expect="exact", layouts={"c": ROOM})


def test_n02_identity_and_permutation(lab, mode, rng):
    """Any finite bits pass through unchanged: nothing is rounded, flushed or swapped."""
    operand = np.dtype(mode.compute if mode.precision is None else "float32")
    for m, n, k in ((64, 40, 64), (129, 65, 129), (33, 17, 50), (257, 8, 300)):
        bits = rng.integers(0, 256, (k, n, operand.itemsize), dtype=np.uint8)
        b = bits.view(operand)[..., 0]
        b = np.where(np.isfinite(wide(b)), b, operand.type(1))
        b = round_to(wide(round_to(wide(b), mode.compute)), mode.operand)
        b = np.where(np.isfinite(wide(b)), b, b.dtype.type(1))
        out = mode.default_output
        for a in (np.eye(m, k), data.permutation(rng, mode, (m, k), (k, n))[0]):
            a = round_to(wide(a), mode.operand)
            got = lab.check(mode, a, b, expect="exact", out_dtype=out).out
            picked = b[wide(a).argmax(axis=-1)]
            some = wide(a).any(axis=-1)
            assert (wide(got)[some] == wide(picked)[some]).all()


def test_n03_index_code(lab, mode, rng):
    """Each element of D picks its own code; m, n and k differ, so swapped sizes show."""
    narrow = mode.compute in ("bfloat16", "int8") or mode.is_fp8
    m, n, k = (11, 4, 31) if narrow else (37, 29, 53)
    for order_a, order_b, order_out in ((ROW, ROW, ROW), (COL, ROW, COL), (ROW, COL, COL)):
        layouts = {"a": order_a, "b": order_b, "out": order_out}
        a, b = data.codes(rng, mode, (m, k), (k, n))
        assert np.unique(wide(b)).size == b.size
        got = lab.check(mode, a, b, expect="exact", layouts=layouts).out
        assert (wide(got) == wide(b)[wide(a).argmax(axis=-1)]).all()
        # The other way round: A holds the codes, B picks columns.
        lab.check(mode, b.T.copy(), a.T.copy(), expect="exact", layouts=layouts)


@pytest.mark.parametrize("k", data.LONG_K)
def test_n04_positive_longk(lab, mode, rng, k):
    """13 x 1 outputs of one sign: a biased sum shows in full."""
    a, b = data.positive(rng, mode, (13, k), (k, 1))
    if mode.accumulator == "float16":
        # Sums beyond 65504 overflow, as FP16 does; scaled, they stay inside.
        a = round_to(wide(a) / k, mode.operand)
    lab.check(mode, a, b, out_dtype=mode.sum_output, expect="gate")


@pytest.mark.gpu
@pytest.mark.parametrize("family", FP8_IN_FP32)
def test_n04_fp8_in_fp32_to_its_longest_k(family, rng, monkeypatch):
    """FP32 sums, which are not promoted, keep the promise of FP8; a longer K is refused."""
    if family not in families.runnable():
        pytest.skip(f"no {family} on this machine")
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", family)
    lab = Lab(tcgemm, family)
    for name in FP8_IN_FP32[family]:
        mode = MODES[name]
        a, b = data.positive(rng, mode, (13, FP8_IN_FP32_K), (FP8_IN_FP32_K, 9))
        lab.check(mode, a, b, out_dtype=mode.sum_output, expect="gate")
        with pytest.raises(tcgemm.NoKernelError, match="asks for promoted"):
            lab.prepare(mode, a, b, determinism="batch_invariant")
        longer = [np.concatenate([x, x], axis=axis) for x, axis in ((a, 1), (b, 0))]
        with pytest.raises(tcgemm.NoKernelError, match="asks for promoted"):
            lab.prepare(mode, *longer)


def test_n05_signed_random(lab, mode, rng):
    size = 512
    a, b = data.signed(rng, mode, (size, size), (size, size))
    lab.check(mode, a, b, rows=range(3, size, 9))


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1024, 2048, 4096])
def test_n05_signed_random_large(lab, mode, rng, size):
    if lab.family == "host" and size > 1024:
        pytest.skip("too slow on the CPU; 512 and 1024 run")
    a, b = data.signed(rng, mode, (size, size), (size, size))
    lab.check(mode, a, b, rows=range(5, size, size // 16))


@pytest.mark.parametrize("name", data.DATA_SETS)
def test_n05_every_data_set_at_every_k(lab, mode, rng, name):
    if name not in data.data_sets(mode):
        assert mode.operand == "int8", "only integers have no exponents to stress"
        return
    widest = mode.outputs[-1]
    for k in data.SHORT_K:
        a, b = data.DATA_SETS[name](rng, mode, (17, k), (k, 9))
        out = mode.default_output if k % 2 and name != "near_max" else widest
        lab.check(mode, a, b, out_dtype=out, expect="gate" if name == "positive" else "bound")
    for k in data.LONG_K[:1] if lab.family == "host" else data.LONG_K:
        a, b = data.DATA_SETS[name](rng, mode, (5, k), (k, 3))
        if name == "positive" and mode.accumulator == "float16":
            a = round_to(wide(a) / k, mode.operand)
        lab.check(mode, a, b, out_dtype=widest, expect="gate" if name == "positive" else "bound")


def simt_error(lab, monkeypatch, a, b):
    """Of D = A B in FP32 itself, relative to |A||B|: on CUDA cores, or the host's. In the parts
    of K that N and K choose: more of them make it more accurate, and are a matter of speed."""
    rival = Lab(lab.library, "simt" if lab.on_gpu else "host", record=False)
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", rival.family)
    try:
        chain = rival.check(MODES["fp32_simt"], a, b, determinism="batch_invariant")
        return relative_error(chain.out, a, b)
    finally:
        monkeypatch.setenv("TCGEMM_FORCE_FAMILY", lab.family)


def relative_error(d, a, b):
    a, b = wide(a), wide(b)
    return (abs(wide(d) - a @ b) / (abs(a) @ abs(b))).max()


@pytest.mark.modes(only=lambda mode: mode.name == "fp32")
def test_n06_wide_exponent(lab, mode, rng, monkeypatch):
    """Signed lognormal, sigma 4, which parts in FP16 do not hold; and one huge entry a row."""
    for name in ("wide_exponents", "huge_entry"):
        for m, n, k in ((65, 70, 300), (33, 40, 4096)):
            a, b = data.DATA_SETS[name](rng, mode, (m, k), (k, n))
            got = relative_error(lab.check(mode, a, b).out, a, b)
            assert got <= 2 * simt_error(lab, monkeypatch, a, b)


@pytest.mark.modes(only=lambda mode: mode.name == "fp32")
def test_n09_fp32_split_vs_simt(lab, mode, rng, monkeypatch):
    """FP32-grade: on data of one sign and a long K no worse than twice FP32 itself."""
    for k in (64, 1000, 8192):
        a, b = data.positive(rng, mode, (33, k), (k, 40))
        got = relative_error(lab.check(mode, a, b, expect="gate").out, a, b)
        assert got <= 2 * simt_error(lab, monkeypatch, a, b)


@pytest.mark.modes(only=lambda mode: mode.name in ("fp32", "fp32_simt"))
def test_n22_split_inf_near_max(lab, mode, rng):
    """Inf, NaN (a signalling one, too) and the largest numbers as FP32 itself gives them."""
    largest = float(np.finfo(np.float32).max)
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)[0]
    m, n, k = 70, 66, 130
    a, b = data.signed(rng, mode, (m, k), (k, n))
    for value in (np.inf, -np.inf, np.nan, signalling, largest, -largest, largest * 2.0**-3):
        dirty = a.copy()
        dirty.view(np.uint32)[31, 64] = np.float32(value).view(np.uint32)
        got = wide(lab.check(mode, dirty, b).out)
        clean = wide(lab.check(mode, a, b).out)
        others = [i for i in range(m) if i != 31]
        np.testing.assert_allclose(got[others], clean[others], rtol=0, atol=1e-4)
        if not np.isfinite(value):
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(got[31], float(value) * wide(b)[64])
    one = np.zeros((1, k), np.float32)
    one[0, 77] = largest
    picked = np.zeros((k, 3), np.float32)
    picked[77] = (1, -1, 0.5)
    got = lab.check(mode, one, picked, expect="exact").out
    assert (wide(got) == largest * np.array([1, -1, 0.5])).all()
    assert np.isinf(lab.check(mode, one, 2 * picked).out[0, :2]).all()


@pytest.mark.modes(only=lambda mode: mode.name == "tf32")
def test_n07_tf32_rounding_probe(lab, mode):
    """Inputs are rounded to nearest even; the tensor cores alone would truncate them."""
    one = round_to([[1.0]], "float32")
    for value, rounded in (
        (1 + 1.5 * 2.0**-11, 1 + 2.0**-10),
        (1 + 2.0**-11, 1.0),  # a tie
        (1 + 3 * 2.0**-11, 1 + 2.0**-9),
        (-1 - 1.5 * 2.0**-11, -1 - 2.0**-10),
        (2.0**-126 + 2.0**-137, 2.0**-126),
        (float(np.finfo(np.float32).max), np.inf),
    ):
        a = round_to([[value]], "float32")
        assert lab.check(mode, a, one, expect="exact").out[0, 0] == rounded
        assert lab.check(mode, one, a, expect="exact").out[0, 0] == rounded
    a = lab.place(round_to([[1 + 2.0**-11 + 2.0**-40]], "float64"))  # once: not to float32 before
    out = lab.place_output((1, 1), "float64")
    lab.library.matmul(
        a.array, lab.place(round_to([[1.0]], "float64")).array, out=out.array, precision="tf32"
    )
    assert out.read("out")[0, 0] == 1 + 2.0**-10


@pytest.mark.modes(only=lambda mode: mode.name in ("fp32", "fp32_simt"))
def test_n08_no_silent_tf32(lab, mode):
    one = round_to([[1.0]], "float32")
    for value in (1024.5, 1 + 2.0**-20, 1 + 2.0**-23, 1 + 2.0**-11 + 2.0**-12):
        a = round_to([[value]], "float32")
        assert lab.check(mode, a, one, expect="exact").out[0, 0] == value
        assert lab.check(mode, one, a, expect="exact").out[0, 0] == value


def overflows_fp16_by_one(mode):
    return "float16" in mode.outputs and mode.accumulator != "float16" and not mode.is_fp8


@pytest.mark.modes(only=overflows_fp16_by_one)
def test_n10_fp16_output_overflow(lab, mode):
    """65519 rounds down to the largest FP16 number, 65520 is a tie and goes to Inf."""
    top = {"bfloat16": 65280.0}.get(mode.compute, 65504.0)
    for total, expected in ((65519, 65504), (65520, np.inf), (-65519, -65504), (-65520, -np.inf)):
        rest = abs(total) - top
        sign = np.sign(total)
        a = round_to([[sign * top, sign * rest]], mode.operand)
        assert wide(a).sum() == total
        b = round_to([[1.0], [1.0]], mode.operand)
        assert wide(lab.check(mode, a, b, out_dtype="float16", expect="exact").out) == expected


@pytest.mark.modes(only=lambda mode: overflows_fp16_by_one(mode) and mode.compute != "float16")
def test_n10_bf16_output_overflow(lab, mode):
    largest = 2.0**128 - 2.0**120
    b = round_to([[1.0], [1.0]], mode.operand)
    for rest, expected in ((2.0**118, largest), (2.0**119, np.inf)):
        a = round_to([[largest, rest]], mode.operand)
        assert wide(lab.check(mode, a, b, out_dtype="bfloat16", expect="exact").out) == expected


@pytest.mark.modes(only=fp16_computing)
def test_n11_fp16_partial_overflow(lab, mode, rng):
    """Partial sums of 2^23 that cancel to 1: those of a split K must not be held in FP16.

    Every partial sum is a whole number below 2^24, exact in FP32 in any order.
    """
    splits = set()
    for k in (2048, 16384, 65536):
        half = np.full(k // 2, 16.0)
        row = np.concatenate([half, -half, np.ones(1), np.zeros(7)])
        column = np.concatenate([half, half, np.ones(1), np.zeros(7)])
        for m, n in ((1, 1), (16, 24), (128, 128) if k == 2048 else (9, 33)):
            a = round_to(np.tile(row, (m, 1)), mode.operand)
            b = round_to(np.tile(column[:, None], (1, n)), mode.operand)
            for out in ("float16", "float32"):
                done = lab.check(mode, a, b, out_dtype=out, expect="exact")
                assert (wide(done.out) == 1).all()
                splits.add(done.split_k)
    if lab.family in SIXTEEN_BIT_FAMILIES:
        assert max(splits) >= 4, f"K of 65,536 was split into no more than {max(splits)} parts"


@pytest.mark.modes(only=lambda mode: mode.accumulator == "float16")
@pytest.mark.parametrize("k", [3, 8, 64, 256, 1000])
def test_many_products_that_an_fp16_sum_rounds_away(lab, mode, k):
    """1 and then numbers just below half its last place: each rounding drops all behind the one."""
    a = round_to(np.ones((2, k)), mode.operand)
    for place in (0, k // 2, k - 1):
        b = np.full((k, 3), 2.0**-11 * 0.999)
        b[place] = 1
        lab.check(mode, a, round_to(b, mode.operand), out_dtype="float32")


@pytest.mark.modes(only=lambda mode: mode.compute == "float16")
def test_n12_fp16_subnormals(lab, mode):
    for step in (2.0**-24, -(2.0**-24), 3 * 2.0**-24, 2.0**-15):
        for b_value in (1.0, 2.0, -4.0):
            a = round_to(np.full((5, 16), step), mode.operand)
            b = round_to(np.full((16, 3), b_value), mode.operand)
            for out in ("float16", "float32"):
                got = lab.check(mode, a, b, out_dtype=out, expect="exact").out
                assert (wide(got) == 16 * step * b_value).all()


@pytest.mark.modes(only=lambda mode: mode.compute in ("bfloat16", "float32"))
def test_n13_bf16_subnormals_probe(lab, mode, rng):
    """Subnormal inputs, and products that are subnormal in FP32."""
    step = {"bfloat16": 2.0**-133, "float32": 2.0**-149}[mode.compute]
    a = round_to(rng.integers(1, 8, (7, 16)) * step, mode.operand)
    b = round_to(rng.integers(1, 4, (16, 5)), mode.operand)
    got = lab.check(mode, a, b, out_dtype="float32", expect="exact").out
    assert (wide(got) > 0).all()
    # Normal inputs whose products and sums fall below 2^-126, on the grid of FP32 subnormals.
    a = round_to(rng.integers(1, 8, (7, 16)) * 2.0**-70, mode.operand)
    b = round_to(rng.integers(1, 4, (16, 5)) * 2.0**-70, mode.operand)
    lab.check(mode, a, b, out_dtype="float32", expect="exact")


@pytest.mark.modes(only=lambda mode: mode.name == "int8")
def test_n17_int8_extremes(lab, mode, rng):
    k = 131071  # the longest K whose sum of 128 * 128 fits int32
    low = np.full((2, k), -128, np.int8)
    got = lab.check(mode, low, low.T.copy(), expect="exact").out
    assert (got == 128 * 128 * k).all()
    high = np.full((2, k), 127, np.int8)
    assert (lab.check(mode, high, low.T.copy(), expect="exact").out == -127 * 128 * k).all()
    mixed = rng.choice(np.array([-128, 127], np.int8), (9, 1000))
    lab.check(mode, mixed, mixed.T.copy(), expect="exact")


@pytest.mark.modes(only=lambda mode: mode.name == "int8")
def test_n18_int8_overflow_doc(lab, mode):
    low = np.full((1, 131072), -128, np.int8)
    assert lab.check(mode, low, low.T.copy(), expect="exact").out == -(2**31)
    # alpha and beta wrap around in the same way.
    a, b = np.array([[127]], np.int8), np.array([[127]], np.int8)
    c = np.array([[2**31 - 1]], np.int32)
    lab.check(mode, a, b, c, alpha=2**20, beta=-3, expect="exact")


@pytest.mark.modes(only=lambda mode: mode.compute == "float64")
def test_n19_fp64_grading(lab, mode, rng):
    """Rows, columns and k graded from 1 to 2^-40, alike and against each other."""
    m, n, k = 65, 33, 257
    grades = [np.exp2(-40 * np.arange(extent) / extent) for extent in (m, k, k, n)]
    for turn in range(4):
        row, a_k, b_k, col = (
            g[::-1] if turn >> bit & 1 else g for bit, g in zip((0, 1, 0, 1), grades, strict=True)
        )
        for draw in (rng.random, lambda shape: rng.uniform(-1, 1, shape)):
            a = round_to(row[:, None] * draw((m, k)) * a_k, mode.operand)
            b = round_to(b_k[:, None] * draw((k, n)) * col, mode.operand)
            lab.check(mode, a, b, expect="gate" if draw == rng.random else "bound")


@pytest.mark.modes(only=lambda mode: mode.compute == "float64")
def test_n20_fp64_cancellation(lab, mode, rng):
    big = np.array([1e16, 1.0, -1e16] * 43)
    a = np.tile(big, (7, 1)) * rng.choice([-1.0, 1.0], (7, 1))
    b = rng.uniform(0.5, 1.5, (129, 5))
    lab.check(mode, a, b)
    b[2::3] = b[::3]  # what is left is only the ones in the middle
    lab.check(mode, a, b)


def test_n21_alpha_beta_precision(lab, mode, rng):
    """alpha and beta to every bit of the accumulator: one fused multiply-add."""
    if mode.operand == "int8":
        a, b = data.integers(rng, mode, (9, 40), (40, 7))
        c = rng.integers(-(2**20), 2**20, (9, 7)).astype(np.int32)
        lab.check(mode, a, b, c, alpha=1234567, beta=-7654321, expect="exact")
        return
    holder = np.float64 if mode.accumulator == "float64" else np.float32
    alpha, beta = 1 / 3, 1.3
    a, b = data.integers(rng, mode, (33, 40), (40, 17))
    product = wide(a) @ wide(b)
    for out in mode.outputs:
        c = round_to(rng.integers(-16, 16, product.shape), out)
        run = lab.prepare(mode, a, b, c, alpha=alpha, beta=beta, out_dtype=out)
        scaled = (holder(alpha) * product.astype(holder)).astype(np.longdouble)
        # Exact in long double: 24 (53) bits times 5, added, then rounded once.
        result = (scaled + np.longdouble(holder(beta)) * wide(c)).astype(holder)
        assert (run.execute() == round_to(wide(result), out)).all(), out
        lab.check(mode, a, b, c, alpha=alpha, beta=beta, out_dtype=out)


@pytest.mark.modes(only=lambda mode: mode.hard is not None)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_few_products_with_factors(lab, mode, rng, k):
    """The roundings of alpha and beta are as many as those of the sum, or more."""
    a, b = (round_to(1 + rng.random(shape), mode.operand) for shape in ((50, k), (k, 40)))
    for out in mode.outputs:
        c = round_to(rng.uniform(-0.05, 0.05, (50, 40)), out)
        for alpha, beta in ((1.1, 0.0), (0.1, 0.0), (1.1, 1.0), (1.0, 1.1)):
            lab.check(mode, a, b, c, alpha=alpha, beta=beta, out_dtype=out)


def test_default_precision_is_that_of_the_operands(lab, mode, rng):
    """Default output dtype and resolved modes as the plan states them."""
    a, b = data.signed(rng, mode, (5, 6), (6, 7))
    run = lab.prepare(mode, a, b)
    names = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    names |= {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}
    sums = "promoted" if mode.is_fp8 else names.get(mode.accumulator, "int32")
    assert run.plan.precision == (mode.precision or names.get(mode.compute, "int8"))
    assert run.plan.accumulate == (mode.accumulate or sums)
    assert run.plan.epilogue == "linear"
    assert MODES[mode.name].default_output == run.plan.out_dtype
