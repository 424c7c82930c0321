"""Errors of the core: named before anything is launched, output untouched, process alive."""

import ctypes

import numpy as np
import pytest
import tcgemm
from harness import FAMILY_MODES, SIXTEEN_BIT_FAMILIES, Layout, c_api, cuda, families
from harness.formats import FORMATS
from interpreter import python

HUGE = 2**62


@pytest.fixture
def device(lab):
    return 0 if lab.on_gpu else c_api.CPU


class Matrices:
    """FP32 operands of 4 x 5 x 6, D prefilled and guarded, for calls of the C interface."""

    def __init__(self, lab):
        rng = np.random.default_rng(3)
        self.a_values = rng.integers(-4, 4, (4, 6)).astype(np.float32)
        self.b_values = rng.integers(-4, 4, (6, 5)).astype(np.float32)
        self.a, self.b = lab.place(self.a_values), lab.place(self.b_values)
        self.c = lab.place(np.ones((4, 5), np.float32))
        self.d = lab.place_output((4, 5), "float32")
        self.on_gpu = lab.on_gpu

    def addresses(self):
        return self.a.address, self.b.address, self.c.address, self.d.address

    def untouched(self):
        if self.on_gpu:
            cuda.synchronize()
        return self.d.unwritten(self.d.read("D")) == 20

    def right(self):
        if self.on_gpu:
            cuda.synchronize()
        return (self.d.read("D") == self.a_values @ self.b_values).all()


def change(path, value):
    """A function that sets problem.<path>, e.g. "a.row_stride" or "batch_shape[0]"."""

    def apply(problem):
        owner, _, field = path.rpartition(".")
        target = getattr(problem, owner) if owner else problem
        if "[" in field:
            name, index = field[:-1].split("[")
            getattr(target, name)[int(index)] = value
        else:
            setattr(target, field, value)

    return apply


BAD_PROBLEMS = (
    # what is changed, status, words of the message
    ((("m", -1),), "invalid_shape", "m is -1"),
    ((("n", -5),), "invalid_shape", "n is -5"),
    ((("k", -2),), "invalid_shape", "k is -2"),
    ((("batch_rank", 9),), "invalid_shape", "batch_rank is 9"),
    ((("batch_rank", -1),), "invalid_shape", "batch_rank is -1"),
    ((("batch_rank", 1), ("batch_shape[0]", -3)), "invalid_shape", "batch_shape[0] is -3"),
    ((("a.dtype", 8),), "invalid_argument", "operand A"),
    ((("b.dtype", -1),), "invalid_argument", "operand B"),
    ((("d.dtype", 77),), "invalid_argument", "operand D"),
    ((("a.dtype", 5),), "invalid_dtype", "A is int32"),
    ((("a.dtype", 4),), "invalid_dtype", "A (int8)"),
    ((("d.dtype", 5), ("c.dtype", 5)), "invalid_dtype", "D is int32"),
    ((("c.dtype", 3),), "invalid_dtype", "C is float64"),
    ((("precision", 99),), "invalid_argument", "precision"),
    ((("accumulate", -1),), "invalid_argument", "accumulate"),
    ((("determinism", 2),), "invalid_argument", "determinism"),
    ((("precision", 7),), "invalid_dtype", "fp8_e4m3"),
    ((("precision", 8),), "invalid_dtype", "fp8_e5m2"),
    ((("precision", 11),), "invalid_argument", "precision"),
    ((("overflow", 2),), "invalid_argument", "overflow"),
    ((("overflow", 1),), "invalid_argument", "overflow nan"),
    ((("scale_a.kind", 5),), "invalid_argument", "scale_a"),
    ((("scale_b.kind", 1),), "invalid_argument", "scale_b"),
    ((("scale_d", 1),), "invalid_argument", "scale_d"),
    ((("accumulate", 3), ("precision", 5)), "invalid_argument", "accumulate promoted"),
    ((("accumulate", 1),), "invalid_argument", "accumulate fp16"),
    ((("precision", 6),), "invalid_dtype", "int8"),
    ((("a.alignment", 3),), "invalid_argument", "operand A: alignment is 3"),
    ((("b.alignment", 32),), "invalid_argument", "operand B: alignment is 32"),
    ((("d.alignment", 2),), "invalid_layout", "operand D"),
    ((("d.row_stride", 0),), "invalid_layout", "share an address"),
    ((("d.row_stride", 3),), "invalid_layout", "share an address"),
    ((("d.col_stride", 0),), "invalid_layout", "share an address"),
)


