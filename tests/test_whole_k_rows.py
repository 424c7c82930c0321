"""The kernels for many rows of few columns: every row, column and k, in every layout."""

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
kernel = kernels("simt", lambda name: "_whole_k_" in name and name.endswith("x8"))
ALIGNED = {"pad": 16, "offset": 16}  # vectors of any dtype


def most_k(kernel):
    return 64 if mode_of(kernel).name == "fp64" else 128


def test_each_number_of_rows_and_columns(kernel):
    """Around what a lane multiplies at once, a lane, a warp and two tiles have; and transposed."""
    for few, many in itertools.product((1, 2, 4, 5, 8, 9, 17), (1, 31, 32, 33, 63, 64, 65, 257)):
        for m, n in {(few, many), (many, few)}:
            a, b, c = operands(mode_of(kernel), m, n, 16)
            for layout in (Layout(), ODD, ODD_COL, Layout(**ALIGNED), Layout("col", **ALIGNED)):
                layouts = {"a": layout, "b": layout}
                check(kernel, a, b, c, beta=-1, expect="exact", layouts=layouts)


def test_each_k(kernel):
    """Around vectors along K, lines that follow each other, and those that leave a lane one row."""
    for k in range(1, most_k(kernel) + 1):
        for m, n in ((3, 72), (130, 7)):
            a, b, _ = operands(mode_of(kernel), m, n, k)
            for layout in (Layout(), COL, ODD, Layout(**ALIGNED)):
                check(kernel, a, b, alpha=2, expect="exact", layouts={"a": layout, "b": layout})
    check_no_k(kernel)
    a, b, c = operands(mode_of(kernel), 130, 3, 1)  # rows 5 apart, of which nothing is read
    check(kernel, a[:, :0], b[:0], c, beta=2, expect="exact", layouts={"a": Layout(pad=5)})


def test_each_layout(kernel):
    """Lines in either direction; others are packed."""
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
    if mode_of(kernel).name == "int8":
        pytest.skip("integers have none")
    check_special_values(kernel, 7, 40, 23, nan=(1, 22), inf=(7, 5))


def test_rounding_keeps_the_bound(kernel):
    check_rounding(kernel, ((50, most_k(kernel)), (most_k(kernel), 6)))


def test_others_say_what_they_do_not_take(kernel):
    a, b, _ = operands(mode_of(kernel), 5, 6, 129)
    with pytest.raises(tcgemm.NoKernelError, match="K up to 128"):
        check(kernel, a, b)


def test_outputs(kernel):
    """As the operands are and as the sums; others are for other kernels."""
    mode = mode_of(kernel)
    sums = {"fp64": "float64", "int8": "int32"}.get(mode.name, "float32")
    for dtype in mode.outputs:
        for m, n, layout in itertools.product((5, 40), (6, 72), (Layout(), COL, ODD)):
            a, b, _ = operands(mode, m, n, 16)
            how = {"out_dtype": dtype, "layouts": {"out": layout}}
            if dtype in (mode.default_output, sums):
                check(kernel, a, b, **how)
            else:
                with pytest.raises(tcgemm.NoKernelError, match=f"asks for {dtype}"):
                    check(kernel, a, b, **how)
