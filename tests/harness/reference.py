"""A stand-in for the library in plain NumPy, to test the harness itself.

It keeps the accuracy contract and the BLAS semantics, and can be told to break them in one of the
ways of FAULTS: the harness must notice each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import FORMATS, Array, round_to, wide
from .modes import MODES

FAULTS = (
    "drop_k_tail",
    "tf32_inputs",
    "read_c_at_beta_0",
    "read_ab_at_alpha_0",
    "no_scaling_at_k_0",
    "write_into_gap",
    "ignore_stride",
    "flip_sign_of_tile",
    "zero_tile",
    "fp16_partials",
    "truncating_output",
    "one_element_unwritten",
    "write_an_input",
    "wrong_family",
)


@dataclass
class ReferencePlan:
    operands: tuple[Array, Array, Array | None, Array]
    alpha: float
    beta: float
    compute: str
    accumulator: str
    fault: str | None
    family: str = "host"
    kernel: str = "host_reference"
    split_k: int = 1

    def execute(self) -> Array:
        a, b, c, out = self.operands
        with np.errstate(all="ignore"):
            out[...] = round_to(self._result(a, b, c), out.dtype.name)
            self._break_output(out)
        if self.fault == "write_an_input" and a.size:
            a[..., 0, 0] = np.asarray(a[..., 0, 0] * 2 + 1).astype(a.dtype)
        return out

    def _result(self, a: Array, b: Array, c: Array | None) -> Array:
        holder = np.float64 if self.accumulator in ("float64", "int32") else np.float32
        alpha, beta = holder(self.alpha), holder(self.beta)
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        k = a.shape[-1]
        result = np.zeros(shape, holder)
        if self.fault == "no_scaling_at_k_0" and k == 0 and c is not None:
            return wide(c)
        if (alpha != 0 or self.fault == "read_ab_at_alpha_0") and k:
            result = alpha * self._product(a, b).astype(holder)
        if beta != 0 or (self.fault == "read_c_at_beta_0" and c is not None):
            assert c is not None
            # One fused multiply-add: float64 holds the exact product of two FP32 numbers.
            result = wide(result) + float(beta) * wide(c)
            result = result.astype(holder)
        return wide(result)

    def _product(self, a: Array, b: Array) -> Array:
        a, b = round_to(wide(a), self.compute), round_to(wide(b), self.compute)
        if self.fault == "drop_k_tail":
            whole = max(a.shape[-1] // 8 * 8, 1)
            a, b = a[..., :whole], b[..., :whole, :]
        if self.fault == "tf32_inputs" and self.compute == "float32":
            a, b = (_keep_bits(x, 13) for x in (a, b))
        if self.accumulator == "int32":
            return wide(round_to(wide(a) @ wide(b), "int32"))
        narrow = self.accumulator == "float16" or self.fault == "fp16_partials"
        if not narrow:
            holder = FORMATS[self.accumulator].numpy
            return a.astype(holder) @ b.astype(holder)
        total: Array = np.zeros((), np.float16)
        for start in range(0, a.shape[-1], 4):
            part = wide(a[..., start : start + 4]) @ wide(b[..., start : start + 4, :])
            total = round_to(wide(total) + part, "float16")
        return total.astype(np.float32)

    def _break_output(self, out: Array) -> None:
        tile = (..., slice(0, 8), slice(0, 8))
        if self.fault == "flip_sign_of_tile":
            out[tile] = -out[tile]
        elif self.fault == "zero_tile":
            out[tile] = 0
        elif self.fault == "truncating_output" and out.dtype == np.float16:
            out[...] = (out.view(np.uint16) & 0xFFFE).view(np.float16)
        elif self.fault == "one_element_unwritten":
            out.view(FORMATS[out.dtype.name].bits)[..., -1, -1] = FORMATS[out.dtype.name].nan
        elif self.fault == "write_into_gap" and out.size:
            beyond = np.lib.stride_tricks.as_strided(
                out[..., 0, :], (out.shape[-1] + 1,), (out.strides[-1],)
            )
            beyond[-1] = 0


@dataclass
class ReferenceLibrary:
    fault: str | None = None

    def plan(
        self,
        a: Array,
        b: Array,
        c: Array | None = None,
        *,
        alpha: float,
        beta: float,
        trans_a: bool,
        trans_b: bool,
        out: Array,
        out_dtype: str,
        precision: str | None,
        accumulate: str | None,
        determinism: str,
    ) -> Any:
        modes = [
            m
            for m in MODES.values()
            if (m.operand, m.precision, m.accumulate) == (a.dtype.name, precision, accumulate)
        ]
        if self.fault == "ignore_stride":
            flat = a.reshape(-1)[: a.size] if a.flags.c_contiguous else _first_elements(a)
            a = flat.reshape(a.shape)
        a = np.swapaxes(a, -1, -2) if trans_a else a
        b = np.swapaxes(b, -1, -2) if trans_b else b
        plan = ReferencePlan(
            (a, b, c, out), alpha, beta, modes[0].compute, modes[0].accumulator, self.fault
        )
        if self.fault == "wrong_family":
            plan.family = "simt"
        return plan


def _first_elements(array: Array) -> Array:
    start = array[(0,) * array.ndim :] if array.ndim == 0 else array
    return np.lib.stride_tricks.as_strided(start, (array.size,), (array.itemsize,))


def _keep_bits(values: Array, dropped: int) -> Array:
    mask = np.uint32(0xFFFFFFFF) << np.uint32(dropped)
    return (np.ascontiguousarray(values).view(np.uint32) & mask).view(np.float32)