@pytest.mark.parametrize(("changes", "status", "words"), BAD_PROBLEMS, ids=lambda x: str(x)[:40])
def test_e01_bad_args_table(lab, device, changes, status, words):
    if lab.family in SIXTEEN_BIT_FAMILIES:
        pytest.skip("validation comes before any family: simt and host show it")
    matrices = Matrices(lab)
    problem = c_api.problem(4, 5, 6)
    for path, value in changes:
        change(path, value)(problem)
    assert c_api.gemm(problem, *matrices.addresses(), device=device) == status
    assert words in c_api.last_error()
    assert c_api.Plan(problem, device).status == status
    assert matrices.untouched()


def float32_lab(lab):
    if lab.family in SIXTEEN_BIT_FAMILIES:
        pytest.skip("FP32 operands are not for this family: simt and host show it")
    return Matrices(lab)


def test_e01_null_and_misaligned_pointers(lab, device):
    matrices = float32_lab(lab)
    problem = c_api.problem(4, 5, 6)
    for operand in (problem.a, problem.b, problem.c, problem.d):
        operand.alignment = 4
    plan = c_api.Plan(problem, device)
    assert plan.status == "ok", c_api.last_error()
    good = matrices.addresses()
    for index, name in enumerate("ABCD"):
        for wrong in (None, good[index] + 2):
            pointers = list(good)
            pointers[index] = wrong
            assert plan.run(*pointers, beta=1.0) == "invalid_layout"
            assert name in c_api.last_error()
            assert matrices.untouched()
    assert plan.run(*good, workspace=good[0] + 4, workspace_bytes=4) in ("ok", "invalid_argument")
    matrices.d.refill()
    # What is not read may be null: C at beta = 0.
    assert plan.run(good[0], good[1], None, good[3]) == "ok", c_api.last_error()
    assert matrices.right()


def test_e01_null_structures(lab, device):
    lib = c_api.library()
    float32_lab(lab)  # skips a family that does not take FP32
    assert c_api.status_name(lib.tcgemm_plan_create(None, device, None)) == "invalid_argument"
    problem = c_api.problem(1, 1, 1)
    code = lib.tcgemm_plan_create(ctypes.byref(problem), device, None)
    assert c_api.status_name(code) == "invalid_argument"
    assert "NULL" in c_api.last_error()
    lib.tcgemm_plan_destroy(None)
    nowhere = ctypes.byref(c_api.Pointers())
    for name, call in (
        ("plan", lambda: lib.tcgemm_plan_run(None, nowhere, 1.0, 0.0, None, None, 0)),
        ("problem", lambda: lib.tcgemm_gemm(None, device, nowhere, 1.0, 0.0, None)),
        (
            "pointers",
            lambda: lib.tcgemm_gemm(ctypes.byref(problem), device, None, 1.0, 0.0, None),
        ),
    ):
        assert c_api.status_name(call()) == "invalid_argument"
        assert f"{name} is NULL" in c_api.last_error()
    assert c_api.gemm(problem, None, None, None, None, device=device) == "invalid_layout"


def test_s02_and_s03_null_operands_that_are_not_read(lab, device):
    """alpha = 0: A and B may be null. K = 0 likewise; beta = 0: C likewise."""
    matrices = float32_lab(lab)
    for k, alpha in ((6, 0.0), (0, 1.0)):
        problem = c_api.problem(4, 5, k)
        for operand in (problem.a, problem.b, problem.c, problem.d):
            operand.alignment = 4
        for beta, expected in ((0.0, 0.0), (2.0, 2.0)):
            matrices.d.refill()
            c = matrices.c.address if beta else None
            status = c_api.gemm(problem, None, None, c, matrices.d.address, alpha, beta, device)
            assert status == "ok", c_api.last_error()
            if lab.on_gpu:
                cuda.synchronize()
            assert (matrices.d.read("D") == expected).all()


def test_s04_empty_products_take_null_pointers(lab, device):
    for m, n, batch in ((0, 5, 1), (4, 0, 1), (4, 5, 0)):
        problem = c_api.problem(m, n, 6)
        problem.batch_rank, problem.batch_shape[0] = 1, batch
        status = c_api.gemm(problem, None, None, None, None, device=device)
        assert status == "ok", c_api.last_error()


