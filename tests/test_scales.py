"""FP8 and scaled results: what scales mean, which of them a block gets, overflow, bytes as FP8."""

import ml_dtypes
import numpy as np
import pytest
import tcgemm
from harness import (
    COL,
    INT8_SCALING_FAMILIES,
    LEAST_CAPABILITY,
    SCALING_FAMILIES,
    Layout,
    bits_of,
    cuda,
    data,
    round_to,
    scaled,
    wide,
)
from harness.modes import FP8_GATE, FP8_HARD, MODES

E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
FORMATS_OF_FP8 = ((E4M3, E4M3), (E5M2, E5M2), (E4M3, E5M2), (E5M2, E4M3))
OUTPUTS = ("float32", "float16", "bfloat16", E4M3, E5M2)


@pytest.fixture(autouse=True)
def only_where_there_are_scales(lab, request):
    of_int8 = "int8" in request.function.__name__ and lab.family in INT8_SCALING_FAMILIES
    least = LEAST_CAPABILITY.get((lab.family, "fp8"), (0, 0))
    if lab.on_gpu and cuda.compute_capability() < least and not of_int8:
        pytest.skip(f"{lab.family} multiplies FP8 from {least} on")
    if lab.family not in SCALING_FAMILIES and not of_int8:
        accumulate = "fast" if lab.family == "sm70_wmma" else "promoted"
        operands = fp8(np.random.default_rng(0), 8, 8, 8)
        with pytest.raises(tcgemm.NoKernelError, match=r"the epilogue linear, .* asks for scaled"):
            scaled.run(lab, *operands, out_dtype=E4M3, accumulate=accumulate)
        pytest.skip(f"{lab.family} has no scales, and says so")


def fp8(rng, m, n, k, a_dtype=E4M3, b_dtype=E4M3, positive=False):
    low = 0 if positive else -1
    return (
        round_to(rng.uniform(low, 1, (m, k)), a_dtype),
        round_to(rng.uniform(low, 1, (k, n)), b_dtype),
    )


def int8(rng, m, n, k):
    return (
        rng.integers(-128, 128, (m, k)).astype(np.int8),
        rng.integers(-128, 128, (k, n)).astype(np.int8),
    )


def distinct(rng, *shape):
    """No two alike, and each at least 1.1 times another: the wrong one shows beyond FP8's error."""
    count = int(np.prod(shape))
    steps = rng.permutation(count) % 60
    return (1.25**steps * 2.0**-6).reshape(shape).astype(np.float32)


