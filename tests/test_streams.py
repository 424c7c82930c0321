"""Streams, memory that is freed or reused in flight, threads."""

import contextlib
import functools
import gc
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import tcgemm
from frameworks import Place, each_place, integers

LEGACY, PER_THREAD = 1, 2  # what DLPack and CUDA call the default streams

gpu_frameworks = each_place(
    lambda framework, device: device == "cuda" and framework in ("torch", "cupy")
)


class Streams:
    """torch's and CuPy's streams under one roof."""

    def __init__(self, place: Place) -> None:
        self.place, self.module = place, place.module

    def new(self):
        if self.place.framework == "torch":
            return self.module.cuda.Stream()
        return self.module.cuda.Stream(non_blocking=True)

    def use(self, stream) -> contextlib.AbstractContextManager:
        if self.place.framework == "torch":
            return self.module.cuda.stream(stream)
        return stream

    def handle(self, stream) -> int:
        return stream.cuda_stream if self.place.framework == "torch" else stream.ptr

    def be_busy(self) -> None:
        """Keep the current stream at work for about 0.2 ms."""
        if self.place.framework == "torch":
            self.module.cuda._sleep(300_000)  # clock cycles
        else:
            self._spin((1,), (1,), (300_000,))

    @functools.cached_property
    def _spin(self):
        code = """extern "C" __global__ void spin(long long cycles) {
            const long long start = clock64();
            while (clock64() - start < cycles) {}
        }"""
        return self.module.RawKernel(code, "spin")

    def is_done(self, stream) -> bool:
        return stream.query() if self.place.framework == "torch" else stream.done

    def synchronize(self) -> None:
        if self.place.framework == "torch":
            self.module.cuda.synchronize()
        else:
            self.module.cuda.Device().synchronize()


@pytest.fixture
def streams(place):
    streams = Streams(place)
    yield streams
    streams.synchronize()


# ---- without a GPU ----


class CudaStream:
    """An object with the protocol, and a count of its use."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def __cuda_stream__(self):
        self.asked += 1
        return self.answer


@pytest.mark.parametrize("stream", [None, 0, 1, 2, 12345])
def test_host_arrays_take_any_stream(stream, monkeypatch):
    """They are computed when the call returns: on the CPU, where the number means nothing."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(3, dtype=np.float32)
    np.testing.assert_array_equal(tcgemm.matmul(a, a, stream=stream), a)


def test_a_plan_computes_on_the_stream_that_it_was_made_with(monkeypatch):
    """Unless it is given another."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(3, dtype=np.float32)
    bound, other = CudaStream((0, 1)), CudaStream((0, 2))
    plan = tcgemm.plan(a, a, stream=bound)
    asked = bound.asked
    plan.execute()
    assert (bound.asked, other.asked) == (asked + 1, 0)
    plan.execute(stream=other)
    assert (bound.asked, other.asked) == (asked + 1, 1)


def test_stream_objects(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(3, dtype=np.float32)
    stream = CudaStream((0, 1))
    tcgemm.matmul(a, a, stream=stream)
    assert stream.asked == 1
    for wrong, words in (
        (CudaStream(7), r"CudaStream.* no pair; it must return \(version, handle\)"),
        (CudaStream((0, "x")), "str"),
        (CudaStream((0, -1)), "is -1"),
        (1.5, "float"),
        ([], "list"),
        (True, "bool"),
    ):
        with pytest.raises(tcgemm.InvalidArgument, match=f"stream.*{words}"):
            tcgemm.matmul(a, a, stream=wrong)

    for ordinal in (0, 10**40):  # as torch.cuda.Stream
        words = f"^stream belongs to cuda:{ordinal}, but the product is computed on cpu; leave str"
        with pytest.raises(tcgemm.DeviceError, match=words):
            tcgemm.matmul(a, a, stream=SimpleNamespace(cuda_stream=0, device_index=ordinal))


def test_what_is_wrong_with_a_stream_object_is_named(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(3, dtype=np.float32)
    for attributes, words in (
        ({"cuda_stream": "x"}, "cuda_stream is 'x'; it must be an int"),
        ({"cuda_stream": 0, "device_index": None}, "device_index is None; it must be an int"),
        ({"cuda_stream": 0, "device_index": "x"}, "device_index is 'x'; it must be an int"),
        ({"ptr": 2, "device_id": 1.5}, "device_id is 1.5; it must be an int"),
        ({"ptr": [], "device_id": -1}, r"ptr is \[\]; it must be an int"),
        ({"__cuda_stream__": (0, 1)}, "__cuda_stream__ is no method; it must be one that returns"),
    ):
        words = f"^stream is a <class 'types.SimpleNamespace'>, whose {words}"
        with pytest.raises(tcgemm.InvalidArgument, match=words):
            tcgemm.matmul(a, a, stream=SimpleNamespace(**attributes))


def test_p09_thread_hammer_on_the_cpu(monkeypatch):
    """16 threads, mixed shapes and dtypes, one plan shared by all."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    shared = integers((64, 64)).astype(np.float32)
    plan = tcgemm.plan(shared, shared)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            m, n, k = rng.integers(1, 100, 3)
            dtype = rng.choice(["float16", "float32", "float64", "int8"])
            a = rng.integers(-3, 4, (m, k)).astype(dtype)
            b = rng.integers(-3, 4, (k, n)).astype(dtype)
            np.testing.assert_array_equal(tcgemm.matmul(a, b), a.astype(int) @ b.astype(int))
            np.testing.assert_array_equal(plan.execute(), shared @ shared)
            with pytest.raises(tcgemm.ShapeError):
                tcgemm.matmul(np.ones((2, 3), dtype), np.ones((2, 3), dtype))

    run_threads(work)


