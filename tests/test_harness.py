"""The harness on a stand-in for the library: it accepts a right one and notices each fault."""

import numpy as np
import pytest
from harness import COL, MODES, ROW, Lab, Layout, Mode, cuda, data, dlpack, oracle, round_to, wide
from harness.formats import FORMATS
from harness.layout import place
from harness.memory import Guarded
from harness.reference import FAULTS, ReferenceLibrary

EVERY_MODE = pytest.mark.parametrize("mode", MODES.values(), ids=str)
PADDED = {name: Layout(pad=3, offset=1) for name in ("a", "b", "c", "out")}


def stand_in(fault: str | None = None) -> Lab:
    return Lab(ReferenceLibrary(fault), "host", record=False)


def battery(lab: Lab, mode: Mode) -> None:
    """A short version of the suite: what each fault must break somewhere."""
    rng = np.random.default_rng(1)
    for m, n, k in ((17, 9, 33), (8, 16, 64), (1, 1, 1)):
        a, b = data.integers(rng, mode, (m, k), (k, n))
        c = round_to(rng.integers(-4, 4, (m, n)), mode.default_output)
        lab.check(mode, a, b, expect="exact", layouts=PADDED)
        lab.check(mode, a, b, c, alpha=2, beta=-3, expect="exact", layouts={"a": COL, "out": COL})
        nan = np.full_like(c, 77 if mode.operand == "int8" else np.nan)
        lab.check(mode, a, b, nan, expect="exact")
        bad = np.full_like(a, 77 if mode.operand == "int8" else np.nan)
        lab.check(mode, bad, b, c, alpha=0, beta=2, expect="exact")
        empty = a[:, :0], b[:0, :]
        lab.check(mode, *empty, c, beta=2, expect="exact")
    a, b = data.positive(rng, mode, (5, 4096), (4096, 7))
    lab.check(mode, a, b, out_dtype=mode.outputs[-1], expect="gate")


@EVERY_MODE
def test_a_right_library_passes(mode):
    battery(stand_in(), mode)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault):
    # FP16 operands show a fault of the output's rounding, FP32 operands all others.
    mode = MODES["fp16" if fault == "truncating_output" else "fp32"]
    with pytest.raises(AssertionError):
        battery(stand_in(fault), mode)


@EVERY_MODE
@pytest.mark.parametrize("name", data.DATA_SETS)
def test_each_data_set_is_inside_the_bounds_of_a_right_library(mode, name):
    if name not in data.data_sets(mode):
        assert mode.operand == "int8"
        return
    rng = np.random.default_rng(2)
    for k in (1, 5, 64, 257):
        a, b = data.DATA_SETS[name](rng, mode, (6, k), (k, 4))
        assert a.dtype == b.dtype == FORMATS[mode.operand].numpy
        assert np.isfinite(wide(a)).all()
        assert np.isfinite(wide(b)).all()
        gate = "gate" if name == "positive" else "bound"
        lab = stand_in()
        lab.check(mode, a, b, expect=gate, out_dtype=mode.outputs[-1])


def test_subnormal_data_show_a_flush_to_zero():
    mode = MODES["fp32"]
    a, b = data.subnormal(np.random.default_rng(3), mode, (8, 16), (16, 8))
    flushed = np.zeros((8, 8), np.float32)
    want = oracle.exact(mode, a, b, None, 1.0, 0.0)
    assert oracle.judge(mode, flushed, want, alpha=1.0, k=16, gate=False).of_hard > 1


def test_beta_multiplies_what_rounding_a_subnormal_c_loses():
    """A C of float64 that FP32, in which it is added, rounds to 0."""
    mode, beta = MODES["fp32"], 2.0**20
    a, b, c = np.zeros((1, 1), "f4"), np.zeros((1, 1), "f4"), np.array([[2.0**-150]])
    want = oracle.exact(mode, a, b, c, 1.0, beta)
    assert want.c == 2.0**-130
    lost = np.zeros((1, 1))
    assert 0.9 < oracle.judge(mode, lost, want, alpha=1.0, k=1, gate=False).of_hard <= 1
    assert oracle.judge(mode, -want.c, want, alpha=1.0, k=1, gate=False).of_hard > 1


