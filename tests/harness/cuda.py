"""Device memory for the tests through the CUDA driver API: no framework is needed to run them."""

from __future__ import annotations

import ctypes
import functools

import numpy as np

_RESULTS = {2: "out of memory", 100: "no device"}


@functools.cache
def _driver() -> ctypes.CDLL | None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if driver.cuInit(0) == 0 else None


def call(function: str, *args: object) -> None:
    status = getattr(_driver(), function)(*args)
    if status != 0:
        raise RuntimeError(f"{function} returned {status} ({_RESULTS.get(status, 'see cuda.h')})")


@functools.cache
def device_count() -> int:
    count = ctypes.c_int(0)
    if _driver() is not None:
        call("cuDeviceGetCount", ctypes.byref(count))
    return count.value


def _attribute(attribute: int, ordinal: int) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), attribute, ordinal)
    return value.value


@functools.cache
def compute_capability(ordinal: int = 0) -> tuple[int, int]:
    return _attribute(75, ordinal), _attribute(76, ordinal)


@functools.cache
def sm_count(ordinal: int = 0) -> int:
    return _attribute(16, ordinal)


@functools.cache
def _context(ordinal: int) -> ctypes.c_void_p:
    context = ctypes.c_void_p()  # the primary one, which the CUDA runtime uses too
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    return context


def use_device(ordinal: int = 0) -> None:
    call("cuCtxSetCurrent", _context(ordinal))


def synchronize() -> None:
    use_device()
    call("cuCtxSynchronize")


def memory() -> tuple[int, int]:
    """Free and total bytes of device 0."""
    use_device()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


class Stream:
    """A stream that does not wait for the legacy default stream."""

    def __init__(self) -> None:
        use_device()
        self.handle = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(self.handle), 1)

    def synchronize(self) -> None:
        call("cuStreamSynchronize", self.handle)

    @property
    def address(self) -> int:
        return self.handle.value or 0

    def __del__(self) -> None:
        if self.handle:
            _driver().cuStreamDestroy_v2(self.handle)  # type: ignore[union-attr]


class DeviceMemory:
    """Bytes of device 0; freed with its owner."""

    def __init__(self, size: int) -> None:
        use_device()
        self.size = size
        self._pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self._pointer), ctypes.c_size_t(max(size, 1)))

    @property
    def address(self) -> int:
        return self._pointer.value

    def write(self, image: np.ndarray, offset: int = 0) -> None:
        image = np.ascontiguousarray(image)
        if image.nbytes:
            use_device()
            call(
                "cuMemcpyHtoD_v2",
                ctypes.c_uint64(self.address + offset),
                ctypes.c_void_p(image.ctypes.data),
                ctypes.c_size_t(image.nbytes),
            )
            # The copy may still be on its way, and streams of their own do not wait for it.
            call("cuStreamSynchronize", None)

    def read(self, size: int | None = None, offset: int = 0) -> np.ndarray:
        image = np.empty(self.size - offset if size is None else size, np.uint8)
        if image.nbytes:
            use_device()
            call(
                "cuMemcpyDtoH_v2",
                ctypes.c_void_p(image.ctypes.data),
                ctypes.c_uint64(self.address + offset),
                ctypes.c_size_t(image.nbytes),
            )
        return image

    def fill(self, byte: int) -> None:
        use_device()
        call("cuMemsetD8_v2", ctypes.c_uint64(self.address), byte, ctypes.c_size_t(self.size))
        call("cuCtxSynchronize")

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", None)
        if pointer is not None and pointer.value:
            _driver().cuMemFree_v2(pointer)  # type: ignore[union-attr]
