"""Names of dtypes, whatever framework spells them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ._errors import DTypeError

# Names that NumPy knows only once ml_dtypes is imported.
_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


@lru_cache(maxsize=256, typed=True)  # 1, True and numpy.float16(1) are equal, too
def _name_of(dtype: Any) -> str:
    if isinstance(dtype, str):  # also numpy.str_ and Enums, of which str() would tell the name
        dtype = str.__str__(dtype)
    if isinstance(dtype, np.generic):  # a number, whose own dtype numpy.dtype() would tell
        raise TypeError
    if (type(dtype).__module__, type(dtype).__name__) == ("torch", "dtype"):  # no tensor
        return str(dtype).removeprefix("torch.")  # of "torch.float16"
    if isinstance(dtype, str) and dtype in _ML_DTYPES:
        return dtype
    found = np.dtype(dtype)
    # A name has no byte order: ">f4" stays as it is, which no result and no operand is called.
    return str(found.name if found.isnative else found)


def dtype_name(dtype: Any, argument: str = "out_dtype") -> str | None:
    """Name of a dtype, given as a str or as any framework's object; None stays None."""
    if dtype is None:
        return None
    try:
        return _name_of(dtype)
    except (TypeError, ValueError, SyntaxError):  # NumPy raises all three: "f99", "(-1,)f4", "(1,"
        is_fp8 = argument != "out_dtype" or (isinstance(dtype, str) and dtype == "fp8")
        names = "'float8_e4m3fn' or 'float8_e5m2'" if is_fp8 else "a name such as 'float32'"
        raise DTypeError(
            f"{argument} is {dtype!r}, which is no dtype; pass {names}, or such a dtype of NumPy, "
            "ml_dtypes, PyTorch or JAX"
        ) from None
