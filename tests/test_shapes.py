"""Shapes, strides and bounds: where elements lie must not matter, nothing else is touched."""

import contextlib
import itertools
import mmap

import numpy as np
import pytest
import tcgemm
from harness import COL, ROW, Layout, cuda, data, oracle, round_to, wide
from harness.dlpack import CUDA, RawArray
from harness.formats import FORMATS

OPERANDS = ("a", "b", "c", "out")


def integers(rng, mode, a_shape, b_shape):
    a, b = data.integers(rng, mode, a_shape, b_shape)
    shape = (*np.broadcast_shapes(a_shape[:-2], b_shape[:-2]), a_shape[-2], b_shape[-1])
    return a, b, round_to(rng.integers(-8, 8, shape), mode.default_output)


def test_b01_guard_bands(lab, mode, rng):
    """Bands of 8,192 elements on every side of each operand, for the sizes of N01."""
    for m, n, k in data.shapes_pairwise()[::3]:
        a, b, c = integers(rng, mode, (m, k), (k, n))
        layouts = dict.fromkeys(OPERANDS, Layout(pad=3))
        lab.check(mode, a, b, c, beta=1, expect="exact", layouts=layouts, band=8192)


@pytest.mark.parametrize("tile", [64, 128, 192, 208, 256, 384])
def test_n01_exact_int_sweep_around_tiles(lab, mode, rng, tile):
    """One element less and more than whole tiles and k-blocks, in each dimension and in all."""
    for less in (-1, 0, 1, 8):
        size = tile + less
        for m, n, k in ((size, 72, 136), (136, size, 72), (72, 136, size), (size, size, size)):
            a, b, c = integers(rng, mode, (m, k), (k, n))
            for order in ("row", "col"):
                layouts = dict.fromkeys(OPERANDS, Layout(order, align=16))
                lab.check(mode, a, b, c, alpha=2, beta=-1, expect="exact", layouts=layouts)


def test_n01_few_rows_of_many_weights(lab, mode, rng):
    """Some hundred rows or columns: tiles of a quarter or half of their columns, in rings of more
    stages, and pairs of blocks that load the weights together."""
    shapes = ((136, 64), (264, 256), (320, 200), (500, 136), (392, 1032))
    for rows, k in shapes[: 1 if lab.family == "host" else None]:
        for m, n in ((rows, 4096), (4096, rows)):
            a, b, _ = integers(rng, mode, (m, k), (k, n))
            for order_a, order_b in itertools.product(("row", "col"), repeat=2):
                layouts = {"a": Layout(order_a, align=16), "b": Layout(order_b, align=16)}
                lab.check(mode, a, b, expect="exact", layouts=layouts)


def test_n01_many_tiles_of_odd_k(lab, mode, rng):
    """More tiles than multiprocessors, of one, three and five k-blocks of 64 to 128 elements: a
    tile's first stage is not always the same one."""
    for m, k in ((60, 120), (64, 320), (64, 384), (60, 600)):
        batch = 4 if lab.family == "host" else 600
        a, b, _ = integers(rng, mode, (batch, m, k), (batch, k, 100))
        layouts = {"a": Layout(align=16), "b": Layout("col", align=16)}
        lab.check(mode, a, b, expect="exact", layouts=layouts)


def test_b01_guard_bands_behind_k(lab, mode, rng):
    """Aligned rows (columns) of K elements with NaN behind them, where the last k-block reaches."""
    pairs = (("row", "col"), ("row", "row"), ("col", "col"))
    for k in (1, 7, 8, 31, 33, 56, 63, 64, 65, 72, 120, 127, 128, 129, 191, 193, 250, 257):
        a, b, _ = integers(rng, mode, (130, k), (k, 72))
        for order_a, order_b in pairs:
            # At least one element of NaN behind the last one of K, and whole vectors of it.
            for pad in (1, 17, 64):
                layouts = {
                    "a": Layout(order_a, pad=pad, align=16),
                    "b": Layout(order_b, pad=pad, align=16),
                }
                lab.check(mode, a, b, expect="exact", layouts=layouts)


def test_b02_misaligned_ptr(lab, mode, rng):
    shapes = ((33, 31, 35), (64, 64, 64), (136, 200, 192))
    for offset, (m, n, k) in itertools.product(range(1, 16), shapes):
        a, b, c = integers(rng, mode, (m, k), (k, n))
        layouts = {
            "a": Layout(offset=offset, pad=1),
            "b": Layout("col", offset=16 - offset, pad=3),
            "c": Layout(offset=(3 * offset) % 16, pad=5),
            "out": Layout(offset=(5 * offset) % 16, pad=offset),
        }
        lab.check(mode, a, b, c, beta=-1, expect="exact", layouts=layouts)


