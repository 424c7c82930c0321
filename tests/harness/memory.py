"""Operands between guard bands, on the CPU or on a GPU.

An operand's elements lie in a larger image whose every other element holds a NaN payload: bands
before and after, the gaps of padded rows, what lies between matrices of a batch. After a run the
image is read back: nothing but the elements of an output may have changed, and those all must.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .cuda import DeviceMemory
from .dlpack import CPU, CUDA, RawArray
from .formats import FORMATS, Array, Format
from .layout import Layout, place

ALIGNMENT = 256  # bytes; what the library's own buffers have
BAND = 64  # elements, the least that lies before and after an operand


def aligned_empty(count: int, dtype: np.dtype) -> Array:
    """One-dimensional, its address a multiple of ALIGNMENT."""
    raw = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)


class Guarded:
    """One operand. `values` None: each element holds the NaN payload, as an output does."""

    def __init__(
        self,
        shape: tuple[int, ...],
        fmt: Format,
        layout: Layout,
        *,
        on_gpu: bool,
        values: Array | None = None,
        is_output: bool = False,
        band: int = BAND,
        filler: int | None = None,
        raw: bool = False,
    ) -> None:
        where = place(shape, layout)
        band = -(-band // ALIGNMENT) * ALIGNMENT
        self.shape, self.format, self.is_output = shape, fmt, is_output
        self._first = band + layout.offset + where.first
        self.strides = where.strides
        image = aligned_empty(band + layout.offset + where.extent + band, fmt.numpy)
        # `filler` instead of the NaN payload: what lies around must not matter.
        image.view(fmt.bits)[:] = fmt.nan if filler is None else filler
        if values is not None:
            self._view(image)[...] = values
        self._before = image.view(fmt.bits).copy()
        self._memory: object
        if on_gpu:
            self._memory = DeviceMemory(image.nbytes)
            self._memory.write(image)
            address = self._memory.address
        else:
            self._memory = image
            address = image.ctypes.data
        size = fmt.numpy.itemsize
        self.address = address + size * self._first  # of element (0, .., 0)
        # On the CPU the library is given what a user has, a NumPy array.
        self.array: object = (
            RawArray(
                self._memory,
                self.address,
                fmt,
                shape,
                self.strides,
                (CUDA if on_gpu else CPU, 0),
            )
            if on_gpu or raw
            else self._view(image)
        )

    def _view(self, image: Array) -> Array:
        size = image.dtype.itemsize
        # as_strided forms the view of a sub-array: NumPy then does not object to negative strides.
        # Of the bits: it does not know every dtype of ml_dtypes.
        view = as_strided(
            image.view(self.format.bits)[self._first :],
            self.shape,
            [stride * size for stride in self.strides],
            writeable=True,
        )
        return view if image.dtype == self.format.bits else view.view(image.dtype)

    def _image(self) -> Array:
        if isinstance(self._memory, DeviceMemory):
            return self._memory.read().view(self.format.numpy)
        return self._memory  # type: ignore[return-value]

    def read(self, name: str) -> Array:
        """The elements as they are now, packed. Raises AssertionError where a guard was hit."""
        image = self._image()
        bits = image.view(self.format.bits)
        changed = bits != self._before
        if self.is_output:
            # What the view covers may change; a bit mask of the image says which that is.
            covered = np.zeros(changed.size, bool)
            as_strided(covered[self._first :], self.shape, self.strides)[...] = True
            outside = changed & ~covered
        else:
            outside = changed
        if outside.any():
            places = np.flatnonzero(outside)
            shown = ", ".join(str(p - self._first) for p in places[:4])
            what = "outside the output" if self.is_output else "in an input"
            raise AssertionError(
                f"{name}: {places.size} elements {what} were written, at {shown} from (0, 0)"
            )
        return self._view(image).copy()

    def refill(self) -> None:
        """Puts the image back as it was before the first run."""
        image = self._before.view(self.format.numpy)
        if isinstance(self._memory, DeviceMemory):
            self._memory.write(image)
        else:
            self._memory[...] = image  # type: ignore[index]

    def overwrite(self, byte: int) -> None:
        """Fills the elements, not the guards, with one byte."""
        image = self._image().copy()
        fmt = self.format
        pattern = int.from_bytes(bytes([byte]) * fmt.numpy.itemsize, "little")
        self._view(image.view(fmt.bits))[...] = pattern
        if isinstance(self._memory, DeviceMemory):
            self._memory.write(image)
        else:
            self._memory[...] = image  # type: ignore[index]

    def unwritten(self, values: Array) -> int:
        """How many elements of a read output still hold the payload."""
        return int(
            np.count_nonzero(np.ascontiguousarray(values).view(self.format.bits) == self.format.nan)
        )


class Workspace:
    """`size` bytes aligned to 256, between guards."""

    def __init__(self, size: int, *, on_gpu: bool) -> None:
        words = (1, max(-(-size // 4), 1))
        self._guarded = Guarded(words, FORMATS["int32"], Layout(), on_gpu=on_gpu, is_output=True)
        self.address = self._guarded.address

    def fill(self, byte: int) -> None:
        self._guarded.overwrite(byte)

    def check_guards(self) -> None:
        """Raises AssertionError where one was hit."""
        self._guarded.read("workspace")
