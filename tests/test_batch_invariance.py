"""determinism="batch_invariant": a row of D is a function of that row of A and C, B, N and K alone.

It does not depend on M, on the batch, on its place in either, or on how operands lie in memory.
"""

import numpy as np
import pytest
import tcgemm
from harness import (
    COL,
    FAMILY_MODES,
    FP8_MODES,
    MODES,
    ROW,
    Lab,
    Layout,
    bits_of,
    cuda,
    data,
    families,
    in_halves,
    round_to,
)
from harness.dlpack import CUDA, RawArray

N, K = 40, 2104  # few columns and a long K: where a kernel would split it by the number of tiles
LARGEST = 4096
ROWS = (*range(1, 301), LARGEST)
HOW = {"determinism": "batch_invariant"}


@pytest.fixture(autouse=True)
def _promised(request):
    """Which kernel computes a product in halves depends on all of A: none promises invariance."""
    if {"lab", "mode"} <= set(request.fixturenames):
        lab, mode = request.getfixturevalue("lab"), request.getfixturevalue("mode")
        if in_halves(lab.family, mode):
            a, b = data.signed(np.random.default_rng(1), mode, (64, 64), (64, 64))
            with pytest.raises(tcgemm.NoKernelError, match="batch_invariant"):
                lab.prepare(mode, a, b, **HOW)
            pytest.skip("refused, as it should be")


def rows_of(operand, first, count):
    """Some rows of a guarded row-major operand, as an array of their own."""
    if not isinstance(operand.array, RawArray):
        return operand.array[first : first + count]
    whole = operand.array
    stride = whole.strides[0]
    address = operand.address + first * stride * operand.format.numpy.itemsize
    shape, strides = (count, whole.shape[1]), (stride, 1)
    return RawArray(operand, address, operand.format, shape, strides, (CUDA, 0))


def arguments(mode):
    return {
        "precision": mode.precision,
        "accumulate": mode.accumulate,
        "out_dtype": mode.sum_output,
        **HOW,
    }


def test_d03_batch_invariant_rows(lab, mode, rng):
    """Every M from 1 to 300, and 4096: rows from the top and from the middle of the same A."""
    values = data.signed(rng, mode, (LARGEST, K), (K, N))
    a, b = (lab.place(x) for x in values)
    # By default K is split for few rows, and their bits are others: else this would show nothing.
    # Of the modes for contiguous k, no K is split: rows of several tiles are what must agree.
    whole_k = lab.family == "sm90_wgmma" and mode.name in (*FP8_MODES, "tf32")
    if lab.on_gpu and mode.accumulator not in ("float16", "int32") and not whole_k:
        plan = tcgemm.plan(
            rows_of(a, 0, 1), b.array, **{**arguments(mode), "determinism": "run_to_run"}
        )
        assert plan.split_k > 1
    expected = None
    for m in reversed(ROWS):
        for first in {0, 7 * m % (LARGEST - m + 1)}:
            out = lab.place_output((m, N), mode.sum_output)
            plan = tcgemm.plan(rows_of(a, first, m), b.array, out=out.array, **arguments(mode))
            assert plan.family == lab.family
            plan.execute()
            if lab.on_gpu:
                cuda.synchronize()
            got = out.read("out")
            if expected is None:
                expected = bits_of(got)
            assert (bits_of(got) == expected[first : first + m]).all(), (m, first, plan.kernel)


def test_d03_batch_invariant_rows_of_every_layout(lab, mode, rng):
    """M changes leading dimensions too, and which of D and its transpose is computed."""
    k = 1300
    values, b = data.signed(rng, mode, (300, k), (k, N))
    c = round_to(rng.integers(-8, 8, (300, N)), mode.sum_output)
    orders = ((ROW, ROW, ROW), (COL, ROW, COL), (ROW, COL, COL), (COL, COL, Layout(step=2)))
    alpha, beta = (3, -2) if mode.operand == "int8" else (0.75, -1.5)
    for scalars, addend in (((alpha, 0.0), None), ((alpha, beta), c)):
        expected = None
        for m in (300, 129, 65, 64, 16, 3, 2, 1):
            for order_a, order_b, order_out in orders:
                run = lab.prepare(
                    mode,
                    values[:m],
                    b,
                    None if addend is None else addend[:m],
                    alpha=scalars[0],
                    beta=scalars[1],
                    layouts={"a": order_a, "b": order_b, "c": order_b, "out": order_out},
                    out_dtype=mode.sum_output,
                    **HOW,
                )
                got = bits_of(run.execute())
                expected = got if expected is None else expected
                assert (got == expected[:m]).all(), (m, run.plan.kernel)


def test_batch_invariant_rows_of_a_long_k(lab, mode, rng):
    """A K that is split whatever M is: all tiles deal it out in the same pieces."""
    k = 20_001
    if lab.family == "host" or mode.accumulator == "float16":
        k = 3_001  # long enough there, and for a sum in float16
    values, b = data.signed(rng, mode, (1000, k), (k, N))
    expected, kernels, parts = None, set(), set()
    for m in (1000, 300, 130, 65, 64, 16, 1):
        for order in (ROW, COL):
            layouts = {"a": order, "b": order}
            run = lab.prepare(
                mode, values[:m], b, layouts=layouts, out_dtype=mode.sum_output, **HOW
            )
            kernels.add(run.plan.kernel)
            parts.add(run.plan.split_k)
            got = bits_of(run.execute())
            expected = got if expected is None else expected
            assert (got == expected[:m]).all(), (m, run.plan.kernel, kernels)
    # Of integers any part is exact; kernels of Hopper for contiguous k have all of K.
    whole_k = lab.family == "sm90_wgmma" and mode.name in (*FP8_MODES, "tf32")
    if mode.accumulator != "int32":
        assert len(parts) == 1
        assert (parts != {1}) == (lab.on_gpu and k > 20_000 and not whole_k), parts