def run_threads(work, count=16):
    """work(seed) in each of `count` threads; the first error of one fails the test."""
    errors = []

    def guarded(seed):
        try:
            work(seed)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads interleave
    try:
        threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
            assert not thread.is_alive(), "deadlock"
    finally:
        sys.setswitchinterval(interval)
    assert not errors, errors[0]


def test_other_threads_run_while_a_product_is_computed(monkeypatch):
    """The GIL is free meanwhile: a thread of Python gets on during a long product."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    monkeypatch.setenv("TCGEMM_NUM_THREADS", "1")
    a = np.ones((1200, 1200))
    done = threading.Event()
    progress = []

    def count():
        while not done.is_set():
            progress.append(1)
            done.wait(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    while not progress:
        pass
    before = len(progress)
    tcgemm.matmul(a, a)
    during = len(progress) - before
    done.set()
    counter.join()
    assert during >= 3


# ---- P05: producers and consumers on streams of their own ----


@pytest.mark.gpu
@gpu_frameworks
@pytest.mark.parametrize("consumer", ["current", "legacy", "per-thread", "object", "handle"])
def test_p05_nondefault_stream(place, streams, consumer):
    """Operands made by slow work on one stream, multiplied on another: right in 1,000 runs."""
    producer, other = streams.new(), streams.new()
    given = {
        "current": None,
        "legacy": LEGACY,
        "per-thread": PER_THREAD,
        "object": other,
        "handle": streams.handle(other),
    }[consumer]
    size = 64
    eye = place.array(np.eye(size))
    with streams.use(producer):
        a, out = place.empty((size, size)), place.empty((size, size))
        streams.synchronize()
        for run in range(1000):
            streams.be_busy()
            a.fill_(run % 2000) if place.framework == "torch" else a.fill(run % 2000)
            result = tcgemm.matmul(a, eye, out=None if run % 2 else out, stream=given)
            if consumer == "current":  # the next work on `producer` comes after the product
                values = place.to_numpy(result)
            else:
                streams.synchronize()
                values = place.to_numpy(result)
            assert (values == run % 2000).all(), run


@pytest.mark.gpu
@pytest.mark.parametrize("frameworks", [("torch", "cupy"), ("cupy", "torch")])
def test_p05_two_frameworks_on_two_streams(frameworks):
    """Without stream=, each framework's current stream sees the product in its order."""
    first, second = (Place(name, "cuda") for name in frameworks)
    one, two = Streams(first), Streams(second)
    s, t = one.new(), two.new()
    with one.use(s), two.use(t):
        b = second.empty((64, 64))
        out = second.empty((64, 64))
        a = first.array(np.eye(64))
        one.synchronize()
        for run in range(200):
            two.be_busy()
            b.fill_(run) if second.framework == "torch" else b.fill(run)
            tcgemm.matmul(a, b, out=out)
            assert (second.to_numpy(out) == run).all(), run  # read on t