def blocks(extent):
    return -(-extent // 128)


def scale_shapes(m, n, k):
    """Each kind of scale of A with each of B."""
    of_a = ((1, 1), (m, 1), (m, blocks(k)), (blocks(m), blocks(k)))
    of_b = ((1, 1), (1, n), (blocks(k), n), (blocks(k), blocks(n)))
    return [(a, b) for a in of_a for b in of_b]


@pytest.mark.parametrize("pair", FORMATS_OF_FP8, ids="-".join)
def test_n14_fp8_longk(lab, rng, pair):
    """Promoted sums: what FP8's own accumulators keep would be off by a quarter."""
    for k in (4096, 16384):
        a, b = fp8(rng, 13, 5, k, *pair, positive=True)
        scaled.check(lab, a, b, out_dtype="float32", limit=FP8_GATE, scales=ones())


def ones():
    return {"scale_d": np.ones((1, 1), np.float32)}


@pytest.mark.parametrize("pair", FORMATS_OF_FP8, ids="-".join)
def test_n15_fp8_scale_unique(lab, rng, pair):
    """A scale of its own for each row, column and block: the last one's counts as the first's."""
    m, n, k = 130, 257, 128 * 5 + 64
    a, b = fp8(rng, m, n, k, *pair, positive=True)
    for a_shape, b_shape in scale_shapes(m, n, k):
        scales = {"scale_a": distinct(rng, *a_shape), "scale_b": distinct(rng, *b_shape)}
        scaled.check(lab, a, b, out_dtype="float32", scales=scales, limit=FP8_GATE)
    # One row of A after the other picks one k: its own scale alone is in the result.
    eye = round_to(np.eye(k), E4M3)
    scale = distinct(rng, k, blocks(k))
    got = scaled.check(
        lab, eye, np.ones((k, 3), b.dtype), out_dtype="float32", scales={"scale_a": scale}
    )
    assert (got == scale[np.arange(k), np.arange(k) // 128][:, None]).all()


@pytest.mark.parametrize("out", OUTPUTS)
def test_n15_scales_of_every_shape_layout_and_result(lab, rng, out):
    for m, n, k in ((1, 1, 1), (5, 7, 130), (129, 66, 300), (64, 200, 128), (300, 3, 260)):
        a, b = fp8(rng, m, n, k)
        for index, (a_shape, b_shape) in enumerate(scale_shapes(m, n, k)):
            scales = {
                "scale_a": rng.uniform(0.5, 2, a_shape).astype(np.float32),
                "scale_b": rng.uniform(0.5, 2, b_shape).astype(np.float32),
                "scale_d": np.full((1, 1), 0.125, np.float32),
            }
            order = (COL, Layout(pad=3), Layout(step=2))
            names = ("a", "b", "out", "c", "scale_a", "scale_b")
            layouts = {name: order[(index + i) % 3] for i, name in enumerate(names)}
            c = round_to(rng.uniform(-4, 4, (m, n)), out)
            how = {"out_dtype": out, "scales": scales, "layouts": layouts}
            scaled.check(lab, a, b, **how)
            scaled.check(lab, a, b, c=c, alpha=0.5, beta=-1.5, **how)


def test_n15_scales_trade_places_with_their_operands(lab, rng):
    m, n, k = 140, 150, 400
    a, b = fp8(rng, m, n, k)
    for a_shape, b_shape in scale_shapes(m, n, k):
        scales = {"scale_a": distinct(rng, *a_shape), "scale_b": distinct(rng, *b_shape)}
        want = scaled.check(lab, a, b, out_dtype="float32", scales=scales)
        transposed = {name: lab.place(np.ascontiguousarray(s.T)) for name, s in scales.items()}
        out = lab.place_output((m, n), "float32")
        tcgemm.gemm(
            lab.place(np.ascontiguousarray(a.T)).array, lab.place(np.ascontiguousarray(b.T)).array,
            out=out.array, trans_a=True, trans_b=True,
            **{name: s.array for name, s in transposed.items()},
        )  # fmt: skip
        assert (bits_of(out.read("out")) == bits_of(want)).all()
        # b @ a through D^T: a column-major result swaps the operands inside the library.
        got = scaled.check(lab, a, b, out_dtype="float32", scales=scales, layouts={"out": COL})
        assert np.allclose(got, want, rtol=1e-6, atol=1e-3 * abs(want).max())


def test_n15_long_k_with_few_tiles(lab, rng):
    """Where K is split among blocks of a GPU, scales act on the sum of all parts, but those of
    blocks on each k-block's."""
    m, n, k = 9, 17, 128 * 61 + 5
    a, b = fp8(rng, m, n, k, positive=True)
    for a_shape, b_shape in (((m, blocks(k)), (blocks(k), 1)), ((m, 1), (1, n)), ((1, 1), (1, n))):
        scales = {"scale_a": distinct(rng, *a_shape), "scale_b": distinct(rng, *b_shape)}
        scaled.check(lab, a, b, out_dtype="float32", scales=scales, limit=FP8_GATE)
    for rows in (70, 128):  # two tiles, which clusters share B in
        more, _ = fp8(rng, rows, n, k, positive=True)
        by_block = {
            "scale_a": distinct(rng, rows, blocks(k)),
            "scale_b": distinct(rng, blocks(k), n),
        }
        scaled.check(lab, more, b, out_dtype="float32", scales=by_block, limit=FP8_GATE)
    scales["scale_d"] = np.full((1, 1), 2.0**-10, np.float32)
    c = round_to(rng.uniform(-1, 1, (m, n)), E4M3)
    scaled.check(lab, a, b, c=c, alpha=0.5, beta=2, out_dtype=E4M3, scales=scales)


def test_n15_scales_of_more_tiles_than_blocks(lab, rng, monkeypatch):
    """Scales of blocks come with each k-block of each tile, whole or ragged. By every kernel: more
    tiles than an H200 has SMs, more k-blocks than a ring has stages, tiles in two column blocks.
    """
    m, n, k = (2300, 2608, 700) if lab.on_gpu else (70, 140, 300)
    a, b = fp8(rng, m, n, k, positive=True)
    accepted = []
    for name in lab.force_each(monkeypatch):
        for of_b in ((blocks(k), n), (blocks(k), blocks(n))):
            scales = {"scale_a": distinct(rng, m, blocks(k)), "scale_b": distinct(rng, *of_b)}
            how = {"out_dtype": "float32", "scales": scales, "limit": FP8_GATE}
            try:
                d = scaled.check(lab, a, b, **how)
            except tcgemm.NoKernelError:
                break
            scaled.check(lab, a, b, **{**how, "out_dtype": "bfloat16"})
            in_range = scales | {"scale_d": np.full((1, 1), 448 / d.max(), np.float32)}
            scaled.check(lab, a, b, **{**how, "out_dtype": E4M3, "scales": in_range})
            scaled.check(lab, a, b, layouts={"b": COL}, **how)
            accepted.append(name)
    assert accepted
    promoted = "sm90_wgmma_e4m3_promoted_128x208"
    assert promoted in accepted or lab.family != "sm90_wgmma"


def test_n15_large_tiles_with_parts_of_k(lab, rng, monkeypatch):
    """Whole tiles and narrower ones, ragged both ways, whose K several blocks share."""
    if lab.family != "sm90_wgmma":
        pytest.skip("the other families have no such tiles")
    name = "sm90_wgmma_e4m3_promoted_128x208"
    next(forced for forced in lab.force_each(monkeypatch) if forced == name)
    for m, n, k in ((200, 400, 128 * 61 + 5), (130, 193, 128 * 40)):
        a, b = fp8(rng, m, n, k, positive=True)
        plan = tcgemm.plan(*(lab.place(x).array for x in (a, b)), out_dtype="float32")
        assert plan.split_k > 1
        c = round_to(rng.uniform(-4, 4, (m, n)), "float32")
        for of_b in ((1, n), (blocks(k), n), (blocks(k), blocks(n))):
            of_a = (m, 1) if of_b[0] == 1 else (m, blocks(k))
            scales = {"scale_a": distinct(rng, *of_a), "scale_b": distinct(rng, *of_b)}
            how = {"out_dtype": "float32", "scales": scales, "limit": FP8_GATE}
            scaled.check(lab, a, b, **how)
            scaled.check(lab, a, b, c=c, alpha=0.5, beta=2, layouts={"out": COL}, **how)


@pytest.mark.parametrize("out", ["float32", "float16", "bfloat16"])
def test_int8_long_k_with_few_tiles(lab, rng, out):
    for m, n, k in ((9, 17, 65536), (5, 60, 30000)):
        a, b = int8(rng, m, n, k)
        scales = {
            "scale_a": rng.uniform(2.0**-9, 2.0**-8, (m, 1)).astype(np.float32),
            "scale_b": rng.uniform(2.0**-9, 2.0**-8, (1, n)).astype(np.float32),
        }
        scaled.check(lab, a, b, out_dtype=out, scales=scales)


def test_an_infinite_scale_of_a_block_gives_inf(lab):
    """Not NaN: no other block's sum is multiplied by it."""
    ones_ = round_to(np.ones((3, 256)), E4M3)
    scale = np.array([[np.inf, 1.0]] * 3, np.float32)
    with np.errstate(all="ignore"):
        _, d = scaled.run(lab, ones_, ones_.T, out_dtype="float32", scales={"scale_a": scale})
    assert np.isposinf(wide(d)).all()


def test_n16_fp8_overflow_mode(lab):
    """464 is a tie with 480, which there is not, and rounds down; 465 is beyond."""
    totals = np.array([[464.0, 465.0, 1e9, -464.0, -465.0, -1e9, 448.0, 0.0]])
    one = round_to([[1.0]], E4M3)
    for overflow, beyond in (("saturate", 448.0), ("nan", np.nan)):
        got = []
        for total in totals[0]:
            scale = {"scale_a": np.full((1, 1), total, np.float32)}
            _, d = scaled.run(lab, one, one, out_dtype=E4M3, scales=scale, overflow=overflow)
            got.append(wide(d)[0, 0])
        want = [448, beyond, beyond, -448, -beyond, -beyond, 448, 0]
        np.testing.assert_array_equal(got, want)
    for overflow, beyond in (("saturate", 57344.0), ("nan", np.inf)):
        for total, want in ((61439.0, 57344.0), (61440.0, beyond), (-1e9, -beyond)):
            scale = {"scale_b": np.full((1, 1), total, np.float32)}
            _, d = scaled.run(lab, one, one, out_dtype=E5M2, scales=scale, overflow=overflow)
            assert wide(d)[0, 0] == want
    # NaN stays NaN, Inf is beyond.
    for value, saturate, nan in ((np.nan, np.nan, np.nan), (np.inf, 448.0, np.nan)):
        for overflow, want in (("saturate", saturate), ("nan", nan)):
            scale = {"scale_d": np.full((1, 1), value, np.float32)}
            _, d = scaled.run(lab, one, one, out_dtype=E4M3, scales=scale, overflow=overflow)
            np.testing.assert_array_equal(wide(d)[0, 0], want)


def test_every_fp8_number_is_multiplied_and_stored_exactly(lab):
    one = round_to([[1.0]], E4M3)
    for dtype in (E4M3, E5M2):
        every = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype)).reshape(-1, 1)
        for values, row in ((every, False), (every.reshape(1, -1), True)):
            pair = (one, values) if row else (values, one)
            _, got = scaled.run(lab, *pair, out_dtype=dtype, overflow="nan")
            np.testing.assert_array_equal(wide(got), wide(values))
            _, got = scaled.run(lab, *pair, out_dtype="float32", scales=ones())
            np.testing.assert_array_equal(wide(got), wide(values))


@pytest.mark.parametrize("out", ["float32", "float16", "bfloat16"])
def test_int8_goes_to_floats_by_its_scales(lab, rng, out):
    for m, n, k in ((1, 1, 1), (33, 70, 65), (257, 129, 300), (16, 16, 16384)):
        a, b = int8(rng, m, n, k)
        c = round_to(rng.uniform(-4, 4, (m, n)), out)
        for a_shape in ((), (m, 1)):
            scales = {
                "scale_a": rng.uniform(0.5, 2, a_shape).astype(np.float32) / 128,
                "scale_b": rng.uniform(0.5, 2, (1, n)).astype(np.float32) / 128,
            }
            for layouts in ({}, {"a": COL, "b": COL, "out": COL}):
                how = {"out_dtype": out, "scales": scales, "layouts": layouts}
                scaled.check(lab, a, b, **how)
                scaled.check(lab, a, b, c=c, alpha=0.3, beta=1.7, **how)
    a, b = int8(rng, 9, 7, 40)
    scaled.check(lab, a, b, out_dtype=out, alpha=2.0**-12)  # no scales: alpha need not be whole


def test_batches_have_scales_of_their_own(lab, rng):
    """And a batch that shares B is one matrix to the kernels where its scales go on."""
    a = round_to(rng.uniform(0, 1, (3, 20, 300)), E4M3)
    b = round_to(rng.uniform(0, 1, (300, 40)), E4M3)
    for shape in ((3, 20, 1), (3, 20, 3), (3, 1, 3), (3, 1, 1), (1, 20, 1), (20, 3)):
        scales = {"scale_a": distinct(rng, *shape), "scale_b": distinct(rng, 3, 40)}
        scaled.check(lab, a, b, out_dtype="float32", scales=scales)
    b = round_to(rng.uniform(0, 1, (3, 300, 40)), E4M3)
    scales = {"scale_a": distinct(rng, 3, 20, 3), "scale_b": distinct(rng, 3, 3, 1)}
    scaled.check(lab, a, b, out_dtype="float32", scales=scales)
    # Four dimensions that cannot be walked by fewer strides.
    a = round_to(rng.uniform(0, 1, (2, 1, 3, 1, 20, 300)), E4M3)
    b = round_to(rng.uniform(0, 1, (1, 2, 1, 2, 300, 40)), E4M3)
    for columns in (1, 3):
        scale_b = distinct(rng, 1, 2, 1, 2, columns, 40)
        scales = {"scale_a": distinct(rng, 2, 1, 3, 1, 20, columns), "scale_b": scale_b}
        scaled.check(lab, a, b, out_dtype="float32", scales=scales)


def test_scales_that_are_numbers_are_part_of_alpha(lab, rng):
    a, b = fp8(rng, 20, 30, 40)
    want = scaled.check(lab, a, b, out_dtype="float32", alpha=0.5 * 0.25 * 8)
    arrays = [lab.place(x).array for x in (a, b)]
    out = lab.place_output((20, 30), "float32")
    tcgemm.gemm(*arrays, out=out.array, scale_a=0.5, scale_b=np.float32(0.25), scale_d=8)
    assert (out.read("out") == want).all()


def test_s02_scales_are_not_read_where_alpha_is_0(lab, rng):
    a, b = fp8(rng, 20, 30, 200)
    c = round_to(rng.integers(-8, 8, (20, 30)), "float32")
    nan = {"scale_a": np.full((20, 2), np.nan), "scale_b": np.full((2, 30), np.nan)}
    _, got = scaled.run(lab, a, b, c=c, out_dtype="float32", scales=nan, alpha=0, beta=2)
    assert (got == 2 * c).all()
    scales = {**nan, "scale_d": np.full((1, 1), 0.5)}
    _, got = scaled.run(lab, a[:, :0], b[:0], c=c, out_dtype="float32", scales={
        "scale_d": scales["scale_d"]}, beta=2)  # fmt: skip
    assert (got == c).all()


def test_s07_nan_in_a_scale_stays_in_its_row(lab, rng):
    a, b = fp8(rng, 70, 66, 300)
    scale = rng.uniform(0.5, 2, (70, 3)).astype(np.float32)
    _, clean = scaled.run(lab, a, b, out_dtype="float32", scales={"scale_a": scale})
    scale[31, 1] = np.nan
    _, got = scaled.run(lab, a, b, out_dtype="float32", scales={"scale_a": scale})
    assert np.isnan(got[31]).all()
    others = [i for i in range(70) if i != 31]
    assert (bits_of(got[others]) == bits_of(clean[others])).all()


def test_fast_sums_are_no_other_result_than_the_plan_says(lab, rng):
    a, b = fp8(rng, 20, 30, 500)
    _, got = scaled.run(lab, a, b, out_dtype="float32", scales=ones(), accumulate="fast")
    assert np.allclose(got, wide(a) @ wide(b), atol=0.05)
    plan = tcgemm.plan(
        *(lab.place(x).array for x in (a, b)), out=lab.place_output((20, 30), E5M2).array,
        out_dtype=E5M2, accumulate="fast",
    )  # fmt: skip
    assert (plan.precision, plan.accumulate, plan.epilogue) == ("fp8_e4m3", "fast", "scaled")
    assert "epilogue scaled" in str(plan)


def test_bytes_are_fp8_by_name(lab, rng):
    a, b = fp8(rng, 20, 30, 64, E4M3, E5M2)
    _, want = scaled.run(lab, a, b, out_dtype=E5M2)
    raw = [lab.place(bits_of(x).view(np.int8)) for x in (a, b)]
    for operand in raw:  # uint8 in DLPack's words
        if lab.on_gpu:
            operand.array._format = operand.array._format.__class__(
                "uint8", np.dtype(np.uint8), np.dtype(np.uint8), 1, 0
            )
    arrays = [x.array if lab.on_gpu else x.array.view(np.uint8) for x in raw]
    out = lab.place_output((20, 30), E5M2)
    plan = tcgemm.plan(*arrays, out=out.array, out_dtype=E5M2, a_dtype=E4M3, b_dtype=E5M2)
    assert plan.precision == "fp8"
    plan.execute()
    assert (bits_of(out.read("out")) == bits_of(want)).all()
    with pytest.raises(tcgemm.DTypeError, match=r"a is uint8.*a_dtype="):
        tcgemm.gemm(*arrays, out=out.array, out_dtype=E5M2, b_dtype=E5M2)
    with pytest.raises(tcgemm.DTypeError, match="a_dtype is float16; it must be float8_e4m3fn or"):
        tcgemm.gemm(*arrays, out=out.array, out_dtype=E5M2, a_dtype="float16", b_dtype=E5M2)


ERRORS = (
    ({"scale_a": (3, 20)}, tcgemm.ShapeError, r"scale_a has shape \(3, 20\).*\(20, 1\).*\(20, 3\)"),
    ({"scale_b": (30, 3)}, tcgemm.ShapeError, r"scale_b has shape \(30, 3\).*\(1, 30\).*\(3, 30\)"),
    ({"scale_d": (1, 2)}, tcgemm.ShapeError, "scale_d has shape .* one scale"),
    ({"scale_a": (2, 20, 1)}, tcgemm.ShapeError, "do not broadcast to the batch"),
)


@pytest.mark.parametrize(("shapes", "error", "words"), ERRORS, ids=lambda x: str(x)[:30])
def test_e01_bad_scales(lab, rng, shapes, error, words):
    a, b = fp8(rng, 20, 30, 300)
    scales = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    with pytest.raises(error, match=words):
        scaled.run(lab, a, b, out_dtype="float32", scales=scales)


def test_e01_one_dimension_is_of_rows_or_columns_and_not_of_blocks():
    """Two numbers for 200 rows, which are two blocks of 128 where K is one."""
    a, b = np.ones((200, 100), np.float32).astype(E4M3), np.ones((100, 64), np.float32).astype(E4M3)
    with pytest.raises(tcgemm.ShapeError, match=r"scale_a has shape \(2,\)"):
        tcgemm.gemm(a, b, scale_a=np.ones(2, np.float32))
    tcgemm.gemm(a, b, scale_a=np.ones((2, 1), np.float32))
    with pytest.raises(tcgemm.ShapeError, match=r"scale_b has shape \(2,\)"):
        tcgemm.gemm(b.T.copy(), a.T.copy(), scale_b=np.ones(2, np.float32))


def test_e01_bad_scales_of_int8_are_not_offered_blocks(lab, rng):
    words = r"it must be \(\) for one scale, \(20,\) or \(20, 1\) for one for each row$"
    scales = {"scale_a": np.ones((3, 20), np.float32)}
    with pytest.raises(tcgemm.ShapeError, match=words):
        scaled.run(lab, *int8(rng, 20, 30, 300), out_dtype="float32", scales=scales)


@pytest.mark.parametrize(
    ("m", "k", "words"),
    [
        (1, 300, r"one scale, \(1, 3\) for 128 k each$"),
        (20, 300, r"\(20, 3\) for 128 k each, \(1, 3\) for blocks of 128 x 128$"),
        (300, 100, r"\(300,\) or \(300, 1\) for .* row, \(3, 1\) for blocks of 128 x 128$"),
        (1, 100, r"it must be \(\) for one scale$"),
    ],
)
def test_e01_bad_scales_are_told_each_shape_once(rng, m, k, words):
    with pytest.raises(tcgemm.ShapeError, match=words):
        tcgemm.gemm(*fp8(rng, m, 30, k), scale_a=np.ones((7, 7), np.float32))


def test_e01_blocks_of_the_longest_k_are_counted():
    k = 2**63 - 1
    a = np.broadcast_to(np.zeros((1, 1), np.uint8), (1, k))
    fp8_bytes = {"a_dtype": E4M3, "b_dtype": E4M3}
    with pytest.raises(tcgemm.ShapeError, match=rf"\(1, {2**56}\) for 128 k each"):
        tcgemm.gemm(a, a.T, scale_a=np.ones((3, 1), np.float32), **fp8_bytes)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        (
            "scale_a",
            (2, 5),
            r"has its own, \(2, 5, 1, 1\) for one scale or \(2, 5, 20, 1\) for .* row$",
        ),
        (
            "scale_b",
            (5, 2),
            r"has its own, \(2, 5, 1, 1\) for .* or \(2, 5, 1, 30\) for .* column$",
        ),
    ],
)
def test_e01_bad_scales_of_a_batch_are_told_its_dimensions(lab, rng, name, shape, words):
    a = round_to(rng.uniform(-1, 1, (2, 5, 20, 300)), E4M3)
    b = round_to(rng.uniform(-1, 1, (300, 30)), E4M3)
    with pytest.raises(tcgemm.ShapeError, match=words):
        scaled.run(lab, a, b, out_dtype="float32", scales={name: np.ones(shape, np.float32)})


