"""The kernels for few rows: every row, column and k of a block, in every layout that they load."""

import itertools

import numpy as np
import pytest
import tcgemm
from harness import COL, Lab, Layout, bits_of, c_api, cuda, data, round_to, wide
from harness.forced import (
    ODD,
    ODD_COL,
    REVERSED,
    STEP,
    check,
    check_each_layout,
    check_special_values,
    check_what_lies_outside,
    kernels,
    mode_of,
    operands,
)
from harness.memory import Workspace

pytestmark = pytest.mark.gpu
kernel = kernels("simt", lambda name: name.endswith("x32x256"))


def test_each_number_of_rows_and_columns(kernel):
    """Below, at and above a block of 1 or 8 rows and 32 or 64 columns; and as columns and rows."""
    for few, many in itertools.product((1, 2, 7, 8, 9, 17), (1, 2, 31, 32, 33, 63, 65, 200)):
        for m, n in {(few, many), (many, few)}:
            a, b, c = operands(mode_of(kernel), m, n, 40)
            for layout in (ODD, ODD_COL):
                check(kernel, a, b, c, beta=-1, expect="exact", layouts={"b": layout})


def test_each_k(kernel):
    """Around the sets of 64 and 128 k that a block loads, its steps of 256, and parts of K."""
    for k in (1, 2, 31, 33, 63, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1023, 5000):
        for m, n in ((3, 70), (70, 3)):
            a, b, _ = operands(mode_of(kernel), m, n, k)
            for layout in (ODD, ODD_COL):
                check(kernel, a, b, alpha=2, expect="exact", layouts={"a": ODD, "b": layout})


def test_each_layout(kernel):
    check_each_layout(kernel, 5, 70, 300)


def test_batches(kernel):
    mode = mode_of(kernel)
    a, b, c = operands(mode, 3, 70, 300, (2, 5))
    layouts = {"a": Layout(batch_pad=3), "b": Layout("col", outer_batch_pad=7)}
    check(kernel, a, b, c, beta=1, expect="exact", layouts=layouts)
    check(kernel, a, b[:, :1], expect="exact")


def test_what_lies_outside_is_not_multiplied(kernel):
    check_what_lies_outside(kernel, 3, 33, 70)


def test_special_values_reach_their_row_and_column_alone(kernel):
    check_special_values(kernel, 3, 40, 600, nan=(1, 599), inf=(70, 5))


def test_positive_data_of_long_k_keeps_the_gate(kernel):
    mode = mode_of(kernel)
    rng = np.random.default_rng(1)
    for m, n, k in ((1, 33, 100_000), (5, 40, 30_001)):
        a, b = data.positive(rng, mode, (m, k), (k, n))
        for layout in (ODD, ODD_COL):
            check(kernel, a, b, expect="gate", layouts={"b": layout})


def test_the_workspace_holds_all_parts(kernel):
    """Tiles of 16-bit elements have 32 or 64 columns, as packing leaves the large operand."""
    mode = mode_of(kernel)
    if mode.precision is not None:
        pytest.skip("with another precision the same")
    lab, (m, n, k) = Lab(tcgemm, "simt"), (200, 1, 5000)
    a, b, _ = operands(mode, m, n, k)
    expected = round_to(wide(a) @ wide(b), mode.operand)
    for layout in (Layout(), COL, ODD, ODD_COL, STEP, REVERSED):
        problem = c_api.problem(m, n, k, mode.operand)
        placed = lab.place(a, layout), lab.place(b)
        for operand, given in zip((problem.a, problem.b), placed, strict=True):
            operand.row_stride, operand.col_stride = given.strides
            operand.alignment = a.dtype.itemsize
        plan = c_api.Plan(problem, 0)
        assert plan.status == "ok", c_api.last_error()
        assert plan.kernel == kernel
        memory = Workspace(plan.workspace_bytes, on_gpu=True)
        out = lab.place_output((m, n), mode.operand)
        pointers = [placed[0].address, placed[1].address, None, out.address]
        of_workspace = {"workspace": memory.address, "workspace_bytes": plan.workspace_bytes}
        assert plan.run(*pointers, **of_workspace) == "ok", c_api.last_error()
        cuda.synchronize()
        memory.check_guards()
        assert (bits_of(out.read("out")) == bits_of(expected)).all(), layout


def test_tf32_rounds_its_operands(kernel):
    """To nearest even, as packing does for other kernels."""
    if mode_of(kernel).name != "tf32":
        pytest.skip("another mode")
    bits = np.array([0x3F801000, 0x3F803000, 0x3F801001, 0x3F800FFF, 0xBF801000], np.uint32)
    values = bits.view(np.float32)[None]
    ones = np.eye(5, 40, dtype=np.float32)
    how = {"out_dtype": "float32", "expect": "exact"}
    assert check(kernel, values, ones, **how).kernel == kernel
    check(kernel, values, ones, layouts={"b": COL}, **how)
