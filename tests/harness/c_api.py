"""tcgemm.h through ctypes: null pointers, bad enumerators, workspaces, which no array can say."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from .formats import FORMATS

DTYPES = {name: number for number, name in enumerate(FORMATS)}
STATUS = (
    "ok",
    "invalid_argument",
    "invalid_shape",
    "invalid_dtype",
    "invalid_layout",
    "unsupported",
    "no_kernel",
    "device",
    "out_of_memory",
    "cuda",
    "internal",
)
CPU = -1
_MAX_BATCH_DIMS = 8


class Operand(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int),
        ("row_stride", ctypes.c_int64),
        ("col_stride", ctypes.c_int64),
        ("batch_stride", ctypes.c_int64 * _MAX_BATCH_DIMS),
        ("alignment", ctypes.c_int),
    ]


class Scale(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int),
        ("outer_stride", ctypes.c_int64),
        ("k_stride", ctypes.c_int64),
        ("batch_stride", ctypes.c_int64 * _MAX_BATCH_DIMS),
    ]


class Problem(ctypes.Structure):
    _fields_ = [
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("batch_rank", ctypes.c_int),
        ("batch_shape", ctypes.c_int64 * _MAX_BATCH_DIMS),
        ("a", Operand),
        ("b", Operand),
        ("c", Operand),
        ("d", Operand),
        ("precision", ctypes.c_int),
        ("accumulate", ctypes.c_int),
        ("determinism", ctypes.c_int),
        ("scale_a", Scale),
        ("scale_b", Scale),
        ("scale_d", ctypes.c_int),
        ("overflow", ctypes.c_int),
    ]


class Pointers(ctypes.Structure):
    _fields_ = [
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("d", ctypes.c_void_p),
        ("scale_a", ctypes.c_void_p),
        ("scale_b", ctypes.c_void_p),
        ("scale_d", ctypes.c_void_p),
    ]


@functools.cache
def library() -> ctypes.CDLL:
    """The libtcgemm of the installed package."""
    import tcgemm

    lib = ctypes.CDLL(str(Path(tcgemm.get_library_dir()) / "libtcgemm.so"))
    pointer, size, real = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double
    for name, result, arguments in (
        ("tcgemm_version", ctypes.c_char_p, ()),
        ("tcgemm_last_error", ctypes.c_char_p, ()),
        ("tcgemm_status_name", ctypes.c_char_p, (ctypes.c_int,)),
        ("tcgemm_problem_init", None, (pointer, *3 * (ctypes.c_int64,), ctypes.c_int)),
        ("tcgemm_device_count", ctypes.c_int, ()),
        ("tcgemm_plan_create", ctypes.c_int, (pointer, ctypes.c_int, pointer)),
        ("tcgemm_plan_destroy", None, (pointer,)),
        ("tcgemm_plan_kernel", ctypes.c_char_p, (pointer,)),
        ("tcgemm_plan_workspace_bytes", size, (pointer,)),
        (
            "tcgemm_plan_run",
            ctypes.c_int,
            (pointer, pointer, real, real, pointer, pointer, size),
        ),
        ("tcgemm_gemm", ctypes.c_int, (pointer, ctypes.c_int, pointer, real, real, pointer)),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def problem(m: int, n: int, k: int, dtype: str = "float32") -> Problem:
    made = Problem()
    library().tcgemm_problem_init(ctypes.byref(made), m, n, k, DTYPES[dtype])
    return made


def last_error() -> str:
    return library().tcgemm_last_error().decode()


def status_name(status: int) -> str:
    return STATUS[status]


class Plan:
    """Owns a tcgemm_plan. `status` says how making it went; the rest needs "ok"."""

    def __init__(self, made: Problem, device: int = CPU) -> None:
        self._plan = ctypes.c_void_p()
        code = library().tcgemm_plan_create(ctypes.byref(made), device, ctypes.byref(self._plan))
        self.status = status_name(code)

    @property
    def kernel(self) -> str:
        return library().tcgemm_plan_kernel(self._plan).decode()

    @property
    def workspace_bytes(self) -> int:
        return library().tcgemm_plan_workspace_bytes(self._plan)

    def run(
        self,
        a: int | None,
        b: int | None,
        c: int | None,
        d: int | None,
        alpha: float = 1.0,
        beta: float = 0.0,
        workspace: int | None = None,
        workspace_bytes: int = 0,
    ) -> str:
        at = ctypes.byref(Pointers(a, b, c, d))
        return status_name(
            library().tcgemm_plan_run(self._plan, at, alpha, beta, None, workspace, workspace_bytes)
        )

    def __del__(self) -> None:
        library().tcgemm_plan_destroy(self._plan)


def gemm(
    made: Problem,
    a: int | None,
    b: int | None,
    c: int | None,
    d: int | None,
    alpha: float = 1.0,
    beta: float = 0.0,
    device: int = CPU,
) -> str:
    at = ctypes.byref(Pointers(a, b, c, d))
    return status_name(library().tcgemm_gemm(ctypes.byref(made), device, at, alpha, beta, None))
