"""What the compiled part asks of a framework: new arrays, its current stream, care for memory.

No framework is imported here: one whose array arrives is there already. Streams are numbers, CUDA
handles; 0 is the legacy default stream.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import deque
from typing import Any

from ._errors import DTypeError

Shape = tuple[int, ...]


def _loaded(module: str) -> Any:
    return sys.modules[module]


class Torch:
    """PyTorch tensors."""

    def _stream(self, stream: int, device: Any) -> Any:
        cuda = _loaded("torch").cuda
        if stream == 0:  # ExternalStream(0) would be a new stream
            return cuda.default_stream(device)
        return cuda.ExternalStream(stream, device=device)

    def empty(self, like: Any, shape: Shape, dtype: str, stream: int | None) -> Any:
        """Make a tensor where `like` is, in the order of `stream` (None: the current one)."""
        torch = _loaded("torch")
        torch_dtype = getattr(torch, dtype)
        if stream is None:
            return torch.empty(shape, dtype=torch_dtype, device=like.device)
        with torch.cuda.stream(self._stream(stream, like.device)):
            return torch.empty(shape, dtype=torch_dtype, device=like.device)

    def current_stream(self, device: int) -> int:
        torch = _loaded("torch")
        return int(torch.cuda.current_stream(device).cuda_stream)

    def keep(self, array: Any, device: int, stream: int) -> None:
        """Keep the memory of `array` until `stream` has done what it now holds."""
        array.record_stream(self._stream(stream, device))


class _StreamHandle:
    """A CUDA stream by its address, as CUDA's Python libraries pass streams to each other."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._address)


class CuPy:
    """CuPy arrays."""

    def __init__(self) -> None:
        self._in_use: deque[tuple[Any, Any]] = deque()  # (event, array)
        self._lock = threading.Lock()

    def _external(self, stream: int) -> Any:
        cupy = _loaded("cupy")
        if stream == 0:
            return cupy.cuda.Stream.null
        if hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 14
            return cupy.cuda.Stream.from_external(_StreamHandle(stream))
        return cupy.cuda.ExternalStream(stream)

    def empty(self, like: Any, shape: Shape, dtype: str, stream: int | None) -> Any:
        """Make an array on the current device, in the order of `stream` (None: the current one)."""
        cupy = _loaded("cupy")
        cupy_dtype: Any = dtype
        if dtype == "bfloat16":
            import ml_dtypes

            cupy_dtype = ml_dtypes.bfloat16
        try:
            if stream is None:
                return cupy.empty(shape, cupy_dtype)
            with self._external(stream):
                return cupy.empty(shape, cupy_dtype)
        except TypeError:
            raise DTypeError(
                f"the result is {dtype}, which this version of CuPy does not have; pass "
                "out_dtype='float32'"
            ) from None

    def current_stream(self, device: int) -> int:
        cupy = _loaded("cupy")
        with cupy.cuda.Device(device):
            return int(cupy.cuda.get_current_stream().ptr)

    def keep(self, array: Any, device: int, stream: int) -> None:
        """Keep the memory of `array` until `stream` has done what it now holds.

        CuPy gives a freed block to whoever allocates on the stream of its allocation, and has no
        record_stream: the array is held here until an event says that it is free.
        """
        cupy = _loaded("cupy")
        with cupy.cuda.Device(device):
            event = cupy.cuda.Event(disable_timing=True)
            event.record(self._external(stream))
        self._in_use.append((event, array))

    def let_go(self) -> bool:
        """Drop what is no longer in use, and tell whether anything is: at every call."""
        with self._lock:
            while self._in_use and self._in_use[0][0].done:
                self._in_use.popleft()
            return bool(self._in_use)


@functools.lru_cache(maxsize=1024)
def _jax_maker(shape: Shape, dtype: str, device: Any) -> Any:
    """Compile what makes such arrays: `jax.numpy.empty` itself takes 80 us a call."""
    jax = _loaded("jax")
    place = jax.sharding.SingleDeviceSharding(device)
    return jax.jit(lambda: jax.numpy.empty(shape, dtype), out_shardings=place)


class Jax:
    """JAX arrays: immutable but for the one that a result is computed in, which nobody else has."""

    def empty(self, like: Any, shape: Shape, dtype: str, stream: int | None) -> Any:
        """Make an array where `like` is, in JAX's own memory; `stream` has no meaning for JAX."""
        with _loaded("jax").ensure_compile_time_eval():  # also while a function is traced
            return _jax_maker(shape, dtype, like.device)()

    def check_dtype(self, dtype: str) -> None:
        """Refuse what JAX would silently narrow."""
        jax = _loaded("jax")
        if dtype == "float64" and not jax.config.jax_enable_x64:
            raise DTypeError(
                "the result is float64, which JAX would narrow to float32; call "
                "jax.config.update('jax_enable_x64', True), or pass out_dtype='float32'"
            )

    def wrap(self, memory: Any, like: Any) -> Any:
        """Make a JAX array of a NumPy array, on the CPU that `like` is on."""
        return _loaded("jax").device_put(memory, like.device)


def release_cached_memory() -> None:
    """Have frameworks give the GPU memory that they keep for later back to the driver."""
    if (loaded := sys.modules.get("torch")) is not None and loaded.cuda.is_initialized():
        loaded.cuda.empty_cache()
    if (loaded := sys.modules.get("cupy")) is not None:
        loaded.get_default_memory_pool().free_all_blocks()


torch = Torch()
cupy = CuPy()
jax = Jax()
