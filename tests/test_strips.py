"""Tiles of odd 16-bit elements in strips, of all K at once and of a K in steps: every size, layout
and alignment, K around instructions, steps and parts."""

import itertools

import pytest
import tcgemm
from harness import Layout
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


def tile_of(kernel):
    """M, N, and K where it comes in steps of that."""
    return [int(size) for size in kernel.rsplit("_", 1)[1].split("x")]


def has_steps(kernel):
    return len(tile_of(kernel)) == 3


kernel = kernels("sm80_mma", lambda name: "_strips_" in name)
stepping = kernels("sm80_mma", lambda name: "_strips_" in name and has_steps(name))
of_whole_k = kernels("sm80_mma", lambda name: "_strips_" in name and not has_steps(name))


def longest_k(kernel):
    """Of a whole K: of a tile and a copy that is aligned, in as much shared memory as there is."""
    if has_steps(kernel):
        return 4096
    shared = tcgemm.devices()[0]["shared_memory_per_block_bytes"]
    return min(128, (shared // tile_of(kernel)[0] - 160) // 8)


def test_each_number_of_rows_and_columns(kernel):
    """Below, at and above a tile and the parts of it that a warp or an instruction has. Columns are
    dealt out to the warps where there are fewer rows."""
    tile = tile_of(kernel)[0]
    around = {tile // 2 + 1, tile - 1, tile, tile + 1, 2 * tile + 2, 2 * tile + 3}
    check_each_size(
        kernel, sorted({1, 2, 7, 8, 15, 16, 17} | around), 150 if has_steps(kernel) else 19
    )


def test_each_k(kernel):
    """Around what instructions multiply and around steps, up to the longest."""
    each_k = [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100]
    each_k += [127, 128, 129, 143, 144, 145, 255, 256, 257, 384, 999]
    longest = longest_k(kernel)
    each_k = [*(k for k in each_k if k < longest), longest]
    check_each_k(kernel, each_k, (21, 18), (70, 34), (5, 70))
    a, b, _ = operands(mode_of(kernel), 70, 70, longest)
    check(kernel, a, b, expect="exact", layouts={"a": ODD, "b": ODD_COL})
    check_no_k(kernel)


def test_each_layout(kernel):
    check_each_layout(kernel, 33, 20, 170 if has_steps(kernel) else 18)
    check_each_layout(kernel, 4, 70, 130 if has_steps(kernel) else 18)


@pytest.mark.parametrize("output", ["float16", "bfloat16", "float32"])
def test_parts_of_k(stepping, output):
    for m, n, k in ((7, 1000, 2000), (300, 40, 5001), (17, 19, 20_000), (65, 70, 1281)):
        a, b, c = operands(mode_of(stepping), m, n, k)
        how = {"expect": "exact", "out_dtype": output}
        assert check(stepping, a, b, **how).split_k > 1
        check(stepping, a, b, layouts={"a": ODD, "b": ODD_COL, "out": ODD_COL}, **how)
    a, b, c = operands(mode_of(stepping), 9, 40, 1500)
    check(stepping, a, b, c, beta=1, expect="exact", layouts={"a": ODD})


@pytest.mark.parametrize("output", ["float16", "bfloat16", "float32"])
def test_rows_of_d_that_begin_anywhere(kernel, output):
    """Strips are stored in vectors: of rows that follow each other, or with gaps, and none else."""
    for m, n in itertools.product((1, 16, 33, 130), (1, 2, 7, 8, 31, 33, 64, 65, 127, 130)):
        a, b, _ = operands(mode_of(kernel), m, n, 5, (3,))
        for layout in (Layout(), Layout(offset=1), Layout(pad=1), Layout(pad=8, offset=3)):
            check(kernel, a, b, expect="exact", out_dtype=output, layouts={"out": layout})


def test_batches_of_more_tiles_than_are_at_work_at_once(kernel):
    check_batches(kernel, 15, 17, 11, (3000, 3))


def test_batches_in_steps_and_in_parts(stepping):
    check_batches(stepping, 35, 37, 141, (30, 3))
    a, b, c = operands(mode_of(stepping), 3, 70, 1300, (2, 3))
    assert check(stepping, a, b, c, beta=1, expect="exact").split_k > 1


def test_long_thin_matrices(kernel):
    a, b, _ = operands(mode_of(kernel), 100_001, 9, 13)
    check(kernel, a, b, expect="exact")
    check(kernel, b.T.copy(), a.T.copy(), expect="exact")


def test_what_lies_outside_is_not_multiplied(kernel):
    for m, n, k in ((18, 33, 21), (18, 33, 145), (3, 70, 1301)):
        if k <= longest_k(kernel):
            check_what_lies_outside(kernel, m, n, k)


def test_special_values_reach_their_row_and_column_alone(kernel):
    check_special_values(kernel, 20, 40, 23, nan=(1, 22), inf=(7, 5))
    if has_steps(kernel):
        check_special_values(kernel, 40, 50, 271, nan=(1, 22), inf=(270, 35))


def test_rounding_keeps_the_bound(kernel):
    k = min(longest_k(kernel), 128)
    check_rounding(kernel, ((50, 40, k), (50, k, 35)))
    if has_steps(kernel):
        each = ((50, 35, 100), (50, 35, 1037), (20, 70, 30_001))
        check_rounding(kernel, *(((m, k), (k, n)) for m, n, k in each))


def test_others_say_what_they_do_not_take(of_whole_k):
    a, b, _ = operands(mode_of(of_whole_k), 5, 6, 129)
    with pytest.raises(tcgemm.NoKernelError, match="K up to 128"):
        check(of_whole_k, a, b)


def test_batch_invariant_products_are_not_taken(kernel):
    check_batch_invariant_is_not_taken(kernel, 40, 50, 200 if has_steps(kernel) else 100)
