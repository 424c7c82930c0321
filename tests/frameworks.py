"""Arrays of each framework on each device, for tests that run once for every such place."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX leaves memory to the others


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def integers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small whole numbers: exact in every dtype, and so are their products."""
    return np.random.default_rng(seed).integers(-3, 4, shape)


class Place:
    """A framework and a device of its."""

    def __init__(self, framework: str, device: str) -> None:
        self.framework, self.device = framework, device
        self.module = pytest.importorskip(framework, reason=f"{framework} is not installed")
        if framework == "jax":
            try:
                self.jax_device = self.module.devices(device)[0]
            except RuntimeError:
                pytest.skip(f"this jax has no {device}")
        if framework == "cupy":
            with warnings.catch_warnings(action="ignore"):  # of a CUDA path that it looks for
                try:
                    self.module.zeros(1).fill(1)
                except Exception as error:
                    pytest.skip(f"this cupy cannot compile a kernel: {str(error)[:80]}")
        if framework == "torch" and device == "cuda":
            if not self.module.cuda.is_available():
                pytest.skip("this torch has no cuda")
            self.module.cuda.set_device(0)  # JAX leaves another one current where there are several

    def __repr__(self) -> str:
        return f"{self.framework}-{self.device}"

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def array(self, values: Any, dtype: str = "float32") -> Any:
        values = np.asarray(values).astype(numpy_dtype(dtype))
        if self.framework == "torch":
            # NumPy has no bfloat16 that torch takes; float32 holds its values.
            plain = values.astype(np.float32) if dtype == "bfloat16" else values
            tensor = self.module.from_numpy(np.array(plain))
            return tensor.to(getattr(self.module, dtype)).to(self.device)
        if self.framework == "jax":
            return self.module.device_put(values, self.jax_device)
        if self.framework == "cupy":
            try:
                return self.module.asarray(values)
            except (TypeError, ValueError):
                pytest.skip(f"this cupy has no {dtype}")
        return values

    def empty(self, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        return self.array(np.full(shape, 77), dtype)

    def to_numpy(self, array: Any) -> np.ndarray:
        """The values as float64."""
        if self.framework == "torch":
            return array.detach().double().cpu().numpy()
        if self.framework == "cupy":
            return self.module.asnumpy(array.astype(np.float64))
        return np.asarray(array).astype(np.float64)

    def synchronize(self) -> None:
        """Wait for the device, where work may be on streams that nobody else waits for."""
        if self.device == "cuda" and self.framework == "torch":
            self.module.cuda.synchronize()
        elif self.device == "cuda" and self.framework == "cupy":
            self.module.cuda.Device().synchronize()

    def dtype_name(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def owns(self, array: Any) -> bool:
        """Whether the array is one of this framework, on this device."""
        if self.framework == "torch":
            return isinstance(array, self.module.Tensor) and array.device.type == self.device
        if self.framework == "jax":
            return isinstance(array, self.module.Array) and array.device == self.jax_device
        return isinstance(array, self.module.ndarray)


PLACES = [
    ("numpy", "cpu"),
    ("torch", "cpu"),
    ("jax", "cpu"),
    ("torch", "cuda"),
    ("cupy", "cuda"),
    ("jax", "cuda"),
]


def each_place(only: Callable[[str, str], bool] = lambda framework, device: True) -> Any:
    """Runs a test that takes the fixture `place` once for each framework and device."""
    chosen = [
        pytest.param(pair, id="-".join(pair), marks=[pytest.mark.gpu] * (pair[1] == "cuda"))
        for pair in PLACES
        if only(*pair)
    ]
    return pytest.mark.parametrize("place", chosen, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    return Place(*request.param)
