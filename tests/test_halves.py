"""float32 operands in halves: which operands fit, what computes the others, and that it is decided
anew in each run."""

import dataclasses
import itertools

import numpy as np
import pytest
import tcgemm
from harness import (
    HALVES_MODES,
    MODES,
    Lab,
    Layout,
    bits_of,
    cuda,
    data,
    families,
    in_halves,
    round_to,
)

pytestmark = pytest.mark.gpu
FP32 = MODES["fp32"]
SHAPE = (130, 140, 200)  # with 7 bits of K: the spans of A and B may add up to 51 + 7


@pytest.fixture(params=sorted(HALVES_MODES))
def halves(request, monkeypatch):
    if request.param not in families.runnable():
        pytest.skip(f"no {request.param} on this machine")
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", request.param)
    return Lab(tcgemm, request.param)


@pytest.fixture
def on_cuda_cores(monkeypatch):
    """The bits that the fallback gives by itself."""

    def run(halves, a, b, **how):
        monkeypatch.setenv("TCGEMM_FORCE_FAMILY", "simt")
        expected = Lab(tcgemm, "simt").prepare(FP32, a, b, **how)
        bits = bits_of(expected.execute())
        monkeypatch.setenv("TCGEMM_FORCE_FAMILY", halves.family)
        plan = halves.prepare(FP32, a, b, **how).plan
        assert plan.fallback == expected.plan.kernel
        return bits

    return run


def operands(seed, m=SHAPE[0], n=SHAPE[1], k=SHAPE[2]):
    rng = np.random.default_rng(seed)
    a, b = data.signed(rng, FP32, (m, k), (k, n))
    # No number small enough to count, and a largest one of exponent 0 in each row and column.
    a, b = np.copysign(np.abs(a) / 2 + 0.5, a), np.copysign(np.abs(b) / 2 + 0.5, b)
    a[:, 0], b[0] = 1.5, 1.5
    return a.astype(np.float32), b.astype(np.float32)


def test_the_plan_names_both_kernels(halves):
    plan = halves.prepare(FP32, *operands(1)).plan
    assert plan.family == halves.family
    assert plan.fallback.startswith("simt_f32")
    assert f"fallback   {plan.fallback}" in str(plan)
    a, b = (x.astype(np.float16) for x in operands(1))
    assert halves.prepare(MODES["fp16"], a, b).plan.fallback == ""


def changed(which, change):
    a, b = operands(2)
    return (change(a), b) if which == "a" else (a, change(b.T).T)


def put(value, row=77, col=131):
    def change(x):
        x = x.copy()
        x[row, col] = value
        return x

    return change


# Numbers of the row of A or column of B whose largest has the exponent 0; the other operand has the
# span 28 that counts at least: 58 - 28 = 30 is the limit.
FITS = {
    "as they are": lambda x: x,
    "zeros": put(0.0),
    "a span of 30": put(1.5 * 2.0**-30),
    "rows and columns of zeros": lambda x: np.where(np.arange(len(x))[:, None] % 3 == 1, 0, x),
    "huge rows": lambda x: np.ldexp(x, 60 * (np.arange(len(x)) % 2)[:, None]),
    "tiny rows": lambda x: np.ldexp(x, -100 * (np.arange(len(x)) % 2)[:, None]),
    "subnormal rows": lambda x: np.ldexp(x, -140 * (np.arange(len(x)) % 2)[:, None]),
    "32 numbers in one row": lambda x: np.where(
        (np.arange(len(x))[:, None] == 3) & (np.arange(x.shape[1]) < 32), x, 0
    ),
}
MISFITS = {
    "Inf": put(np.inf),
    "-Inf": put(-np.inf),
    "NaN": put(np.nan),
    "NaN in the last element": put(np.nan, -1, -1),
    "a span of 31": put(1.5 * 2.0**-31),
    "a subnormal beside 1": put(2.0**-149),
    "one huge entry": put(2.0**60),
    "31 numbers in a row": lambda x: np.where(np.arange(x.shape[1]) < 31, x, 0),
    "zeros": np.zeros_like,
}


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("name", FITS)
def test_what_fits_is_computed_on_tensor_cores(halves, on_cuda_cores, which, name):
    a, b = changed(which, FITS[name])
    a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        done = halves.check(FP32, a, b)
        assert (done.bits != on_cuda_cores(halves, a, b)).any()


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_has_the_bits_of_cuda_cores(halves, on_cuda_cores, which, name):
    a, b = changed(which, MISFITS[name])
    done = halves.check(FP32, a, b)
    assert (done.bits == on_cuda_cores(halves, a, b)).all()


