"""Arrays of NumPy, PyTorch or CuPy behind one small interface, for operands, oracles and timing."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

import tcgemm
from tcgemm import _core
from tcgemm._cli.report import UsageError

Work = Callable[[], None]


class Backend(ABC):
    """A framework and the place where its arrays live."""

    name: str
    device: str  # "cpu", "cuda:0"

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"

    @abstractmethod
    def has_dtype(self, dtype: str) -> bool: ...

    def missing(self, dtype: str) -> str:
        """Why has_dtype says no."""
        return f"{self.name} has no {dtype} here"

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: str) -> Any: ...
    @abstractmethod
    def array(self, x: np.ndarray, dtype: str) -> Any:
        """x rounded to `dtype`, where the framework's arrays live."""

    @abstractmethod
    def random(self, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        """N(0, 1); whole numbers from -127 to 127 for int8."""

    @abstractmethod
    def rounded(self, x: Any, dtype: str) -> Any:
        """x rounded to nearest even in `dtype`, then widened to FP64."""

    @abstractmethod
    def float64(self, x: Any) -> Any: ...
    @abstractmethod
    def to_numpy(self, x: Any) -> np.ndarray: ...
    @abstractmethod
    def poison(self, x: Any) -> None:
        """Fills x with NaN (with the smallest number where the dtype has none)."""

    def taken(self, x: Any, key: Any) -> Any:
        """x[key], where the key picks single rows."""
        return x[key]

    def copy(self, to: Any, x: Any) -> None:
        """x into `to`, of the same shape and dtype."""
        to[...] = x

    def stream(self) -> int:
        """The handle of the current stream, as C libraries take it."""
        raise NotImplementedError(f"{self.name} has no stream here")

    def address(self, x: Any) -> int:
        """Of the first element."""
        return int(x.ctypes.data)

    def strides(self, x: Any) -> tuple[int, ...]:
        """In elements."""
        return tuple(stride // x.itemsize for stride in x.strides)

    def synchronize(self) -> None:
        """Waits until everything that was launched is done."""
        return

    def rest(self) -> None:
        """Waits until nothing of the contender before takes time from the next."""
        return

    def elapsed(self, work: Work) -> float:
        """Seconds that the device takes for `work`; the wall clock on the CPU."""
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def graph(self, work: Work) -> Work | None:
        """`work` captured into a CUDA graph, or None where that can't be done."""
        return None

    def cache_bytes(self) -> int:
        """Size of the last cache before memory."""
        return 32 << 20

    def free_bytes(self) -> int:
        """Memory that operands may take."""
        return 4 << 30


class NumpyBackend(Backend):
    name, device = "numpy", "cpu"

    def rest(self) -> None:
        # OpenBLAS's threads look for work for up to 70 ms after a call before they sleep.
        time.sleep(0.1)

    def _dtype(self, dtype: str) -> Any:
        if _of_ml_dtypes(dtype):
            return getattr(importlib.import_module("ml_dtypes"), dtype)
        return np.dtype(dtype)

    def has_dtype(self, dtype: str) -> bool:
        return not _of_ml_dtypes(dtype) or importlib.util.find_spec("ml_dtypes") is not None

    def missing(self, dtype: str) -> str:
        return f"NumPy has no {dtype} here: pip install ml_dtypes"

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return np.empty(shape, self._dtype(dtype))

    def array(self, x: np.ndarray, dtype: str) -> Any:
        return x.astype(self._dtype(dtype))

    def random(self, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        if dtype == "int8":
            return rng.integers(-127, 128, shape, dtype=np.int8)
        drawn = rng.standard_normal(shape, np.float64 if dtype == "float64" else np.float32)
        return drawn.astype(self._dtype(dtype), copy=False)

    def rounded(self, x: Any, dtype: str) -> Any:
        if dtype == "tf32":
            return round_bits(x, 13).astype(np.float64)
        if dtype == "bfloat16" and x.dtype == np.float32:
            return round_bits(x, 16).astype(np.float64)
        return np.asarray(x).astype(self._dtype(dtype)).astype(np.float64)

    def float64(self, x: Any) -> Any:
        return np.asarray(x).astype(np.float64)

    def to_numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def poison(self, x: Any) -> None:
        x[...] = np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.nan

    def cache_bytes(self) -> int:
        try:
            with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as file:
                return int(file.read().strip().removesuffix("K")) << 10
        except (OSError, ValueError):
            return super().cache_bytes()


def _of_ml_dtypes(dtype: str) -> bool:
    return dtype == "bfloat16" or dtype.startswith("float8")


def round_bits(x: np.ndarray, dropped: int) -> np.ndarray:
    """FP32 with so many bits less, to nearest, ties to even, held as FP32: 16 leave bfloat16, 13
    TF32. For finite values."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(dropped)) & np.uint32(1)
    rounded = (bits + np.uint32((1 << (dropped - 1)) - 1) + odd) >> np.uint32(dropped)
    return (rounded << np.uint32(dropped)).view(np.float32)


class TorchBackend(Backend):
    name = "torch"

    def __init__(self, device: str) -> None:
        self._torch: Any = importlib.import_module("torch")
        self.device = device
        # FP32 is FP32: no TF32 behind the peer's back.
        self._torch.backends.cuda.matmul.allow_tf32 = False

    def has_dtype(self, dtype: str) -> bool:
        return hasattr(self._torch, dtype)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype), device=self.device)

    def array(self, x: np.ndarray, dtype: str) -> Any:
        return self._torch.from_numpy(x).to(self.device).to(getattr(self._torch, dtype))

    def random(self, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        torch = self._torch
        generator = torch.Generator(self.device).manual_seed(seed)
        target = {"device": self.device, "generator": generator}
        if dtype == "int8":
            return torch.randint(-127, 128, shape, dtype=torch.int8, **target)
        if dtype.startswith("float8"):
            return torch.randn(shape, dtype=torch.float32, **target).to(getattr(torch, dtype))
        return torch.randn(shape, dtype=getattr(torch, dtype), **target)

    def taken(self, x: Any, key: Any) -> Any:
        if not str(x.dtype).startswith("torch.float8"):
            return x[key]
        return x.view(self._torch.uint8)[key].view(x.dtype)  # it does not index FP8 on a GPU

    def rounded(self, x: Any, dtype: str) -> Any:
        if dtype == "tf32":
            bits = x.float().contiguous().view(self._torch.int32)
            return (
                ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(self._torch.float32).double()
            )
        return x.to(getattr(self._torch, dtype)).double()

    def float64(self, x: Any) -> Any:
        return x.double()

    def to_numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x.cpu().numpy())

    def poison(self, x: Any) -> None:
        if str(x.dtype).startswith("torch.float8"):
            x.view(self._torch.uint8).fill_(0x7F)  # NaN in both formats
            return
        x.fill_(float("nan") if x.is_floating_point() else self._torch.iinfo(x.dtype).min)

    def copy(self, to: Any, x: Any) -> None:
        to.copy_(x)

    def stream(self) -> int:
        return int(self._torch.cuda.current_stream(self.device).cuda_stream)

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def strides(self, x: Any) -> tuple[int, ...]:
        return tuple(x.stride())

    def synchronize(self) -> None:
        if self.on_gpu:
            self._torch.cuda.synchronize(self.device)

    def elapsed(self, work: Work) -> float:
        if not self.on_gpu:
            return super().elapsed(work)
        event = self._torch.cuda.Event
        start, stop = event(enable_timing=True), event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return float(start.elapsed_time(stop)) * 1e-3

    def graph(self, work: Work) -> Work | None:
        if not self.on_gpu:
            return None
        torch = self._torch
        captured = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(captured, capture_error_mode="thread_local"):
                work()
            captured.replay()
            torch.cuda.synchronize(self.device)
        except (RuntimeError, tcgemm.TcgemmError):
            torch.cuda.synchronize(self.device)
            return None
        replay: Work = captured.replay
        return replay

    def cache_bytes(self) -> int:
        if not self.on_gpu:
            return NumpyBackend().cache_bytes()
        properties = self._torch.cuda.get_device_properties(self.device)
        return int(getattr(properties, "L2_cache_size", 64 << 20))

    def free_bytes(self) -> int:
        if not self.on_gpu:
            return super().free_bytes()
        self._torch.cuda.empty_cache()
        return int(self._torch.cuda.mem_get_info(self.device)[0])


class CupyBackend(Backend):
    name = "cupy"

    def __init__(self, device: str) -> None:
        self._cupy: Any = importlib.import_module("cupy")
        self.device = device
        self._cupy.cuda.Device(int(device.rpartition(":")[2])).use()
        # Work goes through a stream of its own, for the default one can't be captured.
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._stream.use()

    def has_dtype(self, dtype: str) -> bool:
        return not _of_ml_dtypes(dtype)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self._cupy.empty(shape, dtype)

    def array(self, x: np.ndarray, dtype: str) -> Any:
        return self._cupy.asarray(x).astype(dtype)

    def random(self, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        rng = self._cupy.random.default_rng(seed)
        if dtype == "int8":
            return rng.integers(-127, 128, shape).astype(dtype)
        drawn = rng.standard_normal(shape, dtype="float64" if dtype == "float64" else "float32")
        return drawn.astype(dtype, copy=False)

    def rounded(self, x: Any, dtype: str) -> Any:
        if dtype in ("bfloat16", "tf32"):
            dropped = 16 if dtype == "bfloat16" else 13
            bits = self._cupy.ascontiguousarray(x, dtype="float32").view("uint32")
            bits = (bits + (1 << (dropped - 1)) - 1 + ((bits >> dropped) & 1)) >> dropped << dropped
            return bits.astype("uint32").view("float32").astype("float64")
        return x.astype(dtype).astype("float64")

    def float64(self, x: Any) -> Any:
        return x.astype("float64")

    def to_numpy(self, x: Any) -> np.ndarray:
        return np.asarray(self._cupy.asnumpy(x))

    def poison(self, x: Any) -> None:
        x.fill(np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.nan)

    def stream(self) -> int:
        return int(self._stream.ptr)

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def synchronize(self) -> None:
        self._cupy.cuda.Device().synchronize()

    def elapsed(self, work: Work) -> float:
        start, stop = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record(self._stream)
        work()
        stop.record(self._stream)
        stop.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, stop)) * 1e-3

    def graph(self, work: Work) -> Work | None:
        try:
            self._stream.begin_capture()
            try:
                work()
            finally:
                captured = self._stream.end_capture()
            captured.launch(self._stream)
            self._stream.synchronize()
        except (RuntimeError, tcgemm.TcgemmError):
            return None

        def replay() -> None:
            captured.launch(self._stream)

        return replay

    def cache_bytes(self) -> int:
        return int(self._cupy.cuda.Device().attributes.get("L2CacheSize", 64 << 20))

    def free_bytes(self) -> int:
        self._cupy.get_default_memory_pool().free_all_blocks()
        return int(self._cupy.cuda.runtime.memGetInfo()[0])


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _gpu_framework(device: str) -> Backend | None:
    """PyTorch, else CuPy, with arrays on a GPU; None where neither can use it."""
    if installed("torch") and importlib.import_module("torch").cuda.is_available():
        return TorchBackend(device)
    if installed("cupy"):
        return CupyBackend(device)
    return None


def add_backend_arguments(
    to: argparse.ArgumentParser | argparse._ArgumentGroup,
    default: str = "on a GPU torch or cupy if installed, else numpy",
) -> None:
    """What choose() takes. `default`: the framework where none is asked for."""
    to.add_argument(
        "--device",
        help="cpu, cuda or cuda:N (default: TCGEMM_DEVICE, or the first usable GPU, or cpu)",
    )
    to.add_argument(
        "--framework",
        choices=["numpy", "torch", "cupy"],
        help=f"of the arrays (default: {default})",
    )


def choose(framework: str | None = None, device: str | None = None) -> Backend:
    """The framework asked for on the device asked for; by default PyTorch or CuPy on GPU 0.

    Where no device is asked for, TCGEMM_DEVICE names it. Arrays in the CPU's memory go through that
    device, too. UsageError for what can't be had.
    """
    if framework not in (None, "numpy") and not installed(str(framework)):
        package = "cupy-cuda12x" if framework == "cupy" else framework
        raise UsageError(f"--framework {framework}: not installed (pip install {package})")
    asked = f"--device {device}"
    if device is None:
        asked = f"TCGEMM_DEVICE={os.environ.get('TCGEMM_DEVICE', '')}"
    try:
        device = _core.device_for_host_arrays(device)
    except tcgemm.InvalidArgument as error:
        raise UsageError(f"{asked}: expected cpu, cuda or cuda:N") from error
    except tcgemm.DeviceError as error:
        why = tcgemm.cuda_unavailable_reason()
        because = f" ({why})" if why else ""
        gpus = len(tcgemm.devices())
        usable = "1 usable GPU" if gpus == 1 else f"{gpus} usable GPUs"
        raise UsageError(f"{asked}: this machine has {usable}{because}") from error
    os.environ["TCGEMM_DEVICE"] = device  # where arrays in the CPU's memory are computed
    _check_environment()
    if framework == "torch":
        return TorchBackend(device)
    if framework == "cupy":
        if device == "cpu":
            raise UsageError("--framework cupy: needs a GPU; take --framework numpy on the CPU")
        return CupyBackend(device)
    if framework is None and device != "cpu":
        return _gpu_framework(device) or NumpyBackend()
    return NumpyBackend()


def _check_environment() -> None:
    """UsageError for a wrong value of a variable, which every product would fail of in turn."""
    one = np.ones((1, 1), np.float32)
    try:
        tcgemm.explain(one, one)
    except tcgemm.InvalidArgument as error:
        raise UsageError(str(error)) from error


def gpu_of(backend: Backend) -> dict[str, Any] | None:
    """The entry of tcgemm.devices() that computes for this backend; None where the CPU does."""
    place = backend.device if backend.on_gpu else _core.device_for_host_arrays()
    found = [gpu for gpu in tcgemm.devices() if place == f"cuda:{gpu['ordinal']}"]
    return found[0] if found else None


def compute_capability(backend: Backend) -> tuple[int, int] | None:
    gpu = gpu_of(backend)
    return None if gpu is None else tuple(gpu["compute_capability"])
