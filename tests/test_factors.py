"""Scales that are numbers: as the same scales in memory, and part of alpha and beta to a kernel."""

from decimal import Decimal

import ml_dtypes
import numpy as np
import pytest
import tcgemm

FP8 = ml_dtypes.float8_e4m3fn
F32 = np.float32


def operands(dtype, rng):
    return [rng.integers(-4, 5, shape).astype(dtype) for shape in ((6, 40), (40, 5), (6, 5))]


@pytest.fixture(params=[FP8, np.int8], ids=["fp8", "int8"])
def ab(request, rng):
    return operands(request.param, rng)[:2]


@pytest.mark.parametrize("as_number", [float, np.float32, np.float16, Decimal])
def test_a_number_gives_what_an_array_gives(ab, as_number):
    scales = {"scale_a": 0.5, "scale_b": 4.0, "scale_d": 0.25}
    arrays = {name: np.array(value, F32) for name, value in scales.items()}
    want = tcgemm.gemm(*ab, alpha=3.0, **arrays)
    assert want.dtype == F32
    numbers = {name: as_number(value) for name, value in scales.items()}
    got = tcgemm.gemm(*ab, alpha=3.0, **numbers)
    assert got.dtype == F32
    assert (got == want).all()


def test_factors_are_multiplied_in_double(ab):
    want = tcgemm.gemm(*ab, alpha=3.0, scale_a=0.001)
    assert (tcgemm.gemm(*ab, alpha=np.float16(3), scale_a=0.001) == want).all()


def test_which_products_take_numbers(rng):
    half = operands(np.float16, rng)[:2]
    eight = operands(np.int8, rng)[:2]
    words = r"precision is None \(the default\); only products of .* scales: multiply alpha by it$"
    with pytest.raises(tcgemm.InvalidArgument, match=words):
        tcgemm.gemm(*half, scale_a=0.5)
    with pytest.raises(tcgemm.InvalidArgument, match=words):  # the first that is given
        tcgemm.gemm(*half, scale_a=0.5, scale_d=2.0)
    for name in ("scale_a", "scale_b", "scale_d"):
        for scale in (0.5, np.array(0.5, F32)):
            words = rf"^{name} is .* precision (is )?fp32; only .* fp8_e5m2 take scales: leave prec"
            with pytest.raises(tcgemm.InvalidArgument, match=words):
                tcgemm.gemm(*eight, precision="fp32", **{name: scale})
    for which, operand, shape in (("scale_a", "A", (6, 1)), ("scale_b", "B", (1, 5))):
        words = f"{which} is given, .*: multiply operand {operand} by it$"
        with pytest.raises(tcgemm.InvalidArgument, match=words):
            tcgemm.gemm(*half, **{which: np.ones(shape, F32)})
    for name in ("scale_a", "scale_b", "scale_d"):
        for scale in (0.5, np.array(0.5, F32)):
            with pytest.raises(tcgemm.InvalidArgument, match=f"{name} is given.*multiply alpha"):
                tcgemm.gemm(*half, **{name: scale})
            with pytest.raises(tcgemm.InvalidArgument, match="int32, which is exact and unscaled"):
                tcgemm.gemm(*eight, out_dtype="int32", **{name: scale})


@pytest.mark.parametrize(
    "scale", [1j, np.complex64(1), np.str_("3"), np.datetime64(3, "s"), np.bytes_(b"3")]
)
def test_what_is_no_real_number_is_named(ab, scale):
    with pytest.raises(tcgemm.DTypeError, match=r"scale_b is .*(real number|pass an array)"):
        tcgemm.gemm(*ab, scale_b=scale)
    with pytest.raises(tcgemm.DTypeError, match=r"alpha is .*real number"):
        tcgemm.gemm(*ab, alpha=scale, scale_b=2.0)


def test_what_is_masked_is_no_factor(ab):
    for name in ("alpha", "beta"):
        with pytest.raises(tcgemm.DTypeError, match=f"{name} is masked; it must be a real number"):
            tcgemm.gemm(*ab, np.zeros((6, 5), np.int32), **{name: np.ma.masked})
    with pytest.raises(tcgemm.DTypeError, match="scale_a is a masked array"):
        tcgemm.gemm(*ab, scale_a=np.ma.masked)