def test_b03_trans_stride_matrix(lab, mode, rng):
    """Transposed or not, row or column order, padded or not, and general strides: all of them."""
    m, n, k = 37, 50, 29
    a, b, c = integers(rng, mode, (m, k), (k, n))
    kinds = (ROW, COL, Layout(pad=7), Layout("col", pad=7), Layout(step=2), Layout("col", step=3))
    for trans_a, trans_b in itertools.product((False, True), repeat=2):
        for layout_a, layout_b in itertools.product(kinds, repeat=2):
            layouts = {"a": layout_a, "b": layout_b}
            how = {"trans_a": trans_a, "trans_b": trans_b, "layouts": layouts}
            lab.check(mode, a, b, expect="exact", **how)
    for layout_c, layout_out in itertools.product(kinds, repeat=2):
        layouts = {"c": layout_c, "out": layout_out, "a": COL}
        lab.check(mode, a, b, c, alpha=2, beta=-1, expect="exact", layouts=layouts)


def test_b04_negative_and_zero_stride(lab, mode, rng):
    m, n, k = 33, 40, 21
    a, b, c = integers(rng, mode, (m, k), (k, n))
    reversals = [
        Layout(order, reverse_rows=rows, reverse_cols=cols, pad=1)
        for order in ("row", "col")
        for rows, cols in ((True, False), (False, True), (True, True))
    ]
    for layout in reversals:
        layouts = dict.fromkeys(OPERANDS, layout)
        lab.check(mode, a, b, c, beta=1, expect="exact", layouts=layouts)
        lab.check(mode, a, b, expect="exact", layouts={"a": layout})
        lab.check(mode, a, b, expect="exact", layouts={"out": layout})
    # One row, one column or one element of memory stands for all.
    one_row = np.broadcast_to(a[:1], a.shape)
    one_column = np.broadcast_to(a[:, :1], a.shape)
    for values, layout in (
        (one_row, Layout(broadcast_rows=True)),
        (one_column, Layout(broadcast_cols=True)),
        (np.broadcast_to(a[:1, :1], a.shape), Layout(broadcast_rows=True, broadcast_cols=True)),
    ):
        lab.check(mode, values, b, expect="exact", layouts={"a": layout})
        lab.check(
            mode,
            b.T.copy(),
            values.T,
            expect="exact",
            layouts={"b": layout.with_(order="row")}
            if layout.broadcast_rows and layout.broadcast_cols
            else {},
        )


@pytest.mark.modes(only=lambda mode: mode.default_output == mode.operand or mode.operand == "int8")
def test_b04_output_with_stride_0_is_refused(lab, mode, rng):
    a, b, _ = integers(rng, mode, (5, 6), (6, 4))
    for layout in (Layout(broadcast_rows=True), Layout(broadcast_cols=True)):
        with pytest.raises(tcgemm.LayoutError, match="share an address"):
            lab.prepare(mode, a, b, layouts={"out": layout})
    with pytest.raises(tcgemm.LayoutError, match="share an address"):
        lab.prepare(
            mode,
            np.stack([a, a]),
            np.stack([b, b]),
            layouts={"out": Layout(broadcast_batch=True)},
        )


def test_b05_size1_strange_strides(lab, mode, rng):
    """The stride of a dimension of extent 1 is never used: zero, odd, huge or negative."""
    shapes = ((1, 9, 17), (9, 1, 17), (9, 17, 1), (1, 1, 33), (1, 1, 1), (1, 64, 64), (64, 1, 64))
    for m, n, k in shapes:
        a, b, c = integers(rng, mode, (m, k), (k, n))
        for stride in (0, 1, 3, 10**12, -7):
            layouts = dict.fromkeys(OPERANDS, Layout(size_one_stride=stride))
            lab.check(mode, a, b, c, beta=2, expect="exact", layouts=layouts)
    a, b, c = integers(rng, mode, (1, 3, 5, 6), (2, 1, 6, 7))
    layouts = dict.fromkeys(OPERANDS, Layout(size_one_stride=10**12))
    lab.check(mode, a, b, c, beta=2, expect="exact", layouts=layouts)