def test_spans_of_both_operands_add_up(halves, on_cuda_cores):
    """The low halves of two small numbers, whose product is left out, may meet."""
    a, b = operands(3)
    for span_a, span_b, fits in ((29, 29, True), (30, 29, False), (29, 30, False), (28, 30, True)):
        changed_a = put(1.25 * 2.0**-span_a)(a)
        changed_b = put(1.25 * 2.0**-span_b)(b.T).T.copy()
        done = halves.check(FP32, changed_a, changed_b)
        same = (done.bits == on_cuda_cores(halves, changed_a, changed_b)).all()
        assert same != fits, (span_a, span_b)


def test_each_run_decides_anew(halves):
    """One plan, whose operand changes under it: what an earlier run found does not stay."""
    a, b = operands(4)
    run = halves.prepare(FP32, a, b)
    fitting = bits_of(run.execute())
    for value in (np.inf, 2.0**60, np.nan):
        image = put(value, 5, 6)(a)
        misfit = bits_of(halves.prepare(FP32, image, b).execute())
        for values, expected in ((image, misfit), (a, fitting)):
            other = halves.place(values)
            run.plan.execute(a=other.array)
            cuda.synchronize()
            assert (bits_of(run.operands["out"].read("out")) == expected).all()


def test_each_replay_of_a_graph_decides_anew(halves):
    torch = pytest.importorskip("torch")
    values, b = operands(8)
    on_gpu = [torch.from_numpy(x).cuda() for x in (values, b)]
    out = torch.empty((SHAPE[0], SHAPE[1]), device="cuda")
    plan = tcgemm.plan(*on_gpu, out=out)
    assert plan.family == halves.family
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        plan.execute()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        plan.execute()
    for change in (lambda x: x, put(np.inf), lambda x: x, put(2.0**-60), lambda x: x):
        image = change(values)
        on_gpu[0].copy_(torch.from_numpy(image))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        expected = halves.prepare(FP32, image, b).execute()
        assert (bits_of(out.cpu().numpy()) == bits_of(expected)).all()


@pytest.mark.parametrize("out", FP32.outputs)
@pytest.mark.parametrize("misfit", [False, True])
def test_alpha_beta_c_and_every_output(halves, rng, out, misfit):
    m, n, _ = SHAPE
    a, b = operands(5)
    if misfit:
        a[3, 4] = 2.0**-100
    c = rng.uniform(-1, 1, (m, n)).astype(np.float32)
    c = round_to(c, out)
    for layout in (Layout(), Layout("col"), Layout(pad=3, offset=1), Layout(step=2)):
        layouts = {"c": layout, "out": layout}
        halves.check(FP32, a, b, c, alpha=-0.75, beta=1.25, out_dtype=out, layouts=layouts)
        halves.check(FP32, a, b, alpha=3.0, out_dtype=out, layouts=layouts)


def test_operands_of_any_strides_give_the_same_bits(halves):
    a, b = operands(6)
    expected = halves.check(FP32, a, b).bits
    for layout in (
        Layout("col"),
        Layout(pad=1, offset=3),
        Layout("col", pad=5, offset=1),
        Layout(step=2),
        Layout("col", step=3),
        Layout(reverse_rows=True),
        Layout(reverse_cols=True),
    ):
        for names in (("a",), ("b",), ("a", "b")):
            got = halves.check(FP32, a, b, layouts=dict.fromkeys(names, layout))
            assert (got.bits == expected).all(), (layout, names)


OTHER_DTYPES = (
    ("float32", "bfloat16"),
    ("float16", "float32"),
    ("bfloat16", "float16"),
    ("float64", "float64"),
)


