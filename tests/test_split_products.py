"""Products whose K is split: blocks that wait for each other, whatever else the GPU does."""

import ctypes
import os
import time

import numpy as np
import pytest
import tcgemm
from frameworks import Place, integers
from harness import cuda

pytestmark = pytest.mark.gpu


def sums_of(dtype):
    return "float64" if dtype == "float64" else "float32"


# K over blocks of sm90_wgmma, which all wait for each other, and of simt, where the last one of a
# tile waits for those before: few tiles, and more parts than a part of the GPU holds at once.
PRODUCTS = pytest.mark.parametrize(
    ("m", "k", "n", "dtype"),
    [
        (128, 65536, 128, "float16"),
        (1, 65536, 40, "float32"),
        (3, 65536, 40, "float64"),
        (7, 8192, 1001, "float64"),
    ],
)


@PRODUCTS
def test_split_products_on_streams_at_once(m, k, n, dtype):
    """Each fills the GPU: neither may hold back the blocks that the other one waits for."""
    place = Place("torch", "cuda")
    torch = place.module
    a, b = integers((m, k), 1), integers((k, n), 2)
    expected = a @ b
    a, b = (place.array(x.astype(dtype), dtype) for x in (a, b))
    sums = sums_of(dtype)
    assert tcgemm.plan(a, b, out_dtype=sums).split_k > 1
    lanes = [torch.cuda.Stream(priority=-(i % 2)) for i in range(4)]
    outs = [place.empty((m, n), sums) for _ in lanes]
    torch.cuda.synchronize()
    for _ in range(300):
        for stream, out in zip(lanes, outs, strict=True):
            tcgemm.matmul(a, b, out=out, out_dtype=sums, stream=stream)
    torch.cuda.synchronize()
    for out in outs:
        np.testing.assert_array_equal(place.to_numpy(out), expected)


@PRODUCTS
def test_split_products_with_a_part_of_the_gpu(m, k, n, dtype):
    """On a stream of a green context (CUDA 12.4), which has fewer SMs than the device."""
    place = Place("torch", "cuda")
    stream = green_stream(sm_count=16)
    a, b = integers((m, k), 1), integers((k, n), 2)
    sums = sums_of(dtype)
    out = place.empty((m, n), sums)
    on_gpu = [place.array(x.astype(dtype), dtype) for x in (a, b)]
    place.module.cuda.synchronize()
    for _ in range(3):
        tcgemm.matmul(*on_gpu, out=out, out_dtype=sums, stream=stream)
    cuda.call("cuStreamSynchronize", ctypes.c_void_p(stream))
    np.testing.assert_array_equal(place.to_numpy(out), a @ b)


@PRODUCTS
def test_split_products_captured_with_a_part_of_the_gpu(m, k, n, dtype):
    """No launch of a graph fails for want of room: too large a grid would never begin."""
    place = Place("torch", "cuda")
    torch = place.module
    stream = torch.cuda.ExternalStream(green_stream(sm_count=16))
    a, b = integers((m, k), 1), integers((k, n), 2)
    sums = sums_of(dtype)
    out = place.empty((m, n), sums)
    on_gpu = [place.array(x.astype(dtype), dtype) for x in (a, b)]
    plan = tcgemm.plan(*on_gpu, out=out, out_dtype=sums)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        plan.execute()
    with torch.cuda.stream(stream):
        graph.replay()
    deadline = time.monotonic() + 10
    while not stream.query():
        if time.monotonic() > deadline:
            print("the captured product never begins", flush=True)
            os._exit(1)  # pytest would wait for it for ever
    np.testing.assert_array_equal(place.to_numpy(out), a @ b)


def test_split_products_in_clusters_with_a_part_of_the_gpu():
    """The smaller grid has whole clusters too: 132 blocks in pairs, then 66, and not 33."""
    place = Place("torch", "cuda")
    stream = green_stream(sm_count=16)
    a, b = (
        integers((2304, 4096), 1).astype(np.float32),
        integers((7680, 4096), 2).astype(np.float32),
    )
    out = place.empty((2304, 7680), "float16")
    on_gpu = [place.array(a, "float16"), place.array(b, "float16").T]
    place.module.cuda.synchronize()
    tcgemm.matmul(*on_gpu, out=out, stream=stream)
    cuda.call("cuStreamSynchronize", ctypes.c_void_p(stream))
    np.testing.assert_array_equal(place.to_numpy(out), a @ b.T)


def green_stream(sm_count):
    cuda.use_device()
    whole, part, rest = (ctypes.create_string_buffer(1024) for _ in range(3))  # CUdevResource
    desc, context, stream = (ctypes.c_void_p() for _ in range(3))
    sms, groups = 1, ctypes.c_uint(1)
    try:
        cuda.call("cuDeviceGetDevResource", 0, whole, sms)
        split = (part, ctypes.byref(groups), whole, rest, 0, sm_count)
        cuda.call("cuDevSmResourceSplitByCount", *split)
        cuda.call("cuDevResourceGenerateDesc", ctypes.byref(desc), part, 1)
        cuda.call("cuGreenCtxCreate", ctypes.byref(context), desc, 0, 1)
    except (AttributeError, RuntimeError) as error:
        pytest.skip(f"no green contexts here: {error}")
    cuda.call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, 1, 0)
    return stream.value