def test_e01_scales_where_there_are_none(lab, rng):
    one = np.ones((1, 1), np.float32)
    a = round_to(rng.uniform(-1, 1, (8, 8)), "float32")
    with pytest.raises(tcgemm.InvalidArgument, match=r"scale_a is given.*precision fp32"):
        scaled.run(lab, a, a, out_dtype="float32", scales={"scale_a": one})
    with pytest.raises(tcgemm.InvalidArgument, match=r"D is int32.*D's dtype \(out_dtype in Py"):
        scaled.run(lab, *int8(rng, 8, 8, 8), out_dtype="int32", scales={"scale_b": one})
    with pytest.raises(tcgemm.InvalidArgument, match="overflow nan is for a D of FP8"):
        scaled.run(lab, *fp8(rng, 8, 8, 8), out_dtype="float16", overflow="nan")
    blocky = {"scale_a": np.ones((8, 2))}
    with pytest.raises(tcgemm.InvalidArgument, match="block_1x128, which int8"):
        scaled.run(lab, *int8(rng, 8, 8, 200), out_dtype="float32", scales=blocky)
    half = lab.place(np.ones((1, 1), np.float16)).array
    with pytest.raises(tcgemm.DTypeError, match="scale_a is float16; scales are float32"):
        tcgemm.plan(*(lab.place(x).array for x in fp8(rng, 8, 8, 8)), scale_a=half,
                    out=lab.place_output((8, 8), "float32").array)  # fmt: skip