@pytest.mark.gpu
@gpu_frameworks
def test_cuda_stream_protocol(place, streams):
    stream = streams.new()
    asked = CudaStream((0, streams.handle(stream)))
    a = place.array(integers((40, 40)))
    result = tcgemm.matmul(a, a, stream=asked)
    stream.synchronize()
    assert asked.asked == 1
    np.testing.assert_array_equal(place.to_numpy(result), integers((40, 40)) @ integers((40, 40)))


@pytest.mark.gpu
@pytest.mark.parametrize("where", [("jax", "cuda"), ("numpy", "cpu")], ids="-".join)
def test_synchronous_calls_take_a_stream(where):
    """Computed when the call returns, and after what the stream holds."""
    stream = Streams(Place("torch", "cuda")).new()
    place, values = Place(*where), integers((40, 40))
    a = place.array(values)
    result = tcgemm.matmul(a, a, stream=stream)
    assert place.owns(result)
    np.testing.assert_array_equal(place.to_numpy(result), values @ values)


# ---- P06: memory freed and used again right after the call ----


@pytest.mark.gpu
@gpu_frameworks
@pytest.mark.parametrize("own_stream", [False, True])
def test_p06_free_after_call(place, streams, own_stream):
    """Operands die while the product waits; what takes their memory must not reach the result."""
    stream = streams.new() if own_stream else None
    values = integers((256, 256))
    expected = values @ values
    for run in range(100):
        a, b = place.array(values), place.array(values)
        streams.synchronize()
        with streams.use(stream) if own_stream else contextlib.nullcontext():
            streams.be_busy()  # the stream of the product is late
        result = tcgemm.matmul(a, b, stream=stream)
        del a, b
        junk = [place.empty((256, 256)) for _ in range(4)]  # written on the current stream
        streams.synchronize()
        np.testing.assert_array_equal(place.to_numpy(result), expected, err_msg=str(run))
        del junk, result
        gc.collect()


@pytest.mark.gpu
def test_p06_free_after_call_jax():
    place = Place("jax", "cuda")
    values = integers((256, 256))
    results = []
    for _ in range(100):
        a = place.array(values) * 1  # made by JAX, and perhaps not ready yet
        results.append(tcgemm.matmul(a, a))
        del a
        junk = place.array(np.full((256, 256), 9)) + 1
        del junk
    for result in results:
        np.testing.assert_array_equal(place.to_numpy(result), values @ values)
        np.testing.assert_array_equal(place.to_numpy(result + 1), values @ values + 1)


@pytest.mark.gpu
def test_p06_a_jax_result_is_dropped_while_jax_reads_it():
    """No later product gets its memory before."""
    place = Place("jax", "cuda")
    jax, size = place.module, 2048
    one, two = (jax.numpy.full((size, size), value, "float32") for value in (1, 2))
    long = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda _, v: jax.numpy.tanh(v @ v), x))
    add = jax.jit(lambda x: x + 1)
    jax.block_until_ready((long(one), add(one), tcgemm.matmul(two, two)))
    result = tcgemm.matmul(one, one)
    busy = long(two)
    later = add(result)
    del result
    others = [tcgemm.matmul(two, two) for _ in range(3)]
    np.testing.assert_array_equal(place.to_numpy(later), size + 1)
    for other in others:
        np.testing.assert_array_equal(place.to_numpy(other), 4 * size)
    jax.block_until_ready(busy)


@pytest.mark.gpu
def test_p06_jax_results_do_not_share_memory():
    """Not scalars either, which JAX might make of a constant that it keeps."""
    place = Place("jax", "cuda")
    for shape in ((3,), (4, 3)):
        values = [integers(shape, seed) for seed in range(4)]
        b = integers((3,), 9)
        results = [tcgemm.matmul(place.array(v), place.array(b)) for v in values]
        for v, result in zip(values, results, strict=True):
            np.testing.assert_array_equal(place.to_numpy(result), v @ b)
        zero = place.module.numpy.zeros(results[0].shape, "float32")
        np.testing.assert_array_equal(place.to_numpy(zero), 0)


