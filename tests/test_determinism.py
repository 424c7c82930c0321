"""run_to_run determinism: same build, device model and problem give the same bits."""

import json
import threading

import numpy as np
import pytest
from harness import (
    FAMILY_MODES,
    MODES,
    SIXTEEN_BIT_FAMILIES,
    Layout,
    bits_of,
    c_api,
    cuda,
    data,
    wide,
)
from harness.memory import Workspace
from interpreter import python

LONG_CHAIN = (9, 16, 23040)  # few outputs, long K: where a kernel would split it
RUNS = 100


def differing_runs(run, runs):
    first = bits_of(run.execute())
    return sum((bits_of(run.execute(guards=False)) != first).any() for _ in range(runs - 1))


def test_d01_run_to_run(lab, mode, rng):
    m, n, k = LONG_CHAIN
    run = lab.prepare(mode, *data.signed(rng, mode, (m, k), (k, n)))
    assert differing_runs(run, RUNS) == 0
    run = lab.prepare(mode, *data.signed(rng, mode, (256, 300), (300, 260)))
    assert differing_runs(run, RUNS) == 0


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.modes(only=lambda mode: mode.name in ("fp16", "bf16", "fp32", "fp32_as_fp16"))
def test_d01_run_to_run_large(lab, mode, rng):
    if lab.family == "host":
        pytest.skip("the 100 runs of 4096^3 are for the GPU families")
    size = 4096
    run = lab.prepare(mode, *data.signed(rng, mode, (size, size), (size, size)))
    assert differing_runs(run, RUNS) == 0


@pytest.mark.modes(only=lambda mode: mode.name in ("fp16", "fp32", "fp64", "int8"))
def test_d01_bits_do_not_depend_on_the_number_of_threads(lab, mode, tmp_path):
    if lab.family != "host":
        pytest.skip("a property of the host family")
    results = [fresh_process(lab, mode.name, TCGEMM_NUM_THREADS=str(n)) for n in (1, 2, 3, 8)]
    assert len({r["bits"] for r in results}) == 1


def test_d02_under_load(lab, mode, rng):
    """The same bits while 8 threads (on a GPU, each on its own stream) keep the device busy."""
    m, n, k = LONG_CHAIN
    run = lab.prepare(mode, *data.signed(rng, mode, (m, k // 4), (k // 4, n)))
    quiet = bits_of(run.execute())
    done = threading.Event()
    failures = []

    def load(seed):
        try:
            own = np.random.default_rng(seed)
            size = 96 + 16 * seed
            other = lab.prepare(mode, *data.signed(own, mode, (size, size), (size, size)))
            # Lives as long as its handle is used.
            own_stream = cuda.Stream() if lab.on_gpu else None
            stream = {"stream": own_stream.address} if own_stream else {}
            expected = None
            while not done.is_set():
                other.operands["out"].refill()
                other.plan.execute(**stream)
                got = bits_of(other.collect())
                expected = got if expected is None else expected
                assert (got == expected).all(), "the load itself gave other bits"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=load, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert (bits_of(run.execute()) == quiet).all()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


def test_d05_pointer_class(lab, mode, rng):
    """Every base offset of 0 to 15 elements, inside the bound; equal offsets give equal bits."""
    a, b = data.signed(rng, mode, (65, 70), (70, 66))
    for offset in range(16):
        layouts = {name: Layout(offset=offset) for name in ("a", "b", "out")}
        first = lab.check(mode, a, b, layouts=layouts)
        again = lab.check(mode, a, b, layouts=layouts)
        assert first.kernel == again.kernel
        assert (first.bits == again.bits).all()


_PROCESS = """
import hashlib, json
import numpy as np, tcgemm
from harness import MODES, Lab, data
ballast = None
if {fill!r}:
    from harness import cuda
    free, _ = cuda.memory()
    ballast = cuda.DeviceMemory(free - (600 << 20))
mode = MODES[{mode!r}]
rng = np.random.default_rng(7)
digest, kernels = hashlib.sha256(), []
for m, n, k in ((9, 16, 5000), (200, 129, 300)):
    a, b = data.signed(rng, mode, (m, k), (k, n))
    run = Lab(tcgemm, {family!r}).prepare(mode, a, b)
    digest.update(run.execute().tobytes())
    kernels.append([run.plan.kernel, run.plan.split_k])
print(json.dumps({{"bits": digest.hexdigest(), "kernels": kernels}}))
"""


def fresh_process(lab, mode_name, fill=False, **environment):
    """What a new interpreter, with the lab's family forced, computes and with which kernels."""
    script = _PROCESS.format(mode=mode_name, family=lab.family, fill=fill)
    return json.loads(python(script, **environment))


@pytest.mark.alone
@pytest.mark.modes(only=lambda mode: mode.name in ("fp16", "fp32", "fp32_as_fp16"))
def test_d06_no_timing_choice(lab, mode):
    """Fresh processes, also with little free memory: the same kernels and the same bits."""
    results = [fresh_process(lab, mode.name) for _ in range(2)]
    if lab.on_gpu:
        results.append(fresh_process(lab, mode.name, fill=True))
    assert results[1:] == results[:-1]


def test_d07_workspace_poison(lab, rng):
    """What a workspace holds beforehand is not used: zeros, ones, NaN, the last run's data."""
    device = 0 if lab.on_gpu else c_api.CPU
    used = 0
    for mode_name, (m, n, k) in (
        ("fp16", (9, 16, 23040)),
        ("fp32", (33, 70, 65)),
        ("fp32_as_fp16", (65, 70, 300)),
    ):
        mode = MODES[mode_name]
        if mode_name not in FAMILY_MODES[lab.family]:
            continue
        a, b = data.signed(rng, mode, (m, k), (k, n))
        problem = c_api.problem(m, n, k, mode.operand)
        problem.precision = 1 if mode.precision == "fp16" else 0
        # Rows that no vector load can take as they are: operands that must be packed use it too.
        layout = Layout(pad=1)
        problem.a.row_stride, problem.b.row_stride = k + 1, n + 1
        for operand in (problem.a, problem.b, problem.c, problem.d):
            operand.alignment = 2 if mode.operand == "float16" else 4
        operands = {"a": lab.place(a, layout), "b": lab.place(b, layout)}
        out = lab.place_output((m, n), mode.operand)
        plan = c_api.Plan(problem, device)
        assert plan.status == "ok", c_api.last_error()
        assert plan.kernel.startswith(lab.family)
        size = plan.workspace_bytes
        used += size
        memory = Workspace(size, on_gpu=lab.on_gpu)
        results = []
        for poison in (0x00, 0xFF, 0x7F, None):
            if poison is not None:
                memory.fill(poison)
            out.refill()
            status = plan.run(
                *(operands[name].address for name in ("a", "b")),
                None,
                out.address,
                workspace=memory.address if size else None,
                workspace_bytes=size,
            )
            assert status == "ok", c_api.last_error()
            if lab.on_gpu:
                cuda.synchronize()
            results.append(out.read("out"))
            memory.check_guards()
        assert all((bits_of(r) == bits_of(results[0])).all() for r in results)
        assert np.isfinite(wide(results[0])).all()
    assert used > 0 or lab.family not in SIXTEEN_BIT_FAMILIES, (
        "no case of this test used a workspace"
    )