def test_a_plan_takes_other_scales_of_the_same_layout(lab, rng):
    a, b = fp8(rng, 20, 30, 300)
    first, second = (lab.place(distinct(rng, 20, 1)) for _ in range(2))
    out = lab.place_output((20, 30), "float32")
    arrays = [lab.place(x).array for x in (a, b)]
    plan = tcgemm.plan(*arrays, out=out.array, scale_a=first.array)
    plan.execute(scale_a=second.array)
    _, want = scaled.run(lab, a, b, out_dtype="float32", scales={"scale_a": second.read("scale_a")})
    assert (out.read("out") == want).all()
    with pytest.raises(tcgemm.InvalidArgument, match="scale_b is given, but the plan was made"):
        plan.execute(scale_b=first.array)
    inside = lab.place_output((20, 30), "float32")  # a column of D as the scales of its rows
    whole = inside.array
    column = whole[:, :1] if isinstance(whole, np.ndarray) else whole.part((20, 1))
    with pytest.raises(tcgemm.LayoutError, match="out may share memory with scale_a"):
        tcgemm.plan(*arrays, out=inside.array, scale_a=column)


def test_fp8_promises_hold_on_every_data_set(lab, rng):
    mode = MODES["fp8_e4m3"]
    for name in data.data_sets(mode):
        a, b = data.DATA_SETS[name](rng, mode, (33, 257), (257, 19))
        gate = FP8_GATE if name == "positive" else FP8_HARD
        scaled.check(lab, a, b, out_dtype="float32", scales=ones(), limit=gate)
