"""CUDA graphs: products are captured and replayed (P08)."""

import gc

import numpy as np
import pytest
import tcgemm
from frameworks import Place


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize("precision", [None, "fp16"])
@pytest.mark.parametrize("planned", [True, False], ids=["plan", "matmul"])
def test_p08_graph_capture_replay(planned, precision):
    """Captured once, replayed 100 times over changing inputs: the bits of eager calls."""
    place = Place("torch", "cuda")
    torch = place.module
    rng = np.random.default_rng(8)
    a, b = (place.array(rng.standard_normal((256, 256))) for _ in range(2))
    out = place.empty((256, 256))
    plan = tcgemm.plan(a, b, out=out, precision=precision)

    def product():
        if planned:
            return plan.execute()
        return tcgemm.matmul(a, b, out=out, precision=precision)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        product()
    torch.cuda.synchronize()
    other = torch.cuda.CUDAGraph()  # torch allocates for itself while there is any graph
    with torch.cuda.graph(other, stream=stream):
        out.zero_()
    graph = torch.cuda.CUDAGraph()
    torch_bytes = torch.cuda.memory_allocated()
    with torch.cuda.graph(graph, stream=stream):
        product()
    assert torch.cuda.memory_allocated() == torch_bytes
    for run in range(100):
        a.copy_(place.array(rng.standard_normal((256, 256))))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        replayed = out.clone()
        eager = tcgemm.matmul(a, b, precision=precision)
        assert torch.equal(replayed.view(torch.int32), eager.view(torch.int32)), run

    def memory_stays() -> bool:
        free = torch.cuda.mem_get_info()[0]
        for _ in range(50):
            graph.replay()
        torch.cuda.synchronize()
        return torch.cuda.mem_get_info()[0] == free

    assert any(memory_stays() for _ in range(10))  # other processes take memory, too


@pytest.mark.gpu
def test_p08_results_allocated_inside_a_capture():
    place = Place("torch", "cuda")
    torch = place.module
    values = np.random.default_rng(0).integers(-3, 4, (128, 128))
    a = place.array(values)
    tcgemm.matmul(a, a)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = tcgemm.gemm(a, a, a, beta=2.0)
    for scale in (1, 2, 3):
        a.copy_(place.array(scale * values))
        graph.replay()
        torch.cuda.synchronize()
        expected = scale * scale * (values @ values) + 2 * scale * values
        np.testing.assert_array_equal(place.to_numpy(result), expected)


def captured(a, b, out, times=1):
    """A graph of a product; nobody has its plan any more."""
    torch = Place("torch", "cuda").module
    plan = tcgemm.plan(a, b, out=out)
    assert plan.workspace_bytes > 0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            plan.execute()
    return graph


@pytest.mark.gpu
@pytest.mark.parametrize("k", [8192, 8191], ids=["split_k", "packed"])
def test_p08_a_graph_keeps_the_workspace_of_its_plan(k):
    """Or the next plan would have the same memory, and both would write to it at once."""
    place = Place("torch", "cuda")
    torch = place.module
    values = [np.random.default_rng(seed).integers(-1, 2, (64, k)) for seed in range(2)]
    arrays = [place.array(v, "float16") for v in values]
    outs = [place.empty((64, 64), "float16") for _ in values]
    graph = captured(arrays[0], arrays[0].T, outs[0], times=100)
    gc.collect()
    plan = tcgemm.plan(arrays[1], arrays[1].T, out=outs[1])
    streams = [torch.cuda.Stream() for _ in values]
    torch.cuda.synchronize()
    for _ in range(10):
        with torch.cuda.stream(streams[0]):
            graph.replay()
        with torch.cuda.stream(streams[1]):
            for _ in range(300):
                plan.execute()
        torch.cuda.synchronize()
        for v, out in zip(values, outs, strict=True):
            np.testing.assert_array_equal(place.to_numpy(out), (v @ v.T).astype(np.float16))


@pytest.mark.gpu
@pytest.mark.alone
def test_p08_the_memory_of_graphs_that_are_gone_is_used_again():
    place = Place("torch", "cuda")
    torch = place.module
    a, out = place.empty((4095, 4095), "float16"), place.empty((4095, 4095), "float16")

    def used_by(graphs: int) -> int:
        tcgemm.release_unused_memory()
        free = torch.cuda.mem_get_info()[0]
        for _ in range(graphs):
            captured(a, a, out).replay()
            torch.cuda.synchronize()
        return free - torch.cuda.mem_get_info()[0]

    used_by(1)  # what torch keeps for graphs
    workspace = tcgemm.plan(a, a, out=out).workspace_bytes
    assert used_by(16) < 4 * workspace


@pytest.mark.gpu
def test_p08_a_capture_does_not_ask_for_arrays_that_are_held():
    """Of products on a given stream: but for the relaxed mode, a question to an event ends it."""
    place = Place("cupy", "cuda")
    cupy = place.module
    values = np.random.default_rng(0).integers(-3, 4, (128, 128))
    a, out = place.array(values), place.empty((128, 128))
    plan = tcgemm.plan(a, a, out=out)
    given, stream = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    cupy.cuda.Device().synchronize()
    with stream:
        plan.execute()
        tcgemm.matmul(a, a, stream=given)
        stream.synchronize()
        stream.begin_capture(cupy.cuda.runtime.streamCaptureModeThreadLocal)
        plan.execute()
        graph = stream.end_capture()
        out.data.memset_async(0, out.nbytes)
        graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(place.to_numpy(out), values @ values)
    given.synchronize()