@pytest.mark.parametrize("of", OTHER_DTYPES, ids="-".join)
@pytest.mark.parametrize("misfit", [False, True])
def test_operands_of_other_dtypes_are_converted_before(halves, of, misfit):
    """For the fallback, too: the bits are those of the same numbers in float32. (Which kernel that
    is depends on how they lie.)"""
    a, b = operands(7)
    if misfit:
        a[3, 4] = np.inf
    a, b = (round_to(x, name) for x, name in zip((a, b), of, strict=True))
    mode = dataclasses.replace(FP32, precision="fp32")
    expected = halves.check(mode, a.astype(np.float32), b.astype(np.float32)).bits
    for layout in (Layout(), Layout("col"), Layout(pad=1, offset=1), Layout(step=2)):
        got = halves.check(mode, a, b, layouts={"a": layout, "b": layout})
        assert (misfit and layout != Layout()) or (got.bits == expected).all(), layout
    batch = np.stack([a, a[::-1]])  # and one B for all
    expected = halves.prepare(mode, batch.astype(np.float32), b.astype(np.float32)).execute()
    assert (bits_of(halves.prepare(mode, batch, b).execute()) == bits_of(expected)).all()


def test_a_fallback_reads_operands_of_any_strides_where_they_lie(halves, rng):
    """Rows of so few numbers fit no halves, and nothing is packed for the fallback."""
    layouts = (Layout(), Layout(step=2), Layout("col", step=3), Layout(reverse_rows=True))
    for m, n, k in ((16, 16, 16), (3, 40, 30), (40, 2, 9), (100, 33, 4)):
        a, b = data.integers(rng, FP32, (50, m, k), (50, k, n))
        for of_a, of_b in itertools.product(layouts, repeat=2):
            how = {"a": of_a, "b": of_b}
            halves.check(FP32, a, b, expect="exact", layouts=how)


def test_batches_and_broadcasts(halves, rng):
    for batch_a, batch_b in (
        ((3,), (3,)),
        ((3,), ()),
        ((), (3,)),
        ((2, 3), (1, 3)),
        ((2, 1, 3, 2), (1, 2, 3, 1)),  # more dimensions than a tensor map has
    ):
        a, b = data.signed(rng, FP32, (*batch_a, 70, 100), (*batch_b, 100, 66))
        a = np.ldexp(a, rng.integers(-30, 30, (*batch_a, 70, 1))).astype(np.float32)
        b = np.ldexp(b, rng.integers(-30, 30, (*batch_b, 1, 66))).astype(np.float32)
        halves.check(FP32, a, b)
        a[..., -1, -1] = np.inf
        halves.check(FP32, a, b)


def test_powers_beyond_float32_cancel(halves, rng):
    """Rows and columns so far apart that the power of two of an element is no float32 number."""
    m, n = 70, 80
    far_apart = ((120, -120), (-120, 120), (100, -149 + 24), (-60, -66), (60, 60))
    for k, (up, down) in itertools.product((100, 9000), far_apart):  # the long one in parts
        a, b = data.signed(rng, FP32, (m, k), (k, n))
        a, b = np.ldexp(a, up).astype(np.float32), np.ldexp(b, down).astype(np.float32)
        halves.check(FP32, a, b)
    k = 100
    # The largest numbers of A meet zeros only: 2^127 2^20 would overflow, and the rest does not.
    a, b = data.signed(rng, FP32, (m, k), (k, n))
    a, b = np.ldexp(a, 100).astype(np.float32), np.ldexp(b, 20).astype(np.float32)
    a[:, 50:] = np.ldexp(a[:, 50:], 27)
    b[50:] = 0
    halves.check(FP32, a, b)


def test_long_k_and_several_waves(halves, rng):
    for m, n, k in ((129, 257, 20000), (2000, 2100, 70), (4111, 1030, 129)):
        a, b = data.positive(rng, FP32, (m, k), (k, n))
        rows = range(0, m, max(1, m // 40))
        halves.check(FP32, a, b, rows=rows, expect="gate")


def test_families_with_halves_take_their_modes_only_without_invariance(halves):
    for name in HALVES_MODES[halves.family]:
        assert in_halves(halves.family, MODES[name])
        with pytest.raises(tcgemm.NoKernelError, match="batch_invariant"):
            halves.prepare(MODES[name], *operands(7), determinism="batch_invariant")
