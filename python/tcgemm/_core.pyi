"""The compiled part of tcgemm; use the functions of the package tcgemm."""

from typing import Any, Generic, Protocol, Unpack, overload

from typing_extensions import TypeVar

from .typing import Accumulate, Array, ExecuteOptions, Number, OutT, Precision

# What execute() returns if it is given no other `out`; what a function of a product returns.
_ResultT = TypeVar("_ResultT", covariant=True, default=Any)

__version__: str

# Positional arguments only, in the order that _api.py passes them.
class _OfProduct(Protocol[_ResultT]):
    def __call__(
        self,
        a: Any,
        b: Any,
        c: Any,
        out: Any,
        alpha: Number,
        beta: Number,
        trans_a: bool,
        trans_b: bool,
        out_dtype: str | None,
        precision: str | None,
        accumulate: str | None,
        determinism: str,
        stream: Any,
        overflow: str,
        a_dtype: str | None,
        b_dtype: str | None,
        scale_a: Any,
        scale_b: Any,
        scale_d: Any,
        /,
    ) -> _ResultT: ...

class Plan(Generic[_ResultT]):
    @overload
    def execute(
        self,
        a: Array | None = None,
        b: Array | None = None,
        c: Array | None = None,
        out: None = None,
        **options: Unpack[ExecuteOptions],
    ) -> _ResultT: ...
    @overload
    def execute(
        self,
        a: Array | None = None,
        b: Array | None = None,
        c: Array | None = None,
        *,
        out: OutT,
        **options: Unpack[ExecuteOptions],
    ) -> OutT: ...
    @overload
    def execute(
        self,
        a: Array | None,
        b: Array | None,
        c: Array | None,
        out: OutT,
        **options: Unpack[ExecuteOptions],
    ) -> OutT: ...
    @property
    def kernel(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def fallback(self) -> str: ...
    @property
    def workspace_bytes(self) -> int: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def accumulate(self) -> Accumulate: ...
    @property
    def epilogue(self) -> str: ...
    @property
    def split_k(self) -> int: ...
    @property
    def out_dtype(self) -> str: ...
    @property
    def device(self) -> str: ...

multiply: _OfProduct[Any]
plan: _OfProduct[Plan[Any]]
explain: _OfProduct[list[dict[str, Any]]]

def explain_example(
    operand_dtype: str,
    out_dtype: str,
    precision: str,
    accumulate: str,
    shape: tuple[int, int, int],
    cc: tuple[int, int] | None,
    sm_count: int,
    shared_memory_per_block: int,
    l2_bytes: int,
    clock_khz: int,
    memory_gb_per_s: int,
    /,
) -> list[dict[str, Any]]: ...
def mma_instructions(ordinal: int, /) -> list[tuple[str, str, int]]: ...
def run_mma(name: str, ordinal: int, a: Any, b: Any, c: Any, /) -> Any: ...
def kernels() -> list[dict[str, Any]]: ...
def devices() -> list[dict[str, Any]]: ...
def device_for_host_arrays(value: str | None = None) -> str: ...
def build_info() -> dict[str, str]: ...
def cuda_unavailable_reason() -> str: ...
def release_unused_memory(device: int | None = None) -> None: ...
def clear_plan_cache() -> None: ...
