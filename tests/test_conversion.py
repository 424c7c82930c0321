"""Rounding on the way in and on the way out: to nearest even, once, for each pair of dtypes."""

import numpy as np
import pytest
from harness import (
    MODES,
    SIXTEEN_BIT_FAMILIES,
    Layout,
    Mode,
    data,
    in_halves,
    oracle,
    round_to,
    takes,
    wide,
)
from harness.formats import FORMATS
from harness.modes import FLOAT_OUTPUTS, U32

FLOATS = FLOAT_OUTPUTS


def ties(rng, to, count):
    """Values on and beside the midpoints between numbers of `to`, as float64."""
    fmt = FORMATS[to]
    base = wide(round_to(rng.standard_normal(count) * 2.0 ** rng.integers(-8, 8, count), to))
    ulp = 2 * fmt.unit_roundoff * 2.0 ** np.floor(np.log2(np.abs(base)))
    beside = rng.choice([0.0, 2.0**-20, -(2.0**-20), 2.0**-30, -(2.0**-30)], count)
    return base + ulp * (0.5 + beside)


def conversion(operand, precision, compute):
    return Mode(
        f"{operand}_as_{precision}",
        operand,
        compute,
        "float64" if compute == "float64" else "float32",
        lambda k: 2 * k * U32,
        precision=precision,
    )


PRECISIONS = (("fp16", "float16"), ("bf16", "bfloat16"), ("fp32", "float32"), ("fp64", "float64"))
# The mode that shows whether a family takes such a precision.
MODE_OF = {"fp16": "fp32_as_fp16", "bf16": "fp32_as_bf16", "fp32": "fp64_as_fp32", "fp64": "fp64"}


def taken(family, precision):
    mode = MODES[MODE_OF[precision]]
    return takes(family, mode) and not in_halves(family, mode)


@pytest.mark.parametrize("operand", FLOATS)
@pytest.mark.parametrize(("precision", "compute"), PRECISIONS, ids=lambda x: x)
def test_operands_are_rounded_to_nearest_even_once(lab, operand, precision, compute):
    """A times the identity is A rounded: ties, numbers beside ties, overflow, subnormals, NaN."""
    if not taken(lab.family, precision):
        return  # refused, as test_registry.py shows for each mode
    rng = np.random.default_rng(11)
    mode = conversion(operand, precision, compute)
    values = np.concatenate(
        [
            ties(rng, compute, 900),
            ties(rng, "float16", 100),
            rng.standard_normal(100) * FORMATS[compute].smallest * 20,
        ]
    )
    a = round_to(values, operand).reshape(-1, 20)
    eye = np.eye(20)
    widest = "float64" if compute == "float64" else "float32"
    expected = wide(round_to(wide(a), compute))
    for layout in (Layout(), Layout("col"), Layout(pad=1), Layout(offset=1, step=2)):
        layouts = {"a": layout}
        run = lab.prepare(mode, a, round_to(eye, operand), out_dtype=widest, layouts=layouts)
        assert (wide(run.execute()) == expected).all()
        run = lab.prepare(
            mode, round_to(eye, operand), a.T, out_dtype=widest, layouts={"b": layout}
        )
        assert (wide(run.execute()) == expected.T).all()
    special = round_to([[np.inf], [-np.inf], [np.nan], [1e6], [-1e39]], operand)
    run = lab.prepare(mode, special, round_to([[1.0]], operand), out_dtype=widest)
    with np.errstate(all="ignore"):
        wanted = wide(round_to(wide(special), compute))
    assert np.array_equal(wide(run.execute()), wanted, equal_nan=True)


@pytest.mark.modes(only=lambda mode: mode.operand != "int8" and mode.accumulator != "float16")
def test_outputs_are_rounded_to_nearest_even_once(lab, mode, rng):
    """Sums of two exact products that fall on and beside midpoints of the output's numbers."""
    for out in mode.outputs:
        holder = FORMATS[mode.accumulator]
        if holder.unit_roundoff >= FORMATS[out].unit_roundoff:
            continue  # nothing is rounded on the way out
        high = wide(round_to(rng.uniform(1, 2, (40, 1)), "bfloat16"))
        high = wide(round_to(high, mode.operand))
        half = FORMATS[out].unit_roundoff  # half a step for numbers in [1, 2)
        for extra in (0.0, 2.0**-10, -(2.0**-10)):
            low = np.full((40, 1), half * (1 + extra))
            a = round_to(np.hstack([high, np.ones((40, 1))]), mode.operand)
            b = round_to(np.array([[1.0], [0.0]]), mode.operand)
            # The second product is exact in each operand dtype: 2^-x (1 + 2^-10) fits FP16.
            b[1] = round_to([half], mode.operand)
            a[:, 1] = round_to(low[:, 0] / half, mode.operand)
            lab.check(mode, a, b, out_dtype=out, expect="exact")


@pytest.mark.parametrize("first", FLOATS)
@pytest.mark.parametrize("second", FLOATS)
def test_mixed_operands_are_computed_in_what_holds_both(lab, first, second):
    if lab.family in SIXTEEN_BIT_FAMILIES:
        return  # equal FP16 operands only, see FAMILY_MODES
    if first == second:
        compute = first
    elif "float64" in (first, second):
        compute = "float64"
    else:
        compute = "float32"
    rng = np.random.default_rng(12)
    names = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    mode = MODES[names[compute]]
    a = round_to(rng.uniform(-1, 1, (33, 40)), first)
    b = round_to(rng.uniform(-1, 1, (40, 17)), second)
    run = lab.prepare(mode, a, b, out_dtype=compute)
    assert run.plan.precision == names[compute]
    want = oracle.exact(mode, a, b, None, 1.0, 0.0)
    got = run.execute()
    assert oracle.judge(mode, got, want, alpha=1.0, k=40, gate=False).of_hard <= 1


@pytest.mark.parametrize(("precision", "compute"), PRECISIONS, ids=lambda x: x)
def test_int8_operands_with_a_float_precision(lab, precision, compute):
    if not taken(lab.family, precision):
        return
    rng = np.random.default_rng(13)
    mode = conversion("int8", precision, compute)
    a, b = data.integers(rng, mode, (33, 40), (40, 17))
    for out in ("float32", "float64"):
        lab.check(mode, a, b, out_dtype=out, expect="exact", layouts={"a": Layout("col")})


@pytest.mark.modes(only=lambda mode: mode.precision is not None)
def test_packing_takes_every_layout(lab, mode, rng):
    """Operands that are converted first, from rows, columns, gaps, reversals and broadcasts."""
    a, b = data.integers(rng, mode, (2, 65, 70), (2, 70, 33))
    for layout in (
        Layout("col"),
        Layout(pad=3, offset=1),
        Layout(step=2),
        Layout("col", step=3, pad=1),
        Layout(reverse_rows=True),
        Layout(reverse_cols=True, batch_pad=7),
    ):
        for name in ("a", "b"):
            lab.check(mode, a, b, expect="exact", layouts={name: layout})
    same = np.broadcast_to(a[:1], a.shape)
    lab.check(mode, same, b, expect="exact", layouts={"a": Layout(broadcast_batch=True)})
