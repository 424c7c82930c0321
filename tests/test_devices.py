"""Several GPUs in one process: the current one, the one that computes, and whose memory it is."""

import contextlib
import gc
import warnings

import numpy as np
import pytest
import tcgemm
from frameworks import Place
from test_processes import python
from test_streams import integers, run_threads

pytestmark = [pytest.mark.gpu, pytest.mark.multi_gpu]

# Shapes that take each way through the library: aligned and packed tiles, few rows, parts of K,
# batches for a whole K, strips, CUDA cores, FP32 in halves.
PRODUCTS = {
    "aligned": ("float16", (256, 512), (512, 384)),
    "packed": ("float16", (301, 517), (517, 203)),
    "few rows": ("float32", (3, 700), (700, 900)),
    "long K": ("bfloat16", (64, 20000), (20000, 64)),
    "batch": ("float16", (300, 17, 24), (300, 24, 9)),
    "strips": ("float16", (2000, 48), (48, 40)),
    "halves": ("float32", (1100, 1000), (1000, 1200)),
    "double": ("float64", (130, 257), (257, 140)),
    "integers": ("int8", (128, 256), (256, 131)),
}


class On:
    """Arrays of a framework on a GPU by its number."""

    def __init__(self, framework: str, ordinal: int) -> None:
        self.place, self.ordinal = Place(framework, "cuda"), ordinal
        self.module = self.place.module
        if framework == "jax" and len(self.module.devices("cuda")) < 2:
            pytest.skip("this jax sees one GPU only")

    def current(self) -> contextlib.AbstractContextManager:
        if self.place.framework == "torch":
            return self.module.cuda.device(self.ordinal)
        if self.place.framework == "cupy":
            return self.module.cuda.Device(self.ordinal)
        return contextlib.nullcontext()

    def array(self, values, dtype="float32"):
        if self.place.framework == "torch":
            return self.place.array(values, dtype).to(f"cuda:{self.ordinal}")
        if self.place.framework == "jax":
            device = self.module.devices("cuda")[self.ordinal]
            return self.module.device_put(self.place.array(values, dtype), device)
        with self.current():
            return self.place.array(values, dtype)

    def ordinal_of(self, array) -> int:
        if self.place.framework == "torch":
            return array.device.index
        return array.device.id

    def current_ordinal(self) -> int:
        if self.place.framework == "torch":
            return self.module.cuda.current_device()
        return self.module.cuda.runtime.getDevice()

    def to_numpy(self, array):
        with self.current():
            return self.place.to_numpy(array)

    def synchronize(self) -> None:
        with self.current():
            self.place.synchronize()


@pytest.fixture(params=["torch", "cupy", "jax"])
def second(request) -> On:
    return On(request.param, 1)


@pytest.mark.parametrize("product", PRODUCTS)
def test_p07_a_device_that_is_not_current_computes(second, product):
    dtype, *shapes = PRODUCTS[product]
    x, y = (integers(shape, seed) for seed, shape in enumerate(shapes))
    a, b = second.array(x, dtype), second.array(y, dtype)
    exact = {"float16": "float32", "bfloat16": "float32"}.get(dtype)  # sums are not rounded
    for _ in range(3):
        d = tcgemm.matmul(a, b, out_dtype=exact)
        assert second.ordinal_of(d) == 1
        np.testing.assert_array_equal(second.to_numpy(d), x @ y)
    if second.place.framework != "jax":
        assert second.current_ordinal() == 0


def test_p07_what_the_devices_do_not_share_is_refused():
    torch = Place("torch", "cuda").module
    first, second = On("torch", 0), On("torch", 1)
    a, b = first.array(np.eye(64)), second.array(np.eye(64))
    with pytest.raises(tcgemm.DeviceError, match="b is on cuda:1, but a is on cuda:0"):
        tcgemm.matmul(a, b)
    with pytest.raises(tcgemm.DeviceError, match="stream belongs to cuda:1"):
        tcgemm.matmul(a, a, stream=torch.cuda.Stream(device=1))
    with pytest.raises(tcgemm.DeviceError, match="out is on cuda:1"):
        tcgemm.matmul(a, a, out=b)


@pytest.mark.parametrize("framework", ["torch", "cupy", "jax"])
def test_p07_results_are_read_by_the_other_device(framework):
    """Copied there, and by its kernels, where the framework lets one device read another's."""
    x = integers((300, 300))
    first, second = On(framework, 0), On(framework, 1)
    a = second.array(x, "float16")
    d = tcgemm.matmul(a, a, out_dtype="float32")
    if framework == "cupy" and not first.module.cuda.runtime.deviceCanAccessPeer(0, 1):
        pytest.skip("these GPUs do not read each other's memory")
    if framework == "torch":
        there = d.to("cuda:0") + d.t().to("cuda:0").t()
    elif framework == "jax":
        there = first.module.device_put(d, first.module.devices("cuda")[0]) * 2
    else:
        with first.current(), warnings.catch_warnings(action="ignore"):  # CuPy says that it does
            there = first.module.asarray(d) + d
    np.testing.assert_array_equal(first.to_numpy(there), 2 * (x @ x))