# ---- P07 ----


@pytest.mark.gpu
@gpu_frameworks
def test_p07_host_and_device_do_not_mix(place):
    a, host = place.array(np.eye(4)), np.eye(4, dtype=np.float32)
    with pytest.raises(tcgemm.DeviceError, match="b is on cpu, but a is on cuda:0"):
        tcgemm.matmul(a, host)
    with pytest.raises(tcgemm.DeviceError, match="b is on cuda:0, but a is on cpu"):
        tcgemm.matmul(host, a)
    with pytest.raises(tcgemm.DeviceError, match="out is on cpu"):
        tcgemm.matmul(a, a, out=host.copy())


# ---- P08: workspaces of plans ----


@pytest.mark.gpu
@gpu_frameworks
def test_p08_plan_waits_for_the_former_user_of_its_workspace(place, streams):
    """A captured run can't, so that the plan does before it is there."""
    a, out = place.array(integers((256, 256))), place.empty((256, 256))
    former = tcgemm.plan(a, a, out=out, precision="fp16")
    assert former.workspace_bytes > 0
    former.execute()  # loads the kernel, which takes longer than the stream is busy below
    stream = streams.new()
    streams.synchronize()
    with streams.use(stream):
        for _ in range(50):
            streams.be_busy()
        former.execute()
    assert not streams.is_done(stream)
    del former
    gc.collect()
    tcgemm.plan(a, a, out=out, precision="fp16")
    assert streams.is_done(stream)


@pytest.mark.gpu
def test_p08_a_plan_moves_between_streams():
    """Its workspace serves one product at a time, whatever streams they are on."""
    place = Place("torch", "cuda")
    streams = Streams(place)
    values = [integers((300, 300), seed) for seed in range(4)]
    arrays = [place.array(v) for v in values]
    plan = tcgemm.plan(arrays[0], arrays[0], precision="fp16")
    several = [streams.new() for _ in range(4)]
    streams.synchronize()
    for _ in range(50):
        results = []
        for array, stream in zip(arrays, several, strict=True):
            with streams.use(stream):
                streams.be_busy()
                results.append(plan.execute(a=array, b=array))
        streams.synchronize()
        for v, result in zip(values, results, strict=True):
            np.testing.assert_array_equal(place.to_numpy(result), v @ v)


# ---- P09 ----


@pytest.mark.gpu
@gpu_frameworks
def test_p09_thread_hammer(place, streams):
    """16 threads, each on its own stream, with mixed shapes; host arrays in between."""

    def work(seed):
        rng = np.random.default_rng(seed)
        stream = streams.new()
        with streams.use(stream):
            for _ in range(40):
                m, n, k = rng.integers(1, 200, 3)
                dtype = str(rng.choice(["float16", "float32", "int8"]))
                a, b = rng.integers(-1, 2, (m, k)), rng.integers(-1, 2, (k, n))
                result = tcgemm.matmul(place.array(a, dtype), place.array(b, dtype))
                np.testing.assert_array_equal(place.to_numpy(result), a @ b)
                x, y = a.astype(np.float32), b.astype(np.float32)
                np.testing.assert_array_equal(tcgemm.matmul(x, y), a @ b)

    run_threads(work)


@pytest.mark.gpu
@gpu_frameworks
def test_p09_threads_launch_one_kernel_with_more_and_with_less_shared_memory(place, streams):
    """The limit that a kernel is given is the process's; K = 64 needs half of what 128 does."""
    name = "sm80_mma_f16_strips_128x128"

    def work(seed):
        k = 63 + seed % 2 * 64
        a = np.random.default_rng(seed).integers(-1, 2, (127, k))
        stream = streams.new()
        with streams.use(stream):
            x = place.array(a, "float16")
            for _ in range(100):
                result = tcgemm.matmul(x, x.T)
            np.testing.assert_array_equal(place.to_numpy(result), a @ a.T)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCGEMM_FORCE_KERNEL", name)
        run_threads(work)