def test_e02_size_overflow(lab, device):
    """Sizes and strides whose offsets leave int64: refused, in no step wrapped around."""
    matrices = float32_lab(lab)
    for changes in (
        (("m", HUGE), ("n", HUGE)),
        (("m", HUGE), ("a.row_stride", HUGE)),
        (("n", HUGE), ("b.col_stride", 4)),
        (("a.row_stride", HUGE),),
        (("b.row_stride", -HUGE),),
        (("batch_rank", 1), ("batch_shape[0]", HUGE), ("a.batch_stride[0]", HUGE)),
        (("batch_rank", 1), ("batch_shape[0]", 5), ("b.batch_stride[0]", HUGE)),
        (("batch_rank", 2), ("batch_shape[0]", HUGE), ("batch_shape[1]", HUGE)),
    ):
        problem = c_api.problem(4, 5, 6)
        for path, value in changes:
            change(path, value)(problem)
        if problem.batch_rank:  # so that D has a layout of its own
            problem.d.batch_stride[0] = problem.c.batch_stride[0] = 20
            problem.d.batch_stride[1] = problem.c.batch_stride[1] = 20
        status = c_api.gemm(problem, *matrices.addresses(), device=device)
        assert status in ("invalid_shape", "invalid_layout"), (changes, status)
        assert c_api.last_error()
        assert matrices.untouched()
    problem = c_api.problem(4, 5, 6)
    problem.a.row_stride = HUGE
    assert c_api.gemm(problem, *matrices.addresses(), device=device) == "invalid_shape"
    assert "spans more than 2^62 bytes" in c_api.last_error()


def test_e03_no_exception_through_c(lab, device):
    """Bad devices and bad problems in turn: a status each time, and the next call works."""
    matrices = float32_lab(lab)
    problem = c_api.problem(4, 5, 6)
    for operand in (problem.a, problem.b, problem.c, problem.d):
        operand.alignment = 4
    for bad_device in (-2, -1000, 9999, 2**31 - 1):
        status = c_api.gemm(problem, *matrices.addresses(), device=bad_device)
        assert status == "device", c_api.last_error()
        assert str(bad_device) in c_api.last_error()
        assert matrices.untouched()
    assert c_api.gemm(problem, *matrices.addresses(), device=device) == "ok"
    assert matrices.right()
    lib = c_api.library()
    assert lib.tcgemm_status_name(8) == b"out of memory"
    assert lib.tcgemm_status_name(12345)  # a name for what is no status, too
    assert lib.tcgemm_version().decode() == tcgemm.__version__
    assert lib.tcgemm_device_count() == (
        cuda.device_count() if lab.on_gpu else lib.tcgemm_device_count()
    )


def test_e04_output_stays_whole_where_memory_runs_out():
    """Too little address space for what a call needs: MemoryError, and the next call works."""
    script = """
        import os, resource
        os.environ["TCGEMM_DEVICE"] = "cpu"
        import numpy as np, tcgemm
        a = np.ones((64, 64), np.float32)
        first = tcgemm.matmul(a, a)
        big = np.broadcast_to(np.float32(1), (40000, 1))
        wide = np.broadcast_to(np.float32(1), (1, 40000))
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
        try:
            tcgemm.matmul(big, wide)  # a result of 6.4 GB
        except MemoryError as error:
            print("refused:", type(error).__name__)
        assert (tcgemm.matmul(a, a) == first).all()
        print("alive")
    """
    output = python(script)
    assert "refused:" in output
    assert "alive" in output


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize("family", [f for f in FAMILY_MODES if f not in ("sm90_wgmma", "host")])
def test_e04_oom_workspace(family):
    """Device memory is full: an error with the byte count, D untouched, a later call works."""
    if family not in families.runnable():
        pytest.skip(f"{family} does not run on this GPU")
    output = python(_FULL_DEVICE, TCGEMM_FORCE_FAMILY=family)
    assert "refused" in output
    assert "alive" in output