@pytest.mark.parametrize("name", ["scale_a", "scale_d"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_scales_of_another_dtype_are_told_the_cast(ab, name, dtype):
    words = rf"^{name} is {dtype}; scales are float32: pass {name}\.astype\(numpy\.float32\)$"
    with pytest.raises(tcgemm.DTypeError, match=words):
        tcgemm.gemm(*ab, **{name: np.array(2, dtype)})


def test_a_torch_scalar_is_a_factor(ab):
    torch = pytest.importorskip("torch")
    want = tcgemm.gemm(*ab, alpha=2.0, scale_a=3.0)
    assert (tcgemm.gemm(*ab, alpha=torch.tensor(2.0), scale_a=3.0) == want).all()
    for value in (2 + 1j, 2 + 0j):
        with pytest.raises(tcgemm.DTypeError, match=r"alpha is tensor.*must be a real number"):
            tcgemm.gemm(*ab, alpha=torch.tensor(value))
    with pytest.raises(tcgemm.DTypeError, match=r"alpha is tensor.*must be a real number"):
        tcgemm.gemm(*ab, alpha=torch.tensor([[2.0]]))
    learned = torch.tensor(2.0, requires_grad=True)
    for name in ("alpha", "beta"):
        with pytest.raises(tcgemm.DTypeError, match=f"{name} requires a gradient"):
            tcgemm.gemm(*ab, **{name: learned})
    with torch.no_grad():
        assert (tcgemm.gemm(*ab, alpha=learned, scale_a=3.0) == want).all()


@pytest.mark.parametrize("scale", [[2.0], memoryview(b"2")])
def test_what_has_a_length_is_no_number(ab, scale):
    with pytest.raises(tcgemm.DTypeError, match=r"scale_a is a .*numpy\.asarray\(scale_a\)"):
        tcgemm.gemm(*ab, scale_a=scale)


def test_numbers_that_no_float_holds(ab):
    with pytest.raises(tcgemm.InvalidArgument, match="scale_a is a number beyond"):
        tcgemm.gemm(*ab, scale_a=10**400)
    with pytest.raises(tcgemm.DTypeError, match="alpha is 'x'"):
        tcgemm.gemm(*ab, alpha="x", scale_a=2.0)
    with pytest.raises(tcgemm.DTypeError, match=r"alpha has no value .* must be a real"):
        tcgemm.gemm(*ab, alpha=Decimal("sNaN"))
    with pytest.raises(tcgemm.DTypeError, match=r"alpha is \[0, 1, .*must be a real") as raised:
        tcgemm.gemm(*ab, alpha=list(range(10**5)))
    assert len(str(raised.value)) < 300
    with pytest.raises(tcgemm.DTypeError, match=r"alpha is a list; it must be a real number"):
        tcgemm.gemm(*ab, alpha=[10**5000])  # which has no repr


def test_what_stands_before_an_unread_operand_stays_0(rng):
    a, b, c = operands(FP8, rng)
    c = c.astype(F32)
    for scale in (np.inf, np.nan):
        assert (tcgemm.gemm(a, b, c, alpha=0.0, beta=1.0, scale_a=scale) == c).all()
        unread = np.full_like(c, np.nan)
        got = tcgemm.gemm(np.ones_like(a), np.ones_like(b), unread, beta=0.0, scale_d=scale)
        assert np.isinf(got).all() if scale == np.inf else np.isnan(got).all()


def test_a_plan_keeps_them(rng):
    a, b, c = operands(FP8, rng)
    c = c.astype(F32)
    exact = a.astype(F32) @ b.astype(F32)
    plan = tcgemm.plan(a, b, c, beta=1.0, scale_a=2.0, scale_d=0.5)
    assert (plan.execute() == 0.5 * (2 * exact + c)).all()
    assert (plan.execute(alpha=3.0, beta=2.0) == 0.5 * (6 * exact + 2 * c)).all()
    assert (plan.execute(scale_a=4) == 0.5 * (4 * exact + c)).all()
    assert (plan.execute() == 0.5 * (2 * exact + c)).all()
    with pytest.raises(tcgemm.InvalidArgument, match="scale_b is a number, but the plan"):
        plan.execute(scale_b=2.0)
    with pytest.raises(tcgemm.InvalidArgument, match="scale_a is an array, but the plan was made"):
        plan.execute(scale_a=np.array(2.0, F32))
