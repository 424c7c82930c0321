"""The kernels for a short K and many rows and columns: every size, alignment of D, and layout."""

import itertools

import pytest
import tcgemm
from harness import COL, Layout
from harness.forced import (
    ODD,
    ODD_COL,
    check,
    check_batch_invariant_is_not_taken,
    check_batches,
    check_each_k,
    check_each_layout,
    check_no_k,
    check_rounding,
    check_special_values,
    check_what_lies_outside,
    kernels,
    mode_of,
    operands,
)

pytestmark = pytest.mark.gpu
kernel = kernels("simt", lambda name: "_outer_" in name)


def test_each_number_of_rows_and_columns(kernel):
    """Around what a thread, a warp and a block have, and what is stored at a time."""
    rows = (1, 7, 8, 9, 63, 64, 65, 130)
    for m, n in itertools.product(rows, (1, 31, 32, 33, 57, 64, 65, 96, 121, 128, 129, 263)):
        a, b, c = operands(mode_of(kernel), m, n, 6)
        for layouts in ({}, {"a": ODD_COL, "b": ODD_COL, "out": ODD}):
            check(kernel, a, b, c, beta=-1, expect="exact", layouts=layouts)


def test_each_place_of_d_in_sectors(kernel):
    """Of one tile, of one that would take a second (and begins amid sectors), and of many."""
    for pad, offset, n in itertools.product(range(9), (0, 1, 3, 8), (40, 127, 1100)):
        a, b, c = operands(mode_of(kernel), 70, n, 5)
        how = {"c": Layout(pad=pad), "out": Layout(pad=pad, offset=offset)}
        check(kernel, a, b, c, beta=2, expect="exact", layouts=how)


def test_tiles_more_for_whole_sectors(kernel):
    """A large D whose last tile has nothing but the columns by which others begin earlier."""
    for n in (126, 127, 254):
        a, b, _ = operands(mode_of(kernel), 4_400_000 // n, n, 3)
        check(kernel, a, b, expect="exact", layouts={"out": ODD})


def test_each_k(kernel):
    """Around what is loaded together, and multiplied together; and all of it."""
    check_each_k(kernel, (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 32), (72, 90), (90, 35))
    check_no_k(kernel)


def test_blocks_of_many_tiles(kernel):
    """Up to 16, the most there are, and a row in the last one."""
    for m, n, k in ((270_401, 40, 3), (40_001, 130, 17), (40, 270_401, 2)):
        a, b, c = operands(mode_of(kernel), m, n, k)
        check(kernel, a, b, c, beta=1, expect="exact")
        check(kernel, a, b, expect="exact", layouts={"a": COL, "out": ODD_COL})


def test_each_layout(kernel):
    """Any strides are read where they lie."""
    check_each_layout(kernel, 70, 45, 11)


def test_batches(kernel):
    check_batches(kernel, 33, 40, 11, (300, 3))
    a, b, c = operands(mode_of(kernel), 70, 35, 16, (30, 2))
    for layout in (Layout(batch_pad=1), Layout(batch_pad=8), Layout("col", batch_pad=3)):
        check(kernel, a, b, c, beta=1, expect="exact", layouts={"out": layout})


def test_what_lies_outside_is_not_multiplied(kernel):
    check_what_lies_outside(kernel, 70, 45, 13)


def test_special_values_reach_their_row_and_column_alone(kernel):
    check_special_values(kernel, 70, 140, 23, nan=(65, 22), inf=(7, 131))


def test_rounding_keeps_the_bound(kernel):
    check_rounding(kernel, ((5, 150, 32), (5, 32, 170)), alpha=0.3)


def test_others_say_what_they_do_not_take(kernel):
    a, b, _ = operands(mode_of(kernel), 5, 6, 33)
    with pytest.raises(tcgemm.NoKernelError, match="K up to 32"):
        check(kernel, a, b)
    check_batch_invariant_is_not_taken(kernel, 70, 70, 8)
    a, b, _ = operands(mode_of(kernel), 5, 6, 8)
    with pytest.raises(tcgemm.NoKernelError, match="asks for float16"):
        check(kernel, a, b, out_dtype="float16")