# In a process of its own: the pool holds on to memory that other tests took.
_FULL_DEVICE = """
    import re, os
    import numpy as np, tcgemm
    from harness import MODES, Lab, cuda
    lab = Lab(tcgemm, os.environ["TCGEMM_FORCE_FAMILY"])
    size = 4096
    a = np.random.default_rng(8).integers(-1, 2, (size, size)).astype(np.float32)
    # FP32 operands that are packed to FP16 first, in rows that no vector load takes.
    run = lab.prepare(MODES["fp32_as_fp16"], a, a, out_dtype="float16")
    needed = run.plan.workspace_bytes
    assert needed >= 2 * 2 * size * size, needed
    operands = {name: run.operands[name].array for name in ("a", "b", "out")}
    ballast = cuda.DeviceMemory(cuda.memory()[0] - needed // 2)
    try:  # a plan holds its workspace already; this call has to find one
        modes = {"precision": "fp16", "out_dtype": "float16"}
        tcgemm.matmul(operands["a"], operands["b"], out=operands["out"], **modes)
    except tcgemm.OutOfMemoryError as error:
        assert re.search(r"[0-9]+ bytes", str(error)), error
        print("refused:", error)
    out = run.operands["out"]
    assert out.unwritten(out.read("out")) == size * size
    del ballast
    run.execute()
    print("alive")
"""


def test_e05_failing_allocations_in_python(lab):
    """Each allocation limit in turn: a MemoryError or a right result, nothing in between."""
    if lab.family != "host":
        pytest.skip("the n-th device allocation is test_e04_oom_workspace's")
    script = """
        import os, resource
        os.environ["TCGEMM_DEVICE"] = "cpu"
        os.environ["TCGEMM_NUM_THREADS"] = "1"
        import numpy as np, tcgemm
        a = np.arange(700 * 700, dtype=np.float32).reshape(700, 700) % 5
        expected = a @ a
        outcomes = set()
        for extra in [*range(0, 64, 2), 128, 512]:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + extra * 65536, resource.RLIM_INFINITY))
            try:
                result = tcgemm.matmul(a, a)
                outcomes.add("result")
            except MemoryError:
                result = None
                outcomes.add("refused")
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            assert result is None or (result == expected).all()
            result = None
        assert (tcgemm.matmul(a, a) == expected).all()
        print(sorted(outcomes))
    """
    output = python(script)
    assert "['refused', 'result']" in output


@pytest.mark.gpu
def test_e07_sticky_error():
    """A kernel of the user faults: the next call says that it was not its own, and returns."""
    assert "refused" in python(_FAULT, timeout=120)


_FAULT = """
    import ctypes, os
    import numpy as np, tcgemm
    from harness import cuda, Lab
    lab = Lab(tcgemm, "simt")
    a = lab.place(np.ones((64, 64), np.float32))
    out = lab.place_output((64, 64), "float32")
    tcgemm.matmul(a.array, a.array, out=out.array)  # works
    cuda.synchronize()
    ptx = b'''
    .version 7.0
    .target sm_70
    .address_size 64
    .visible .entry fault() {
        .reg .u64 %p;
        .reg .u32 %v;
        mov.u64 %p, 16;
        mov.u32 %v, 1;
        st.global.u32 [%p], %v;
        ret;
    }
    '''
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.call("cuModuleLoadData", ctypes.byref(module), ptx)
    cuda.call("cuModuleGetFunction", ctypes.byref(function), module, b"fault")
    cuda.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    try:
        cuda.synchronize()
    except RuntimeError as error:
        print("the fault:", error)
    try:
        tcgemm.matmul(a.array, a.array, out=out.array)
    except tcgemm.CudaError as error:
        assert "An earlier kernel of this process faulted" in str(error), error
        print("refused:", error)
    os._exit(0)  # the context is lost: nothing can be freed
"""


def test_int8_takes_whole_scalars_only(lab):
    if "int8" not in FAMILY_MODES[lab.family]:
        return
    a = lab.place(np.ones((4, 4), np.int8))
    out = lab.place_output((4, 4), "int32", Layout(pad=1))
    for scalars in ({"alpha": 0.5}, {"beta": 1.5, "c": lab.place(np.ones((4, 4), np.int32)).array}):
        words = r"(alpha is 0\.5|beta is 1\.5); an int8 product with an int32 result takes"
        with pytest.raises(tcgemm.InvalidArgument, match=words):
            tcgemm.gemm(a.array, a.array, out=out.array, **scalars)
    assert out.unwritten(out.read("out")) == 16
    assert FORMATS["int32"].is_integer
