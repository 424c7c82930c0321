"""More than 2^31 elements in one operand: indices in 32 bits wrap around. For a GPU of 40 GB."""

import numpy as np
import pytest
from harness import FORMATS, cuda, data, oracle, round_to, wide
from harness.dlpack import CUDA, RawArray

CANARY = 8 << 30  # bytes before and after D
BYTE = 0xA5
CHUNK = 256 << 20  # bytes read back at a time


def needs_memory(size):
    if cuda.memory()[0] < size:
        pytest.skip(f"needs {size >> 30} GiB of free GPU memory")


def canaries_untouched(memory, begin, end):
    for low, high in ((0, begin), (end, memory.size)):
        for offset in range(low, high, CHUNK):
            if (memory.read(min(CHUNK, high - offset), offset) != BYTE).any():
                return False
    return True


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.modes(only=lambda mode: mode.name == "fp16")
@pytest.mark.parametrize(("batch", "m", "n"), [((), 46341, 46341), ((8209,), 512, 512)], ids=str)
def test_b07_gt_2p31_elements(lab, mode, rng, batch, m, n):
    """D with 8 GiB of canaries around it. Sampled rows, and Freivalds' check of every element."""
    if lab.family == "host":
        pytest.skip("a test of GPU memory")
    k, fmt = 16, FORMATS[mode.operand]
    # Sums of at most 16 x 64: D holds them exactly.
    a, b = (
        round_to(rng.integers(-8, 8, shape, endpoint=True), mode.operand)
        for shape in ((*batch, m, k), (*batch, k, n))
    )
    row_bytes = n * fmt.numpy.itemsize
    rows = int(np.prod(batch, dtype=np.int64)) * m
    size = rows * row_bytes
    needs_memory(size + 2 * CANARY + (4 << 30))
    memory = cuda.DeviceMemory(size + 2 * CANARY)
    memory.fill(BYTE)
    shape = (*batch, m, n)
    strides = (m * n, n, 1)[-len(shape) :]
    out = RawArray(memory, memory.address + CANARY, fmt, shape, strides, (CUDA, 0))
    operands = lab.place(a), lab.place(b)
    plan = lab.library.plan(*(o.array for o in operands), out=out)
    assert plan.family == lab.family
    plan.execute()
    cuda.synchronize()

    assert canaries_untouched(memory, CANARY, CANARY + size)
    # Freivalds: D x = A (B x) for a random x of whole numbers, exact in FP64.
    x = rng.integers(-9, 10, n).astype(np.float64)
    expected = (wide(a) @ (wide(b) @ x)[..., None]).reshape(rows)
    at_once = CHUNK // row_bytes
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        chunk = memory.read(count * row_bytes, CANARY + first * row_bytes)
        got = wide(chunk.view(fmt.numpy).reshape(count, n))
        assert (got @ x == expected[first : first + count]).all(), f"rows from {first} on"
    for row in (0, 1, rows // 2, rows - 1):
        index = np.unravel_index(row, (*batch, m))
        one = a[index][None, :], b[index[:-1]]
        want = oracle.exact(mode, *one, None, 1.0, 0.0)
        bits = memory.read(row_bytes, CANARY + row * row_bytes).view(fmt.numpy)
        assert oracle.judge_exact(mode, bits[None, :], want).of_hard == 0


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.modes(only=lambda mode: mode.name == "fp16")
def test_b07_more_than_2p24_rows(lab, mode, rng):
    """Bytes of so many rows do not fit 32 bits, whichever their number is taken for."""
    needs_memory(8 << 30)
    m, n, k = (1 << 24) + 40, 8, 8
    rows = [0, 1, 63, 64, (1 << 23) + 5, m - 41, m - 40, m - 1]
    a, b = data.integers(rng, mode, (m, k), (k, n))
    lab.check(mode, a, b, expect="exact", rows=rows)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.modes(only=lambda mode: mode.name == "fp16")
def test_b07_leading_dimension_beyond_2p31(lab, mode, rng):
    """A of few columns whose rows lie so far apart that the last one is beyond 2^31 elements."""
    if lab.family == "host":
        pytest.skip("test_b08_stride_gt_2p32 is the CPU's")
    m, n, k, ld, fmt = 70000, 24, 16, 32768, FORMATS[mode.operand]
    a, b = data.integers(rng, mode, (m, k), (k, n))
    size = m * ld * fmt.numpy.itemsize
    needs_memory(size + (2 << 30))
    memory = cuda.DeviceMemory(size)
    memory.fill(0x7F)  # NaN in every gap
    rows = [0, 1, m // 2, 65535, 65536, m - 1]
    some = np.zeros((m, k), fmt.numpy)
    some[rows] = a[rows]
    for row in rows:
        memory.write(a[row], row * ld * fmt.numpy.itemsize)
    array = RawArray(memory, memory.address, fmt, (m, k), (ld, 1), (CUDA, 0))
    out = lab.place_output((m, n), mode.operand)
    second = lab.place(b)
    plan = lab.library.plan(array, second.array, out=out.array)
    assert plan.family == lab.family
    plan.execute()
    cuda.synchronize()
    got = out.read("out")
    want = oracle.exact(mode, some[rows], b, None, 1.0, 0.0)
    assert oracle.judge_exact(mode, got[rows], want).of_hard == 0
    others = np.delete(np.arange(m), rows)
    assert np.isnan(wide(got[others])).all()  # their rows of A hold the NaN of the gaps


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.modes(only=lambda mode: mode.name in ("fp16", "int8"))
@pytest.mark.parametrize("k", [2**31 - 1152, 2**31 + 128], ids=["below", "above"])
def test_b07_k_around_2p31(lab, mode, k):
    """A row by a column: the last k are multiplied, and nothing that lies behind them."""
    if lab.family == "host":
        pytest.skip("a test of GPU memory")
    fmt, item, behind = FORMATS[mode.operand], FORMATS[mode.operand].numpy.itemsize, 4096
    needs_memory(2 * k * item + (2 << 30))
    memories = []
    for byte in (0, 0x3C):  # zeros; float16 271/256, or int8 60
        memory = cuda.DeviceMemory(k * item + behind)
        memory.fill(byte)
        memory.write(np.full(behind, 0x7F, np.uint8), k * item)
        memories.append(memory)
    numbers = {0: 3, 2**30 + 5: -2, k - 130: 5, k - 1: 7}
    for at, number in numbers.items():
        memories[0].write(round_to([number], mode.operand), at * item)
    a, b = (
        RawArray(memory, memory.address, fmt, shape, strides, (CUDA, 0))
        for memory, shape, strides in zip(memories, ((1, k), (k, 1)), ((k, 1), (1, 1)), strict=True)
    )
    out = lab.place_output((1, 1), mode.accumulator)
    how = {"out": out.array, "out_dtype": mode.accumulator}
    if lab.family == "sm90_wgmma" and k >= 2**31:
        with pytest.raises(lab.library.NoKernelError, match="takes k up to"):
            lab.library.plan(a, b, **how)
        return
    plan = lab.library.plan(a, b, **how)
    assert plan.family == lab.family
    plan.execute()
    cuda.synchronize()
    factor = 60 if mode.name == "int8" else 271 / 256
    assert wide(out.read("out")).item() == sum(numbers.values()) * factor
