"""Tiles of odd 16-bit elements whose K comes in steps: every size, K around steps and parts."""

import pytest
from harness.forced import (
    ODD,
    ODD_COL,
    check,
    check_batch_invariant_is_not_taken,
    check_batches,
    check_each_k,
    check_each_layout,
    check_each_size,
    check_no_k,
    check_rounding,
    check_special_values,
    check_what_lies_outside,
    kernels,
    mode_of,
    operands,
)

pytestmark = pytest.mark.gpu
kernel = kernels("sm80_mma", lambda name: "_strips_" in name)


def test_each_number_of_rows_and_columns(kernel):
    """Columns are dealt out to the warps where there are fewer rows."""
    sizes = (1, 2, 7, 15, 16, 17, 33, 64, 65, 130)
    check_each_size(kernel, sizes, 150)


def test_each_k(kernel):
    """A step is 128 k."""
    each_k = (1, 2, 15, 16, 17, 127, 128, 129, 143, 144, 145, 255, 256, 257, 384, 999, 4096)
    check_each_k(kernel, each_k, (70, 34), (5, 70))
    check_no_k(kernel)


def test_each_layout(kernel):
    check_each_layout(kernel, 33, 20, 170)
    check_each_layout(kernel, 4, 70, 130)


@pytest.mark.parametrize("output", ["float16", "bfloat16", "float32"])
def test_parts_of_k(kernel, output):
    for m, n, k in ((7, 1000, 2000), (300, 40, 5001), (17, 19, 20_000), (65, 70, 1281)):
        a, b, c = operands(mode_of(kernel), m, n, k)
        how = {"expect": "exact", "out_dtype": output}
        assert check(kernel, a, b, **how).split_k > 1
        check(kernel, a, b, layouts={"a": ODD, "b": ODD_COL, "out": ODD_COL}, **how)
    a, b, c = operands(mode_of(kernel), 9, 40, 1500)
    check(kernel, a, b, c, beta=1, expect="exact", layouts={"a": ODD})


def test_batches(kernel):
    check_batches(kernel, 35, 37, 141, (30, 3))
    a, b, c = operands(mode_of(kernel), 3, 70, 1300, (2, 3))
    assert check(kernel, a, b, c, beta=1, expect="exact").split_k > 1


def test_what_lies_outside_is_not_multiplied(kernel):
    check_what_lies_outside(kernel, 18, 33, 145)
    check_what_lies_outside(kernel, 3, 70, 1301)


def test_special_values_reach_their_row_and_column_alone(kernel):
    check_special_values(kernel, 40, 50, 271, nan=(1, 22), inf=(270, 35))


def test_rounding_keeps_the_bound(kernel):
    each = ((50, 35, 100), (50, 35, 1037), (20, 70, 30_001))
    check_rounding(kernel, *(((m, k), (k, n)) for m, n, k in each))


def test_batch_invariant_products_are_not_taken(kernel):
    check_batch_invariant_is_not_taken(kernel, 40, 50, 200)