@pytest.mark.modes(only=lambda mode: mode.default_output == mode.operand)
def test_b06_overlap_out(lab, mode, rng):
    """Out over an input: the result as with a copy, or an error that says so."""
    size, ld = 24, 64
    a, b = data.integers(rng, mode, (size, size), (size, size))
    fmt = FORMATS[mode.operand]

    def window(memory, row, column):
        """size x size inside a pool of rows of `ld` elements."""
        address = memory.address + fmt.numpy.itemsize * (row * ld + column)
        return RawArray(memory, address, fmt, (size, size), (ld, 1), (CUDA, 0))

    pool = np.zeros((2 * size, ld), fmt.numpy)
    for row, column, overlaps in (
        (0, 0, True),  # exactly A
        (0, 5, True),
        (3, 0, True),
        (size - 1, size - 1, True),
        (size, 0, False),  # below it
        (0, size, False),  # beside it, between the same rows
        (7, size + 3, False),
    ):
        image = pool.copy()
        image[:size, :size] = a
        if lab.on_gpu:
            memory = cuda.DeviceMemory(image.nbytes)
            memory.write(image)
            operand, out = window(memory, 0, 0), window(memory, row, column)
        else:
            operand = image[:size, :size]
            out = image[row : row + size, column : column + size]
        other = lab.place(b)
        how = {"precision": mode.precision, "accumulate": mode.accumulate}
        for first, second in ((operand, other.array), (other.array, operand)):
            if overlaps:
                with pytest.raises(tcgemm.LayoutError, match=r"overlap|may share memory"):
                    lab.library.gemm(first, second, out=out, **how)
                after = memory.read().view(fmt.numpy).reshape(image.shape) if lab.on_gpu else image
                assert (wide(after[:size, :size]) == wide(a)).all(), "an input was written"
            else:
                lab.library.gemm(first, second, out=out, **how)
                if lab.on_gpu:
                    cuda.synchronize()
                after = memory.read().view(fmt.numpy).reshape(image.shape) if lab.on_gpu else image
                got = after[row : row + size, column : column + size]
                pair = (a, b) if first is operand else (b, a)
                want = oracle.exact(mode, *pair, None, 1.0, 0.0)
                assert oracle.judge_exact(mode, got, want).of_hard == 0
                assert (wide(after[:size, :size]) == wide(a)).all()


@pytest.mark.modes(only=lambda mode: mode.default_output == mode.operand)
def test_b06_c_may_be_the_output_itself(lab, mode, rng):
    shapes = ((33, 17, 20), (136, 264, 72))
    for layout, (m, n, k) in itertools.product((ROW, COL, Layout(pad=3)), shapes):
        a, b, c = integers(rng, mode, (m, k), (k, n))
        both = lab.place(c, layout, is_output=True)
        operands = (lab.place(a), lab.place(b))
        how = {"precision": mode.precision, "accumulate": mode.accumulate}
        lab.library.gemm(
            *(o.array for o in operands), both.array, alpha=2, beta=3, out=both.array, **how
        )
        if lab.on_gpu:
            cuda.synchronize()
        want = oracle.exact(mode, a, b, c, 2, 3)
        assert oracle.judge_exact(mode, both.read("out"), want).of_hard == 0


def test_c_of_more_tiles_than_blocks(lab, mode, rng, monkeypatch):
    """Blocks that go through several tiles, whole and ragged ones, may read C ahead: one matrix for
    all batches, one for each, and the output itself. By every kernel."""
    batch, m, n, k = (3, 900, 1800, 40) if lab.on_gpu else (2, 70, 136, 8)
    rows = list(range(0, m, 7))
    a, b = data.integers(rng, mode, (batch, m, k), (batch, k, n))
    outs = itertools.cycle(mode.outputs)
    accepted = 0
    for _ in lab.force_each(monkeypatch):
        out = next(outs)
        how = {"alpha": 2, "beta": 3, "out_dtype": out, "expect": "exact", "rows": rows}
        c = round_to(rng.integers(-8, 8, (batch, m, n)), out)
        try:
            lab.check(mode, a, b, c, **how)
        except tcgemm.NoKernelError:
            continue
        accepted += 1
        c[:] = c[:1]
        # With contiguous k tiles may be narrower, and share boxes of C and D with their neighbours.
        layouts = {"b": Layout("col"), "c": Layout(broadcast_batch=True)}
        lab.check(mode, a, b, c, layouts=layouts, **how)
        lab.check(mode, a, b, layouts={"b": Layout("col")}, **{**how, "beta": 0})
        c = round_to(rng.integers(-8, 8, (batch, m, n)), out)  # what the kernel stores
        both = lab.place(c, is_output=True)
        how = {"precision": mode.precision, "accumulate": mode.accumulate, "out_dtype": out}
        operands = (lab.place(a).array, lab.place(b).array)
        lab.library.gemm(*operands, both.array, alpha=2, beta=3, out=both.array, **how)
        if lab.on_gpu:
            cuda.synchronize()
        want = oracle.exact(mode, a[:, rows], b, c[:, rows], 2, 3)
        assert oracle.judge_exact(mode, both.read("out")[:, rows], want).of_hard == 0
    assert accepted > 0


