"""Tiles whose warps share K: every size, K around what the warps and stages of one take."""

import re

import pytest
from harness import COL, Layout
from harness.forced import (
    check,
    check_batch_invariant_is_not_taken,
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
kernel = kernels(
    "simt", lambda name: re.match("sm80_mma_f64_(unaligned_)?32x|simt_f32_sliced_k_", name)
)


def test_each_number_of_rows_and_columns(kernel):
    sizes = (1, 3, 8, 15, 16, 17, 31, 32, 33, 67)
    check_each_size(kernel, sizes, 45)


def test_each_k(kernel):
    """A warp has 8 or 16 of a k-block of 16 or 32, of which three to six are in shared memory."""
    each_k = (*range(1, 36), 63, 64, 65, 127, 128, 160, 191, 192, 193, 225, 1000)
    check_each_k(kernel, each_k, (35, 34))
    check_no_k(kernel)


def test_each_layout(kernel):
    check_each_layout(kernel, 33, 40, 70)


def test_batches_and_parts_of_k(kernel):
    mode = mode_of(kernel)
    a, b, c = operands(mode, 35, 37, 41, (30, 3))
    check(kernel, a, b, c, beta=1, expect="exact", layouts={"a": Layout(batch_pad=3)})
    check(kernel, a, b[:, :1], expect="exact", layouts={"b": COL})
    for k in (4096, 5001, 20_000):
        a, b, c = operands(mode, 35, 66, k)
        assert check(kernel, a, b, c, beta=1, expect="exact").split_k > 1


def test_what_lies_outside_is_not_multiplied(kernel):
    check_what_lies_outside(kernel, 18, 33, 45)


def test_special_values_reach_their_row_and_column_alone(kernel):
    check_special_values(kernel, 40, 50, 71, nan=(1, 22), inf=(70, 35))


def test_rounding_keeps_the_bound(kernel):
    each = ((50, 100), (50, 1037), (20, 30_000))
    check_rounding(kernel, *(((m, k), (k, 35)) for m, k in each))


def test_batch_invariant_products_are_not_taken(kernel):
    check_batch_invariant_is_not_taken(kernel, 40, 50, 100)
