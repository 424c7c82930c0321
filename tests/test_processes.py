"""Processes: what an import starts, forks, and an end while threads are at work."""

import shutil
import sys
from pathlib import Path

import pytest
import tcgemm
from interpreter import ended, python

FORK = """
    import os, signal, numpy as np, tcgemm
    a = np.arange(256 * 256, dtype=np.float32).reshape(256, 256) % 7
    expected = a @ a
    def check():
        assert (tcgemm.matmul(a, a) == expected).all()
    def in_child(action):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.alarm(60)  # a hang ends the child
                action()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
"""


def test_p01_import_no_context():
    """A process that only imported the package may fork, and its child may use everything."""
    python(FORK + "\n    in_child(check)\n    check()\n    print('done')")


@pytest.mark.gpu
def test_p01_import_creates_no_context_on_the_gpu():
    python("""
        import ctypes, tcgemm
        tcgemm.kernels(), tcgemm.build_info(), tcgemm.supports((9, 0))
        cuda = ctypes.CDLL("libcuda.so.1")
        context, flags, active = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_int(7)
        # 3: CUDA_ERROR_NOT_INITIALIZED, nobody called cuInit before this line
        assert cuda.cuCtxGetCurrent(ctypes.byref(context)) == 3
        assert cuda.cuInit(0) == 0
        args = 0, ctypes.byref(flags), ctypes.byref(active)
        assert cuda.cuDevicePrimaryCtxGetState(*args) == 0
        assert active.value == 0
    """)


def test_p02_fork_after_use():
    """On the CPU a child goes on computing; where CUDA was used it gets an error, and no hang."""
    python(
        FORK
        + """
    check()
    used_cuda = not tcgemm.cuda_unavailable_reason() and os.environ.get("TCGEMM_DEVICE") != "cpu"
    def child():
        if used_cuda:
            try:
                check()
            except tcgemm.DeviceError as error:
                assert "forked" in str(error) and "spawn" in str(error), error
            else:
                raise AssertionError("no error")
            os.environ["TCGEMM_DEVICE"] = "cpu"
        check()
    in_child(child)
    check()
    """
    )


def test_p02_fork_after_use_on_the_cpu():
    python(FORK + "\n    check()\n    in_child(check)\n    check()", TCGEMM_DEVICE="cpu")


def test_threads_multiply_while_the_environment_grows():
    """os.environ moves the environment: who reads it meanwhile reads freed memory."""
    script = """
        import os, threading
        import numpy as np
        import tcgemm

        a = np.ones((16, 16), np.float32)
        done = threading.Event()

        def multiply():
            while not done.is_set():
                tcgemm.matmul(a, a)

        threads = [threading.Thread(target=multiply) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(5000):
            os.environ[f"GROWS_{i}"] = "v"
        done.set()
        for thread in threads:
            thread.join()
    """
    python(script, TCGEMM_DEVICE="cpu")


def test_p02_fork_after_a_gpu_that_is_not_there():
    """A call that asks for a GPU where there is none has used no CUDA."""
    python(
        FORK
        + """
    os.environ["TCGEMM_DEVICE"] = "cuda"
    try:
        check()
    except tcgemm.DeviceError:
        del os.environ["TCGEMM_DEVICE"]
    else:
        raise AssertionError("no error")
    check()
    in_child(check)
    """,
        CUDA_VISIBLE_DEVICES="",
    )


def test_threads_of_a_product_take_no_signals():
    """They are for threads that wait for them; one that takes a signal instead ends the process."""
    script = """
        import os, signal, time
        import numpy as np
        import tcgemm

        a = np.ones((400, 400), np.float32)
        before = set(os.listdir("/proc/self/task"))
        tcgemm.matmul(a, a)
        started = set(os.listdir("/proc/self/task")) - before
        assert started
        def blocked(thread):
            status = open(f"/proc/self/task/{thread}/status").read()
            return int(status.split("SigBlk:")[1].split()[0], 16)

        def blocks(thread, number):
            return bool(blocked(thread) >> (number - 1) & 1)

        for thread in started:
            for _ in range(500):  # at first it blocks all, whoever starts it
                if not blocks(thread, signal.SIGBUS):
                    break
                time.sleep(0.01)
            assert not blocks(thread, signal.SIGBUS)  # of a fault of its own
            assert blocks(thread, signal.SIGUSR1)
    """
    python(script, TCGEMM_DEVICE="cpu", TCGEMM_NUM_THREADS="3")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it works there")
def test_a_subinterpreter_is_refused():
    """pybind11's module would wait for ever."""
    script = """
        import _xxsubinterpreters as interpreters
        try:
            interpreters.run_string(interpreters.create(), "import tcgemm")
        except interpreters.RunFailedError as error:
            assert "subinterpreter of Python 3.11" in str(error), error
        else:
            raise AssertionError("no error")
    """
    python(script)


def test_sources_that_are_not_built_are_refused(tmp_path):
    """As they are in the directory of a clone, which Python looks into first."""
    sources = tmp_path / "tcgemm"
    sources.mkdir()
    for file in Path(tcgemm.__file__).parent.glob("*.py"):
        shutil.copy(file, sources)
    done = ended("import tcgemm", PYTHONPATH=str(tmp_path))
    assert f"its sources in {sources}, which are not built; start Python" in done.stderr


@pytest.mark.parametrize("status", [0, 3])
def test_the_process_may_end_while_a_thread_multiplies(status):
    script = f"""
        import sys, threading, time
        import numpy as np
        import tcgemm

        a = np.ones((8, 8), np.float32)
        begun = threading.Event()

        def multiply():
            while True:
                tcgemm.matmul(a, a)
                begun.set()

        threading.Thread(target=multiply, daemon=True).start()
        begun.wait()
        time.sleep(0.1)
        sys.exit({status})
    """
    for _ in range(3):
        done = ended(script, TCGEMM_DEVICE="cpu")
        assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.gpu
def test_p01_cuda_that_does_not_start_is_told():
    """In a child of a process that used CUDA without this library: its arrays go to the CPU."""
    torch = pytest.importorskip("torch")
    if not torch.version.cuda:
        pytest.skip("this torch has no cuda")
    python("""
        import os, warnings, numpy as np, torch
        torch.zeros(1, device="cuda")
        if os.fork() == 0:
            status = 1
            try:
                import tcgemm
                a = np.ones((8, 8), np.float32)
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    assert (tcgemm.matmul(a, a) == 8).all()
                    tcgemm.matmul(a, a)
                assert [w.category for w in told] == [RuntimeWarning], told
                assert "CUDA does not start" in str(told[0].message)
                assert "forked" in str(told[0].message)
                status = 0
            finally:
                os._exit(status)
        assert os.wait()[1] == 0
    """)