def test_ragged_rows_and_columns_of_tiles(lab, mode, rng, monkeypatch):
    """The last tiles have a few rows or columns, and an odd number of rows of tiles may be loaded
    by pairs of blocks; rows of operands begin amid sectors of L2. By every kernel."""
    k = 136 if lab.on_gpu else 24
    # Of the last 19 x 29 tiles of 128 x 128: many to the cost model, which pairs an odd row too.
    of_gpu = ((1160, 1544), (1288, 1544), (1317, 1544), (2305, 3592))
    accepted = 0
    for _ in lab.force_each(monkeypatch):
        for m, n in of_gpu if lab.on_gpu else ((40, 72), (65, 72)):
            rows = [*range(0, m, 31), *range(m - 9, m)]
            a, b = data.integers(rng, mode, (m, k), (k, n))
            how = {"expect": "exact", "rows": rows}
            try:
                lab.check(mode, a, b, **how)
            except tcgemm.NoKernelError:
                break
            transposed = {"a": Layout("col", pad=8, align=16), "b": Layout("col", pad=8, align=16)}
            lab.check(mode, a, b, layouts=transposed, **how)
            accepted += 1
    assert accepted > 0


def test_long_k_with_more_parts_than_blocks(lab, mode, rng):
    """Each block computes several parts of K, then adds up; and in batches of four dimensions."""
    shape = (1400, 40, 16384) if lab.on_gpu else (14, 40, 300)
    m, n, k = shape
    a, b = data.signed(rng, mode, (m, k), (k, n))
    with contextlib.suppress(tcgemm.NoKernelError):  # of modes that have no such results
        lab.check(mode, a, b, determinism="batch_invariant", rows=[0, 5, m // 2, m - 1])
    a, b = data.signed(rng, mode, (2, 1, 2, 3, 20, k // 4), (2, 1, 2, 3, k // 4, 24))
    lab.check(mode, a, b)


@pytest.mark.modes(only=lambda mode: mode.name in ("int8", "fp16"))
def test_b08_stride_gt_2p32(lab, mode, rng):
    """Two matrices more than 2^32 elements apart: 32-bit offsets wrap onto the first."""
    m, n, k, apart = 33, 20, 40, 2**32 + 40
    a, b = data.integers(rng, mode, (2, m, k), (2, k, n))
    a_size = FORMATS[mode.operand].numpy.itemsize
    if lab.on_gpu:
        needed = apart * a_size + m * k * a_size
        if cuda.memory()[0] < needed + (1 << 30):
            pytest.skip(f"needs {needed >> 30} GiB of free GPU memory")
        memory = cuda.DeviceMemory(needed)
        for i in range(2):
            memory.write(a[i], i * apart * a_size)
        array = RawArray(
            memory, memory.address, FORMATS[mode.operand], a.shape, (apart, k, 1), (CUDA, 0)
        )
    else:
        # Address space without memory behind it, but for the pages that are written.
        no_reserve = 0x4000  # MAP_NORESERVE of Linux; a constant of Python only since 3.13
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
        space = mmap.mmap(-1, (apart + m * k) * a_size, flags=flags)
        flat = np.frombuffer(space, FORMATS[mode.operand].numpy)
        array = np.lib.stride_tricks.as_strided(
            flat, a.shape, (apart * a_size, k * a_size, a_size), writeable=True
        )
        array[...] = a
    out = lab.place_output((2, m, n), mode.default_output)
    second = lab.place(b)
    plan = lab.library.plan(array, second.array, out=out.array)
    assert plan.family == lab.family
    plan.execute()
    if lab.on_gpu:
        cuda.synchronize()
    want = oracle.exact(mode, a, b, None, 1.0, 0.0)
    assert oracle.judge_exact(mode, out.read("out"), want).of_hard == 0


@pytest.mark.parametrize("count", [65536, 1_000_000])
def test_b09_batch_65536_plus(lab, mode, rng, count):
    if count > 65536 and lab.family == "host" and mode.name not in ("fp16", "fp32", "int8"):
        count = 100_000  # on the CPU three modes go through the million, to save time
    a, b = data.integers(rng, mode, (count, 2, 3), (count, 3, 2))
    lab.check(mode, a, b, expect="exact")
    # A broadcast operand, and batches in two dimensions that no single stride can walk.
    lab.check(mode, a, b[:1], expect="exact")
    two = (count // 256, 256)
    layouts = {"a": Layout(batch_pad=3), "out": Layout(pad=1)}
    some = count // 256 * 256
    lab.check(
        mode,
        a[:some].reshape(*two, 2, 3),
        b[: two[0]].reshape(two[0], 1, 3, 2),
        expect="exact",
        layouts=layouts,
    )


def test_b10_tall_skinny(lab, mode, rng):
    tall = 2**20 + 1 if lab.on_gpu or mode.name in ("fp16", "fp32") else 2**17 + 1
    for m, n, k in ((tall, 1, 9), (1, 4 * (tall - 1), 5), (1, 200, 1), (200, 1, 1), (tall, 3, 1)):
        a, b = data.integers(rng, mode, (m, k), (k, n))
        lab.check(mode, a, b, expect="exact")


def test_few_rows_of_many_tiles(lab, mode, rng, monkeypatch):
    """What few rows leave free of shared memory holds further stages; blocks go on through them
    from tile to tile, and a part of K may have fewer k-blocks than there are stages."""
    n = 40000 if lab.on_gpu else 1000
    accepted = 0
    for _ in lab.force_each(monkeypatch):
        for rows, k in ((5, 520), (16, 136), (40, 1000), (64, 264)):
            a, b = data.integers(rng, mode, (rows, k), (k, n))
            how = {"layouts": {"b": Layout("col", align=16)}, "expect": "exact"}
            try:
                lab.check(mode, a, b, rows=[0, rows // 2, rows - 1], **how)
            except tcgemm.NoKernelError:
                continue
            accepted += 1
            lab.check(mode, a, b[:, :72], **how)
    assert accepted > 0


def test_one_operand_of_many_products(lab, mode, rng, monkeypatch):
    """Boxes that all tiles share stay in shared memory while blocks go on through their tiles."""
    # 20 rows of each are an even number of tiles of 64 and of 128, which pairs of blocks share.
    batch = 18432 if lab.on_gpu else 50
    accepted = 0
    for _ in lab.force_each(monkeypatch):
        for shapes in (((20, 24), (batch, 24, 16)), ((batch, 20, 24), (24, 16))):
            a, b = data.integers(rng, mode, *shapes)
            try:
                lab.check(mode, a, b, expect="exact")
            except tcgemm.NoKernelError:
                continue
            accepted += 1
    assert accepted > 0


def test_b13_every_element_written(lab, mode, rng):
    """The output holds a NaN payload of its own beforehand (as in every test): none remains.

    All paths of the epilogue: each output dtype, beta or not, ragged or whole tiles, a long K.
    """
    for out in mode.outputs:
        for m, n, k in ((1, 1, 1), (128, 128, 32), (129, 257, 33), (64, 200, 4096), (257, 1, 8)):
            a, b = data.integers(rng, mode, (m, k), (k, n))
            c = round_to(rng.integers(-8, 8, (m, n)), out)
            how = {"out_dtype": out, "expect": "exact"}
            if k == 4096:  # FP16 sums may round: bounds, and the long double oracle is slow
                how.update(expect="bound", rows=[0, 31, m - 1])
            lab.check(mode, a, b, **how)
            lab.check(mode, a, b, c, beta=1, **how)
            lab.check(mode, a, b, layouts={"out": COL}, **how)
    run = lab.prepare(mode, *data.integers(rng, mode, (3, 4, 33, 9), (4, 9, 20)))
    before = run.operands["out"].read("out")
    assert run.operands["out"].unwritten(before) == before.size
    run.execute()


def test_batches_broadcast_like_numpy(lab, mode, rng):
    cases = (
        ((3,), ()),
        ((), (4,)),
        ((2, 1), (3,)),
        ((5, 1, 2), (1, 3, 1)),
        ((2, 2, 2, 2), (2, 1, 2)),
        ((1,), (1,)),
    )
    for batch_a, batch_b in cases:
        a, b, c = integers(rng, mode, (*batch_a, 17, 9), (*batch_b, 9, 12))
        lab.check(mode, a, b, c, beta=1, expect="exact")
        layouts = {"a": COL, "b": Layout(batch_pad=5), "out": Layout("col", pad=2, batch_pad=1)}
        lab.check(mode, a, b, expect="exact", layouts=layouts)


def test_batches_with_strides_of_their_own(lab, mode, rng):
    """Two batch dimensions that no stride walks, or broadcast; every output dtype, C apart."""
    plain, apart = Layout(align=16), Layout(align=16, batch_pad=16, outer_batch_pad=64)
    pairs = (((2, 3), (2, 3)), ((2, 3), ()), ((), (2, 3)), ((2, 1), (2, 3)), ((2, 3), (1, 3)))
    outs = itertools.cycle(mode.outputs)
    for (m, n, k), (batch_a, batch_b) in itertools.product(((64, 128, 64), (130, 72, 136)), pairs):
        a, b = data.integers(rng, mode, (*batch_a, m, k), (*batch_b, k, n))
        c = rng.integers(-8, 8, (2, 3, m, n))
        for a_order, layout in itertools.product(("row", "col"), (plain, apart)):
            out = next(outs)
            layouts = dict.fromkeys(OPERANDS, layout) | {"a": layout.with_(order=a_order)}
            how = {"out_dtype": out, "layouts": layouts, "expect": "exact"}
            lab.check(mode, a, b, **how)
            lab.check(mode, a, b, round_to(c, out), beta=1, **how)


def test_few_rows_of_matrices_that_share_b(lab, mode, rng):
    """Rows and matrices change places where the matrices do not follow each other."""
    a, b, c = integers(rng, mode, (3, 40, 3, 24), (24, 16))
    for apart in (Layout(align=16, batch_pad=48), Layout(batch_pad=5)):
        for names in (("a",), ("out",), ("a", "out", "c")):
            layouts = dict.fromkeys(names, apart)
            lab.check(mode, a, b, expect="exact", layouts=layouts)
            lab.check(mode, a, b, c, beta=2, expect="exact", layouts=layouts)


def test_batches_of_four_dimensions(lab, mode, rng):
    """None of which goes on as another: more than a tensor map has room for."""
    apart = Layout(align=16, batch_pad=16, outer_batch_pad=64)
    a, b, c = integers(rng, mode, (5, 3, 2, 4, 20, 40), (3, 1, 4, 40, 24))
    lab.check(mode, a, b, c, beta=1, expect="exact", layouts=dict.fromkeys(OPERANDS, apart))


def test_exact_bits_do_not_depend_on_the_layout(lab, mode, rng):
    """Whole numbers: every layout gives the same bits."""
    a, b, _ = integers(rng, mode, (65, 40), (40, 33))
    reference = lab.check(mode, a, b, expect="exact").bits
    for layout in (COL, Layout(pad=1), Layout(step=2), Layout(reverse_rows=True), Layout(offset=3)):
        for name in ("a", "b", "out"):
            got = lab.check(mode, a, b, expect="exact", layouts={name: layout}).bits
            assert (got == reference).all()


def test_tiles_behind_the_last_whole_wave(lab, mode, rng):
    """Slightly more tiles than an H200 has SMs: those that are left have parts of K, which blocks
    add up. With C, with rows of D at odd addresses, and with several matrices."""
    if lab.family != "sm90_wgmma":
        pytest.skip("of sm90_wgmma")
    splits, k = 0, 8192
    shapes = ((1, 1792, 2560), (1, 1792, 3200), (2, 768, 2304))
    for batch, m, n in shapes:
        a, b = data.integers(rng, mode, (batch, m, k), (batch, k, n))
        c = round_to(rng.integers(-8, 8, (batch, m, n)), mode.default_output)
        how = {"expect": "exact", "rows": [*range(0, m, 61), m - 1]}
        layouts = {"b": Layout("col", align=16)}
        lab.check(mode, a, b, layouts=layouts, **how)
        lab.check(mode, a, b, c, alpha=2, beta=-1, layouts=layouts, **how)
        lab.check(mode, a, b, layouts={**layouts, "out": Layout(pad=3, offset=1)}, **how)
        text = str(lab.prepare(mode, a, b, layouts=layouts).plan)
        splits += "behind the last whole wave" in text
    assert splits > 0 or mode.name not in ("fp16", "bf16", "int8")
