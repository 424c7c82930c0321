"""The kernels for few rows and a short K: every row, column and k, in every layout they load."""

import itertools

import pytest
import tcgemm
from harness import COL, Layout
from harness.forced import (
    ODD,
    ODD_COL,
    REVERSED,
    STEP,
    check,
    check_batches,
    check_no_k,
    check_rounding,
    check_special_values,
    kernels,
    mode_of,
    operands,
)

pytestmark = pytest.mark.gpu
kernel = kernels("simt", lambda name: "_short_k_" in name)
ALIGNED = {"pad": 8, "offset": 8}  # vectors of any dtype


def test_each_number_of_rows_and_columns(kernel):
    """Around 4 and 8 rows, what a thread, a warp and a block have of columns; and turned."""
    for few, many in itertools.product((1, 3, 4, 5, 8, 9, 17), (1, 2, 31, 33, 120, 128, 257, 1030)):
        for m, n in {(few, many), (many, few)}:
            a, b, c = operands(mode_of(kernel), m, n, 16)
            for layout in (ODD, ODD_COL, Layout(**ALIGNED), Layout("col", **ALIGNED)):
                layouts = {"a": layout, "b": layout}
                check(kernel, a, b, c, beta=-1, expect="exact", layouts=layouts)


def test_each_k(kernel):
    """Around the sets of 8 k that a thread loads, and the 96 that A is read for."""
    for k in (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 95, 96, 97, 104, 105, 192, 193, 256):
        for m, n in ((3, 72), (72, 7)):
            a, b, _ = operands(mode_of(kernel), m, n, k)
            for layout in (ODD, ODD_COL, Layout(**ALIGNED), Layout("col", **ALIGNED)):
                check(kernel, a, b, alpha=2, expect="exact", layouts={"a": layout, "b": layout})
    check_no_k(kernel)


def test_each_layout(kernel):
    """Any strides are read where they lie."""
    layouts = (Layout(), COL, ODD, ODD_COL, REVERSED, Layout("col", reverse_cols=True), STEP)
    for of_a, of_b in itertools.product(layouts, repeat=2):
        for of_d in (Layout(), COL, ODD_COL, STEP):
            for m, n in ((6, 40), (40, 6)):
                a, b, c = operands(mode_of(kernel), m, n, 24)
                how = {"a": of_a, "b": of_b, "c": of_d, "out": of_d}
                check(kernel, a, b, c, alpha=-1, beta=2, expect="exact", layouts=how)


def test_batches(kernel):
    check_batches(kernel, 3, 40, 11, (3000, 3))
    a, b, c = operands(mode_of(kernel), 40, 3, 16, (300, 2))
    check(kernel, a, b, c, beta=1, expect="exact")


def test_long_thin_matrices(kernel):
    a, b, _ = operands(mode_of(kernel), 100_001, 3, 3)
    check(kernel, a, b, expect="exact")
    check(kernel, b.T.copy(), a.T.copy(), expect="exact")


def test_what_lies_outside_is_not_multiplied(kernel):
    """A matrix within another of NaN and infinity."""
    for order, filler in itertools.product(("row", "col"), (0xFF, 0x7F)):
        for m, n, k in ((5, 40, 21), (40, 5, 16), (8, 40, 16)):
            a, b, _ = operands(mode_of(kernel), m, n, k)
            for gap in ({"pad": 3, "offset": 1}, ALIGNED):
                layouts = dict.fromkeys(("a", "b"), Layout(order, **gap))
                check(kernel, a, b, expect="exact", layouts=layouts, filler=filler)


def test_special_values_reach_their_row_and_column_alone(kernel):
    check_special_values(kernel, 7, 40, 23, nan=(1, 22), inf=(7, 5))


def test_rounding_keeps_the_bound(kernel):
    check_rounding(kernel, ((50, 5, 256), (50, 256, 70)))


def test_others_say_what_they_do_not_take(kernel):
    a, b, _ = operands(mode_of(kernel), 5, 6, 257)
    with pytest.raises(tcgemm.NoKernelError, match="K up to 256"):
        check(kernel, a, b)


def test_outputs(kernel):
    """As the operands are and as the sums; others are for other kernels."""
    mode = mode_of(kernel)
    sums = "float64" if mode.name == "fp64" else "float32"
    for dtype in mode.outputs:
        for m, n, layout in itertools.product((5, 40), (6, 72), (Layout(), COL, ODD)):
            a, b, _ = operands(mode, m, n, 16)
            how = {"out_dtype": dtype, "layouts": {"out": layout}}
            if dtype in (mode.default_output, sums):
                check(kernel, a, b, **how)
            else:
                with pytest.raises(tcgemm.NoKernelError, match=f"asks for {dtype}"):
                    check(kernel, a, b, **how)
