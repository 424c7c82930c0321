"""The kernels for a whole K: every size of a tile, in every layout and alignment that they load."""

import pytest
import tcgemm
from harness.forced import (
    ODD,
    ODD_COL,
    check,
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
kernel = kernels("sm80_mma", lambda name: "_whole_k_" in name and "x8" not in name)


def tile_of(kernel):
    return int(kernel.rsplit("x", 1)[1])


def largest_k(kernel):
    """Of two whole tiles in 48 KB of shared memory, in lines along K or across it."""
    tile, operand = tile_of(kernel), 24_000 // 2
    item = {"fp64": 8, "fp32": 4, "tf32": 4, "int8": 1}.get(mode_of(kernel).name, 2)
    return min(128, operand // (tile * item + 48), (operand // tile - 48) // item)


def test_each_number_of_rows_and_columns(kernel):
    """Below, at and above a tile and the parts of it that a warp or an instruction has."""
    tile = tile_of(kernel)
    sizes = sorted({1, 7, 8, 15, 17, tile // 2 + 1, tile - 1, tile, tile + 1, 2 * tile + 3})
    check_each_size(kernel, sizes, 19)


def test_each_k(kernel):
    """Around what instructions multiply, up to the longest that there is room for."""
    longest = largest_k(kernel)
    each_k = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100)
    check_each_k(kernel, [k for k in each_k if k < longest], (21, 18))
    a, b, _ = operands(mode_of(kernel), 70, 70, longest)
    check(kernel, a, b, expect="exact", layouts={"a": ODD, "b": ODD_COL})
    check_no_k(kernel)


def test_each_layout(kernel):
    check_each_layout(kernel, 33, 20, 18)


def test_batches_of_more_tiles_than_are_at_work_at_once(kernel):
    check_batches(kernel, 15, 17, 11, (3000, 3))


def test_long_thin_matrices(kernel):
    a, b, _ = operands(mode_of(kernel), 100_001, 9, 13)
    check(kernel, a, b, expect="exact")
    check(kernel, b.T.copy(), a.T.copy(), expect="exact")


def test_what_lies_outside_is_not_multiplied(kernel):
    check_what_lies_outside(kernel, 18, 33, 21)


def test_special_values_reach_their_row_and_column_alone(kernel):
    if mode_of(kernel).name == "int8":
        pytest.skip("integers have none")
    check_special_values(kernel, 20, 40, 23, nan=(1, 22), inf=(7, 5))


def test_rounding_keeps_the_bound(kernel):
    k = largest_k(kernel)
    check_rounding(kernel, ((50, 40, k), (50, k, 35)))


def test_others_say_what_they_do_not_take(kernel, monkeypatch):
    a, b, _ = operands(mode_of(kernel), 5, 6, 129)
    with pytest.raises(tcgemm.NoKernelError, match="K up to 128"):
        check(kernel, a, b)