def test_p07_jax_adds_up_the_results_of_both_devices():
    """Its collectives read what each device has computed."""
    second = On("jax", 1)
    jax = second.module
    devices = jax.devices("cuda")[:2]
    x = integers((256, 256)).astype(np.float32)
    on_each = [jax.device_put(x, device) for device in devices]
    mesh = jax.sharding.Mesh(np.array(devices), "x")
    spec = jax.sharding.PartitionSpec("x")
    both = jax.make_array_from_single_device_arrays(
        (512, 256),
        jax.sharding.NamedSharding(mesh, spec),
        [tcgemm.matmul(a, a) for a in on_each],
    )
    summed = jax.jit(lambda both: both[:256] + both[256:])(both)
    np.testing.assert_array_equal(np.asarray(summed), 2 * (x @ x))


def test_p07_arrays_that_do_not_say_where_they_are():
    """The CUDA Array Interface has no device: the address says it."""

    class Plain:
        def __init__(self, array):
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    x = integers((64, 48)).astype(np.float32)
    for ordinal in (0, 1):
        p = On("torch", ordinal)
        a, b = p.array(x), p.array(x.T.copy())
        out = p.array(np.zeros((64, 64)))
        tcgemm.matmul(Plain(a), Plain(b), out=out)
        p.synchronize()
        np.testing.assert_array_equal(p.to_numpy(out), x @ x.T)


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_p07_a_plan_for_each_device(framework):
    """With workspaces, in turns, each on the stream that is current on its device."""
    x, y = integers((301, 517), 1), integers((517, 203), 2)
    places = [On(framework, ordinal) for ordinal in (0, 1)]
    plans = [
        tcgemm.plan(p.array(x, "float16"), p.array(y, "float16"), out_dtype="float32")
        for p in places
    ]
    assert all(plan.workspace_bytes > 0 for plan in plans)
    for _ in range(20):
        for p, plan in zip(places, plans, strict=True):
            np.testing.assert_array_equal(p.to_numpy(plan.execute()), x @ y)
    with places[1].current():  # the other one is current now
        for p, plan in zip(places, plans, strict=True):
            d = plan.execute()
            assert p.ordinal_of(d) == p.ordinal
            assert places[1].current_ordinal() == 1
            np.testing.assert_array_equal(p.to_numpy(d), x @ y)
    del plans, d
    gc.collect()
    tcgemm.release_unused_memory()


def test_p07_a_graph_of_the_other_device():
    torch = Place("torch", "cuda").module
    second = On("torch", 1)
    x, y = integers((301, 517), 1), integers((517, 203), 2)
    a, b = second.array(x, "float16"), second.array(y, "float16")
    out = second.array(np.zeros((301, 203)))
    plan = tcgemm.plan(a, b, out=out, out_dtype="float32")
    with second.current():
        graph = torch.cuda.CUDAGraph()
        plan.execute()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            plan.execute()
    out.zero_()
    graph.replay()
    np.testing.assert_array_equal(second.to_numpy(out), x @ y)


def test_p07_threads_on_both_devices():
    x = {size: integers((size, size), size) for size in (9, 64, 130, 333)}

    def work(seed):
        p = On("torch", seed % 2)
        for turn in range(30):
            for size, values in x.items():
                dtype = ("float16", "float32", "int8")[turn % 3]
                a = p.array(values, dtype)
                d = tcgemm.matmul(a, a, out_dtype=None if dtype == "int8" else "float32")
                np.testing.assert_array_equal(p.to_numpy(d), values @ values)
                host = values.astype(np.float32)
                assert size > 64 or (tcgemm.matmul(host, host) == values @ values).all()

    run_threads(work, count=8)


ACTIVE = """
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")

    def active(ordinal):
        flags, is_active = ctypes.c_uint(), ctypes.c_int(7)
        assert cuda.cuDevicePrimaryCtxGetState(
            ordinal, ctypes.byref(flags), ctypes.byref(is_active)) == 0
        return is_active.value
"""


def test_p07_host_arrays_on_the_second_device_leave_the_first_alone():
    """A context is hundreds of megabytes on a GPU that somebody else may be using."""
    python(
        ACTIVE
        + """
    import numpy as np, tcgemm
    a = np.arange(300 * 300, dtype=np.float32).reshape(300, 300) % 7
    for precision in ("fp32", "fp16", "tf32"):
        assert (tcgemm.matmul(a, a, precision=precision) == a @ a).all()
    plan = tcgemm.plan(a, a, precision="fp16")
    plan.execute()
    del plan
    tcgemm.release_unused_memory()
    assert (active(0), active(1)) == (0, 1), (active(0), active(1))
    """,
        TCGEMM_DEVICE="cuda:1",
    )


def test_p07_arrays_on_the_second_device_leave_the_first_alone():
    Place("torch", "cuda")  # or skipped
    python(
        ACTIVE
        + """
    import torch, tcgemm
    a = torch.ones(300, 300, device="cuda:1", dtype=torch.float16)
    before = active(0)
    d = tcgemm.matmul(a, a, out_dtype="float32")
    plan = tcgemm.plan(a, a, out_dtype="float32")
    assert torch.equal(plan.execute(), d) and float(d[0, 0]) == 300
    del plan
    assert (before, active(0), active(1)) == (0, 0, 1), (before, active(0), active(1))
    assert torch.cuda.current_device() == 0
    """
    )
