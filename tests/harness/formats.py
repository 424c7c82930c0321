"""Number formats: their constants, and rounding to nearest even in one step."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Format:
    """A dtype of the library as the tests see it. `nan` is the payload that outputs are prefilled
    with: a quiet NaN that no arithmetic yields (for integers, a value that no test expects)."""

    name: str
    numpy: np.dtype
    bits: np.dtype  # unsigned integer of the same width
    dlpack_code: int
    nan: int
    unit_roundoff: float = 0.0
    smallest: float = 0.0  # least positive (subnormal) number
    largest: float = 0.0

    @property
    def is_integer(self) -> bool:
        return self.unit_roundoff == 0.0


_U8, _U16, _U32, _U64 = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
FORMATS = {
    f.name: f
    for f in (
        Format("float16", np.dtype(np.float16), _U16, 2, 0x7E5A, 2.0**-11, 2.0**-24, 65504.0),
        Format(
            "bfloat16",
            np.dtype(ml_dtypes.bfloat16),
            _U16,
            4,
            0x7FDA,
            2.0**-8,
            2.0**-133,
            float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
        ),
        Format(
            "float32",
            np.dtype(np.float32),
            _U32,
            2,
            0x7FC5A5A5,
            2.0**-24,
            2.0**-149,
            float(np.finfo(np.float32).max),
        ),
        Format(
            "float64",
            np.dtype(np.float64),
            _U64,
            2,
            0x7FF8A5A5A5A5A5A5,
            2.0**-53,
            2.0**-1074,
            float(np.finfo(np.float64).max),
        ),
        Format("int8", np.dtype(np.int8), _U8, 0, 0x5A),
        Format("int32", np.dtype(np.int32), _U32, 0, 0x5A5A5A5A),
        # e4m3 has two NaNs; the library yields the positive one only.
        Format(
            "float8_e4m3fn",
            np.dtype(ml_dtypes.float8_e4m3fn),
            _U8,
            10,
            0xFF,
            2.0**-4,
            2.0**-9,
            448.0,
        ),
        Format(
            "float8_e5m2",
            np.dtype(ml_dtypes.float8_e5m2),
            _U8,
            12,
            0x7D,
            2.0**-3,
            2.0**-16,
            57344.0,
        ),
    )
}
# What operands are rounded to: TF32 is held in float32.
COMPUTE_FORMATS = {
    **FORMATS,
    "tf32": Format(
        "tf32",
        np.dtype(np.float32),
        _U32,
        2,
        0x7FC5A000,
        2.0**-11,
        2.0**-136,
        (2 - 2.0**-10) * 2.0**127,
    ),
}


def format_of(array: Array) -> Format:
    return FORMATS[array.dtype.name]


def bits_of(array: Array) -> Array:
    """The same elements as unsigned integers, so that NaNs compare."""
    return np.ascontiguousarray(array).view(format_of(array).bits)


def wide(array: Array) -> npt.NDArray[np.float64]:
    """As float64, which holds every value of every format here."""
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        return np.asarray(array).astype(np.float64)


def round_to(values: npt.ArrayLike, name: str) -> Array:
    """float64 values rounded once, to nearest even; overflow to Inf (float8_e4m3fn: NaN). Integers
    wrap around."""
    values = np.asarray(values, dtype=np.float64)
    target = COMPUTE_FORMATS[name]
    with np.errstate(all="ignore"):
        if target.is_integer:
            width = 8 * target.numpy.itemsize
            wrapped = np.mod(values, 2.0**width).astype(np.uint64).astype(target.bits)
            return wrapped.view(target.numpy)
        if name == "tf32":
            bits = _round_to_odd_float32(values).view(np.uint32)
            rounded = (bits + np.uint32(0xFFF) + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)
            return np.where(np.isnan(values), np.nan, rounded.view(np.float32)).astype(np.float32)
        if name == "bfloat16" or name.startswith("float8"):
            # Through float32 rounded to odd: a second rounding to nearest is then harmless, where
            # nearest twice would err on ties.
            return _round_to_odd_float32(values).astype(target.numpy)
        return values.astype(target.numpy)


def _round_to_odd_float32(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    nearest = values.astype(np.float32)
    back = nearest.astype(np.float64)
    inexact = np.isfinite(nearest) & (back != values)
    even = (np.ascontiguousarray(nearest).view(np.uint32) & 1) == 0
    towards = np.where(back < values, np.inf, -np.inf).astype(np.float32)
    return np.where(inexact & even, np.nextafter(nearest, towards), nearest)