def test_rounding_is_to_nearest_even_in_one_step():
    # Halfway between two bfloat16 numbers but for a bit that float32 can't hold.
    tie = 1 + 2.0**-8
    assert wide(round_to(tie, "bfloat16")) == 1.0
    assert wide(round_to(tie + 2.0**-40, "bfloat16")) == 1 + 2.0**-7
    assert wide(round_to(-tie - 2.0**-40, "bfloat16")) == -1 - 2.0**-7
    assert wide(round_to(1 + 2.0**-11 + 2.0**-40, "float16")) == 1 + 2.0**-10
    assert wide(round_to([65519.0, 65520.0, -1e9], "float16")).tolist() == [
        65504.0,
        np.inf,
        -np.inf,
    ]
    assert round_to([130, -129, 2**40 + 5], "int8").tolist() == [-126, 127, 5]
    assert round_to(2.0**31, "int32") == -(2**31)
    values = np.random.default_rng(4).standard_normal(10000)
    for name in ("float16", "float32"):
        assert (round_to(values, name) == values.astype(name)).all()
    bf16 = wide(round_to(values, "bfloat16"))
    assert (np.abs(bf16 - values) <= 2.0**-8 * np.abs(values)).all()


def test_overflow_is_accepted_only_near_the_range():
    mode = MODES["fp16"]
    one = round_to([[1.0]], "float16")
    for exact, got, right in (
        (65519.0, 65504.0, True),
        (65519.0, np.inf, True),  # within the error of one rounding
        (65520.0, np.inf, True),
        (70000.0, np.inf, True),
        (70000.0, 65504.0, False),
        (60000.0, np.inf, False),
        (-70000.0, np.inf, False),
    ):
        want = oracle.Exact(np.array([[exact]]), np.abs([[exact]]), 0.0)
        value = round_to([[got]], "float16")
        verdict = oracle.judge(mode, value, want, alpha=1.0, k=1, gate=False)
        assert (verdict.of_hard <= 1) == right, (exact, got, verdict)
    want = oracle.exact(mode, round_to([[np.nan]], "float16"), one, None, 1.0, 0.0)
    assert oracle.judge(mode, one, want, alpha=1.0, k=1, gate=False).of_hard > 1


LAYOUTS = (
    ROW,
    COL,
    Layout(pad=5, offset=3),
    Layout("col", pad=1, step=2),
    Layout(reverse_rows=True),
    Layout("col", reverse_rows=True, reverse_cols=True, pad=2),
    Layout(batch_pad=7),
    Layout("col", align=8, batch_pad=1, outer_batch_pad=8),
    Layout(size_one_stride=10**12),
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (1, 6), (2, 0, 4)], ids=str)
def test_values_survive_their_placement(layout, shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    operand = Guarded(shape, FORMATS["float32"], layout, on_gpu=False, values=values)
    assert (operand.array == values).all()
    assert (operand.read("a") == values).all()
    assert operand.array.ctypes.data % 4 == 0
    where = place(shape, layout)
    assert tuple(s // 4 for s in operand.array.strides) == where.strides


@pytest.mark.parametrize("offset", [-1, 4, 5, 16], ids=["before", "gap", "gap_end", "after"])
def test_a_write_beside_an_operand_is_noticed(offset):
    operand = Guarded((3, 4), FORMATS["float16"], Layout(pad=2), on_gpu=False, is_output=True)
    operand.array[...] = 1
    assert (operand.read("out") == 1).all()
    operand._memory[operand._first + offset] = 2
    with pytest.raises(AssertionError, match="outside the output"):
        operand.read("out")


@pytest.mark.parametrize("name", FORMATS)
def test_the_dlpack_producer_is_read_right_by_numpy(name):
    if name == "bfloat16" or name.startswith("float8"):
        return  # NumPy has no such DLPack dtype; the GPU tests hand over bfloat16 this way
    before = dlpack.exports_alive()
    values = np.arange(12).reshape(3, 4).astype(FORMATS[name].numpy)
    layout = Layout("col", pad=2, reverse_rows=True)
    operand = Guarded((3, 4), FORMATS[name], layout, on_gpu=False, values=values, raw=True)
    array = np.from_dlpack(operand.array)
    assert (array == values).all()
    assert dlpack.exports_alive() == before + 1
    del array
    assert dlpack.exports_alive() == before
    capsule = operand.array.__dlpack__(max_version=(1, 0))
    del capsule  # never consumed
    assert dlpack.exports_alive() == before


def test_pairwise_shapes_cover_every_pair():
    shapes = data.shapes_pairwise()
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert len({(s[first], s[second]) for s in shapes}) == len(data.DIMS) ** 2


def test_device_memory_round_trip():
    if cuda.device_count() == 0:
        pytest.skip("no GPU")
    memory = cuda.DeviceMemory(1000)
    image = np.arange(1000, dtype=np.uint8)
    memory.write(image)
    assert (memory.read() == image).all()
