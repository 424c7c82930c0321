"""matmul and gemm in every framework: shapes, dtypes, outputs, broadcasting, layouts, overlap."""

import enum

import numpy as np
import pytest
import tcgemm
from frameworks import each_place, integers, numpy_dtype
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPES = [
    # a, b
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (6, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((1, 1), (1, 1)),
    ((3, 0), (0, 5)),
    ((0, 4), (4, 5)),
    ((3, 4), (4, 0)),
    ((0,), (0,)),
    ((0, 3, 4), (4, 5)),
    ((1, 3, 4), (0, 4, 5)),
]


@each_place()
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_matmul_has_the_shapes_of_numpy(place, a_shape, b_shape):
    a, b = integers(a_shape), integers(b_shape, 1)
    result = tcgemm.matmul(place.array(a), place.array(b))
    assert place.owns(result)
    assert tuple(result.shape) == np.matmul(a, b).shape
    assert place.dtype_name(result) == "float32"
    np.testing.assert_array_equal(place.to_numpy(result), a @ b)


@each_place()
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_each_dtype(place, dtype):
    a, b = integers((17, 33)), integers((33, 9), 1)
    result = tcgemm.matmul(place.array(a, dtype), place.array(b, dtype))
    assert place.dtype_name(result) == ("int32" if dtype == "int8" else dtype)
    expected = (a @ b).astype(numpy_dtype("int32" if dtype == "int8" else dtype))
    np.testing.assert_array_equal(place.to_numpy(result), expected.astype(np.float64))


@each_place(lambda framework, device: framework != "jax")
def test_float64(place):
    a = integers((5, 6)) + 2.0**-40
    result = tcgemm.matmul(place.array(a, "float64"), place.array(np.eye(6), "float64"))
    assert place.dtype_name(result) == "float64"
    np.testing.assert_array_equal(place.to_numpy(result), a)


@each_place(lambda framework, device: framework == "jax")
def test_float64_of_jax_is_never_narrowed_in_silence(place):
    a = place.array(np.eye(3))
    with pytest.raises(tcgemm.DTypeError, match="jax_enable_x64"):
        tcgemm.matmul(a, a, out_dtype="float64")
    with place.module.enable_x64(True):
        assert place.dtype_name(tcgemm.matmul(a, a, out_dtype="float64")) == "float64"


class Named(str, enum.Enum):  # noqa: UP042 (str() of a StrEnum is its value)
    """Strings whose str() is another one."""

    SINGLE = "float32"


# A dtype, or where to find one.
OUT_DTYPES = {
    "float16": ["float16", "half", np.float16, np.dtype(np.float16)],
    "bfloat16": ["bfloat16"],
    "float32": ["float32", "f4", np.float32, np.str_("float32"), Named.SINGLE],
    "float64": ["float64", float, np.float64],
}
for _name, _spellings in OUT_DTYPES.items():
    _spellings += [(module, _name) for module in ("torch", "jax.numpy", "ml_dtypes")]
del OUT_DTYPES["float64"][-2]  # jax.numpy.float64 is float32 by default


@pytest.mark.parametrize(
    ("name", "spelling"), [(n, s) for n, spellings in OUT_DTYPES.items() for s in spellings]
)
@each_place(lambda framework, device: framework != "jax")
def test_out_dtype_in_every_spelling(place, name, spelling):
    if isinstance(spelling, tuple):
        spelling = getattr(pytest.importorskip(spelling[0]), spelling[1], name)
    place.empty((1,), name)  # skips where the framework does not have it
    a = place.array(integers((4, 4)), "float16")
    result = tcgemm.matmul(a, a, out_dtype=spelling)
    assert place.dtype_name(result) == name
    np.testing.assert_array_equal(place.to_numpy(result), integers((4, 4)) @ integers((4, 4)))


@pytest.mark.parametrize(
    ("a_dtype", "b_dtype", "expected"),
    [
        ("float16", "bfloat16", "float32"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float32", "float32"),
        ("float32", "float64", "float64"),
    ],
)
def test_default_out_dtype_holds_both_operands(a_dtype, b_dtype, expected):
    a = integers((4, 4)).astype(numpy_dtype(a_dtype))
    b = integers((4, 4), 1).astype(numpy_dtype(b_dtype))
    assert tcgemm.matmul(a, b).dtype == expected
    assert tcgemm.matmul(b, a).dtype == expected


def test_default_out_dtype_does_not_follow_the_precision():
    a = np.eye(4, dtype=np.float32)
    for precision in ("fp16", "bf16", "fp32", "fp64"):
        assert tcgemm.matmul(a, a, precision=precision).dtype == np.float32
    eight = np.eye(4, dtype=np.int8)
    assert tcgemm.matmul(eight, eight, precision="fp32").dtype == np.float32


def test_int8_with_fp8_gives_float16_where_that_is_named():
    """The hint of the error without a precision works as it stands."""
    eight = integers((4, 4)).astype(np.int8)
    narrow = integers((4, 4), 1).astype(numpy_dtype("float8_e4m3fn"))
    for a, b in ((eight, narrow), (narrow, eight)):
        with pytest.raises(tcgemm.DTypeError, match=r"name precision fp16$"):
            tcgemm.matmul(a, b)
        result = tcgemm.matmul(a, b, precision="fp16")
        assert result.dtype == np.float16
        np.testing.assert_array_equal(result, a.astype(float) @ b.astype(float))


@each_place(lambda framework, device: framework != "jax")
def test_out_is_filled_and_returned(place):
    a, b = integers((2, 3, 4)), integers((4, 5), 1)
    out = place.empty((2, 3, 5))
    assert tcgemm.matmul(place.array(a), place.array(b), out=out) is out
    np.testing.assert_array_equal(place.to_numpy(out), a @ b)


@each_place(lambda framework, device: framework != "jax")
def test_out_with_gaps_leaves_them_alone(place):
    """Every second row and column of a larger array, as `out` and as `c`."""
    a, b = integers((3, 4)), integers((4, 5), 1)
    room = place.empty((6, 10))
    tcgemm.gemm(
        place.array(a), place.array(b), room[::2, ::2], beta=1.0, alpha=2.0, out=room[::2, ::2]
    )
    result = place.to_numpy(room)
    np.testing.assert_array_equal(result[::2, ::2], 2 * (a @ b) + 77)
    assert (result[1::2] == 77).all()
    assert (result[:, 1::2] == 77).all()


@each_place(lambda framework, device: framework == "jax")
def test_jax_arrays_are_never_written(place):
    a, out = place.array(integers((4, 4))), place.array(np.ones((4, 4)))
    with pytest.raises(tcgemm.DTypeError, match="out is a JAX array, which is immutable"):
        tcgemm.matmul(a, a, out=out)
    kept = np.asarray(out).copy()
    tcgemm.gemm(a, a, out, beta=1.0)
    np.testing.assert_array_equal(out, kept)


@each_place(lambda framework, device: framework == "jax")
def test_jax_tracers_are_refused(place):
    with pytest.raises(tcgemm.DTypeError, match="outside jit"):
        place.module.jit(lambda x: tcgemm.matmul(x, x))(place.array(np.eye(3)))


# ---- gemm ----


@each_place()
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("c_shape", [(2, 3, 5), (3, 5), (5,), (3, 1), (1, 1, 1), (), (2, 1, 5)])
def test_gemm(place, trans_a, trans_b, c_shape):
    a, b, c = integers((2, 3, 4)), integers((4, 5), 1), integers(c_shape, 2)
    result = tcgemm.gemm(
        place.array(a.swapaxes(-1, -2) if trans_a else a),
        place.array(b.swapaxes(-1, -2) if trans_b else b),
        place.array(c),
        alpha=2.0,
        beta=-3.0,
        trans_a=trans_a,
        trans_b=trans_b,
    )
    assert place.owns(result)
    np.testing.assert_array_equal(place.to_numpy(result), 2 * (a @ b) - 3 * c)


@each_place(lambda framework, device: framework != "jax")
def test_gemm_in_place(place):
    a, c = place.array(integers((4, 4))), place.array(integers((4, 4), 2))
    assert tcgemm.gemm(a, a, c, beta=0.5, out=c) is c
    expected = integers((4, 4)) @ integers((4, 4)) + 0.5 * integers((4, 4), 2)
    np.testing.assert_array_equal(place.to_numpy(c), expected)


@each_place(lambda framework, device: framework != "jax")
def test_b06_overlap_out(place):
    """An `out` that shares memory with what is read is refused, or is c itself."""
    room = place.array(integers((8, 16)))
    before = place.to_numpy(room)
    a, b = room[:4, :4], room[4:, :4]
    for out in (a, b, room[2:6, 2:6], room[:4, 3:7]):
        with pytest.raises(tcgemm.LayoutError, match=r"out may share memory with [ab]"):
            tcgemm.matmul(a, b, out=out)
    with pytest.raises(tcgemm.LayoutError, match="out may share memory with c but is not c itself"):
        tcgemm.gemm(a, b, room[:4, 8:12], beta=1.0, out=room[:4, 9:13])
    np.testing.assert_array_equal(place.to_numpy(room), before)
    # Beside each other in one matrix: nothing is shared.
    tcgemm.matmul(a, b, out=room[:4, 4:8])
    np.testing.assert_array_equal(place.to_numpy(room)[:4, 4:8], before[:4, :4] @ before[4:, :4])


def test_b04_outputs_that_share_addresses_are_refused():
    a = np.eye(4, dtype=np.float32)
    memory = np.zeros(16, np.float32)
    for strides in ((0, 4), (4, 0), (4, 4), (8, 4)):
        out = np.lib.stride_tricks.as_strided(memory, (4, 4), strides)
        with pytest.raises(tcgemm.LayoutError, match="share an address"):
            tcgemm.matmul(a, a, out=out)
    assert not memory.any()


@each_place(lambda framework, device: framework in ("numpy", "cupy"))
def test_b04_negative_and_zero_strides(place):
    a, b = integers((3, 4)), integers((4, 5), 1)
    left, right = place.array(a), place.array(b)
    cases = [
        (left[::-1], a[::-1], right, b),
        (left[:, ::-1], a[:, ::-1], right[::-1, ::-1], b[::-1, ::-1]),
    ]
    rows = place.module.broadcast_to(place.array(b[:1]), (4, 5))
    cases.append((left, a, rows, np.broadcast_to(b[:1], (4, 5))))
    cube = place.module.broadcast_to(left, (6, 3, 4))
    cases.append((cube, np.broadcast_to(a, (6, 3, 4)), right, b))
    for x, x_values, y, y_values in cases:
        result = tcgemm.matmul(x, y)
        np.testing.assert_array_equal(place.to_numpy(result), x_values @ y_values)
    backwards = place.empty((3, 5))
    tcgemm.matmul(left, right, out=backwards[::-1, ::-1])
    np.testing.assert_array_equal(place.to_numpy(backwards), (a @ b)[::-1, ::-1])


def test_numpy_views_of_every_kind():
    """Records, odd strides, unaligned and byte-swapped elements: right, or refused with the fix."""
    record = np.zeros((4, 4), np.dtype([("x", "f4"), ("y", "f4")]))
    record["x"] = np.eye(4)
    np.testing.assert_array_equal(tcgemm.matmul(record["x"], record["x"]), np.eye(4))
    odd = np.zeros((4, 4), np.dtype([("x", "f4"), ("y", "i2")]))["x"]
    with pytest.raises(tcgemm.LayoutError, match=r"stride of \d+ bytes.*ascontiguousarray\(a\)"):
        tcgemm.matmul(odd, np.eye(4, dtype=np.float32))
    swapped = np.eye(4, dtype=">f4")
    with pytest.raises(tcgemm.DTypeError, match="b has swapped bytes"):
        tcgemm.matmul(np.eye(4, dtype=np.float32), swapped)
    masked = np.ma.masked_array(np.eye(4, dtype=np.float32), mask=True)
    with pytest.raises(tcgemm.DTypeError, match=r"mask.*a.filled\(0\)"):
        tcgemm.matmul(masked, masked)
    with pytest.raises(tcgemm.DTypeError, match=r"mask.*; pass an out without a mask"):
        tcgemm.matmul(masked.data, masked.data, out=masked)


def test_equal_calls_heed_what_changed_between_them(monkeypatch):
    """A call that looks like the one before it is checked anew in all that is not looks."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a, b = integers((4, 4)).astype(np.float32), integers((4, 4), 1).astype(np.float32)
    memory = np.zeros((2, 4, 4), np.float32)
    out, c = memory
    for _ in range(3):
        assert tcgemm.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(out, a @ b)
    with pytest.raises(tcgemm.LayoutError, match="out may share memory with a"):
        tcgemm.matmul(a, b, out=a)
    out.flags.writeable = False
    with pytest.raises(tcgemm.LayoutError, match="out is read-only"):
        tcgemm.matmul(a, b, out=out)
    np.testing.assert_array_equal(out, a @ b)

    # Other transposes, factors, modes and dtypes of arrays that look the same.
    np.testing.assert_array_equal(tcgemm.gemm(a, b, trans_a=True, trans_b=True), a.T @ b.T)
    np.testing.assert_array_equal(tcgemm.gemm(a, b, trans_b=True, alpha=2.0), 2 * a @ b.T)
    np.testing.assert_array_equal(tcgemm.gemm(a, b, c=a, alpha=2.0, beta=0.0), 2 * a @ b)
    np.testing.assert_array_equal(tcgemm.gemm(a, b, a), a @ b + a)  # beta is 1 beside a c
    np.testing.assert_array_equal(tcgemm.gemm(a, b, c=a, beta=1.0), a @ b + a)
    with pytest.raises(tcgemm.InvalidArgument, match="there is no c"):
        tcgemm.gemm(a, b, beta=1.0)
    with pytest.raises(tcgemm.LayoutError, match="out may share memory with c"):
        tcgemm.gemm(a, b, memory.reshape(8, 4)[2:6], beta=1.0, out=c)
    for out_dtype in ("float16", "float64", None):
        assert tcgemm.matmul(a, b, out_dtype=out_dtype).dtype == (out_dtype or "float32")
    for precision in ("fp16", "fp32", None):
        result = tcgemm.matmul(
            a + 100 + 2.0**-12, b, precision=precision
        )  # FP16 has no 2**-12 there
        assert (result == (a + 100) @ b).all() == (precision == "fp16")

    # The variables that limit the choice of kernels, and the cache of plans.
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", "no_such_family")
    with pytest.raises(tcgemm.InvalidArgument, match="no_such_family"):
        tcgemm.matmul(a, b, out=c)
    monkeypatch.setenv("TCGEMM_FORCE_FAMILY", "host")
    monkeypatch.setenv("TCGEMM_FORCE_KERNEL", "host_float64")
    with pytest.raises(tcgemm.NoKernelError, match="host_float64"):
        tcgemm.matmul(a, b, out=c)
    monkeypatch.delenv("TCGEMM_FORCE_KERNEL")
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY")
    tcgemm._core.clear_plan_cache()
    np.testing.assert_array_equal(tcgemm.matmul(a, b, out=c), a @ b)


def test_read_only_numpy_arrays_are_read():
    a = np.eye(3, dtype=np.float32)
    a.flags.writeable = False
    np.testing.assert_array_equal(tcgemm.matmul(a, a), a)
    with pytest.raises(tcgemm.LayoutError, match="out is read-only"):
        tcgemm.matmul(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), out=a)


@st.composite
def products(draw):
    """Shapes with broadcasting, and views with steps and transposed axes of either operand."""
    batch = draw(st.lists(st.integers(1, 3), max_size=3))
    m, n, k = (draw(st.integers(0, 7)) for _ in range(3))

    def operand(rows, cols):
        dims = [1 if draw(st.booleans()) else extent for extent in batch]
        shape = (*dims[draw(st.integers(0, len(dims))) :], rows, cols)
        steps = [draw(st.sampled_from([1, 2, -1, -3])) for _ in shape]
        order = draw(st.permutations(range(len(shape))))
        base = integers([shape[i] * abs(steps[i]) for i in order], draw(st.integers(0, 99)))
        view = base.astype(np.float32).transpose(np.argsort(order))
        return view[tuple(slice(None, None, step) for step in steps)]

    return operand(m, k), operand(k, n)


@settings(max_examples=200, deadline=None)
@given(products())
def test_any_views_multiply_like_numpy(pair):
    a, b = pair
    result = tcgemm.matmul(a, b)
    expected = np.matmul(a, b)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 3), max_size=4))
def test_shapes_are_accepted_exactly_where_numpy_accepts_them(a_shape, b_shape):
    a, b = np.ones(a_shape, np.float32), np.ones(b_shape, np.float32)
    try:
        expected = np.matmul(a, b)
    except ValueError:
        with pytest.raises(tcgemm.ShapeError):
            tcgemm.matmul(a, b)
    else:
        result = tcgemm.matmul(a, b)
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)