def test_batch_invariant_rows_by_a_single_column(lab, mode, rng):
    """One that is computed as a row: a single row of A is then the only one not transposed."""
    k = 3001
    values, b = data.signed(rng, mode, (300, k), (k, 1))
    expected = None
    for m in (300, 65, 17, 2, 1):
        for out in (ROW, Layout(pad=3)):
            how = {"layouts": {"out": out}, "out_dtype": mode.sum_output, **HOW}
            got = bits_of(lab.prepare(mode, values[:m], b, **how).execute())
            expected = got if expected is None else expected
            assert (got == expected[:m]).all(), (m, out)


def test_d04_batch_position(lab, mode, rng):
    """One product in each place of a batch, among random neighbours and among NaN."""
    m, k = 33, 1300
    a, b = data.signed(rng, mode, (m, k), (k, N))
    how = {"out_dtype": mode.sum_output, **HOW}
    alone = bits_of(lab.prepare(mode, a, b, **how).execute())
    for shape in ((1,), (2,), (3, 5), (40,)):
        others, other_b = data.signed(rng, mode, (*shape, m, k), (*shape, k, N))
        if mode.operand != "int8":
            others[::2] = np.nan
        last = tuple(size - 1 for size in shape)
        for place in {(0,) * len(shape), tuple(size // 2 for size in shape), last}:
            batch_a, batch_b = others.copy(), other_b.copy()
            batch_a[place], batch_b[place] = a, b
            layouts = {"a": Layout(batch_pad=3), "out": Layout(batch_pad=1)}
            for second, where in ((batch_b, {}), (batch_b, layouts), (b, {})):
                run = lab.prepare(mode, batch_a, second, layouts=where, **how)
                got = bits_of(run.execute())
                assert (got[place] == alone).all(), (shape, place, run.plan.kernel)


@pytest.mark.parametrize("mode", MODES.values(), ids=str)
def test_d04_batch_position_without_force(mode, monkeypatch):
    """A family that does not take every batch must not leave some to one with other bits."""
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)
    on_gpu = families.has_gpu()
    monkeypatch.setenv("TCGEMM_DEVICE", "cuda:0" if on_gpu else "cpu")
    first = next(
        f
        for f in FAMILY_MODES
        if f in families.runnable() and mode.name in FAMILY_MODES[f] and not in_halves(f, mode)
    )
    lab = Lab(tcgemm, first)
    rng = np.random.default_rng(8)
    a, b = data.signed(rng, mode, (16, 700), (700, 24))
    how = {"out_dtype": mode.sum_output, **HOW}
    alone = bits_of(lab.prepare(mode, a, b, **how).execute())
    for rank in range(1, 7):
        batch_a = np.broadcast_to(a, (*(2,) * rank, 16, 700))
        # Repeated along every other dimension: no two of them have one stride.
        batch_b = np.broadcast_to(b, (*(1 + dim % 2 for dim in range(rank)), 700, 24))
        try:
            got = bits_of(lab.prepare(mode, batch_a, batch_b, **how).execute())
        except tcgemm.NoKernelError as error:
            # Either is right, but for the plain batch, which every family takes.
            assert rank > 1, error  # noqa: PT017
            assert "other bits" in str(error)  # noqa: PT017
            continue
        assert (got == alone).all(), rank


def test_d05_pointer_class_of_batch_invariant_products(lab, mode, rng):
    """Every base offset of 0 to 15 elements and every layout: the same bits."""
    a, b = data.signed(rng, mode, (65, 700), (700, 66))
    how = {"out_dtype": mode.sum_output, **HOW}
    expected = lab.check(mode, a, b, **how).bits
    layouts = [Layout(offset=offset) for offset in range(16)]
    layouts += [COL, Layout(pad=1), Layout("col", pad=3), Layout(step=2), Layout(reverse_rows=True)]
    for layout in layouts:
        for names in (("a", "b", "out"), ("a",), ("b",), ("out",)):
            got = lab.check(mode, a, b, layouts=dict.fromkeys(names, layout), **how)
            assert (got.bits == expected).all(), (layout, names)


def test_d03_kernels_that_take_a_batch_invariant_product_agree(lab, mode, rng, monkeypatch):
    """M may choose among them: each gives the same bits, whatever its tile."""
    problems = [data.signed(rng, mode, (150, k), (k, n)) for n, k in ((N, K), (300, 130), (1, 9))]
    how = {"out_dtype": mode.sum_output, **HOW}
    expected = [bits_of(lab.prepare(mode, a, b, **how).execute()) for a, b in problems]
    accepted = 0
    for kernel in lab.force_each(monkeypatch):
        for (a, b), bits in zip(problems, expected, strict=True):
            try:
                run = lab.prepare(mode, a, b, **how)
            except tcgemm.NoKernelError:
                continue
            accepted += 1
            assert (bits_of(run.execute()) == bits).all(), kernel
    assert accepted >= len(problems)


@pytest.mark.parametrize("k", data.LONG_K)
def test_n04_positive_longk_in_few_parts(lab, mode, rng, k):
    """K is split into few parts or none: accumulators alone keep the error small."""
    if mode.accumulator == "float16":
        return  # no gate is set
    a, b = data.positive(rng, mode, (13, k), (k, 5))
    lab.check(mode, a, b, out_dtype=mode.sum_output, expect="gate", **HOW)
