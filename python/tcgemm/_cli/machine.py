"""Facts about this machine and this installation, for reports and result files."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import statistics
import subprocess
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import tcgemm

_QUERY = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu"]


def versions() -> dict[str, str | None]:
    """Of tcgemm, Python and every framework whose arrays tcgemm takes; None: not installed."""
    found: dict[str, str | None] = {
        "tcgemm": tcgemm.__version__,
        "python": platform.python_version(),
    }
    for package in ("numpy", "ml_dtypes", "torch", "jax", "rich", "matplotlib"):
        found[package] = _version(package)
    cupy = [_version(name) for name in ("cupy", "cupy-cuda12x", "cupy-cuda13x")]
    found["cupy"] = next((version for version in cupy if version), None)
    return found


def cublas_version() -> str | None:
    """Of the wheel that PyTorch and CuPy take cuBLAS from, where there is one."""
    names = ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12")
    return next((version for version in map(_version, names) if version), None)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def environment() -> dict[str, str]:
    """The variables that are set and that change what tcgemm does."""
    wanted = ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING")
    return {
        key: value
        for key, value in sorted(os.environ.items())
        if key.startswith("TCGEMM_") or key in wanted
    }


def nvidia_smi(query: list[str]) -> list[dict[str, str]]:
    """One dictionary for each GPU; empty where there is no nvidia-smi or it fails."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={','.join(query)}", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line for line in output.stdout.splitlines() if line.strip()]
    return [
        dict(zip(query, (value.strip() for value in line.split(",")), strict=False))
        for line in lines
    ]


def driver_version() -> str | None:
    gpus = nvidia_smi(["driver_version"])
    return gpus[0]["driver_version"] if gpus else None


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cpu_count() -> int:
    """Hardware threads that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> float | None:
    """Processes that ran or waited to run in the last minute, on average."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def describe(device: str) -> dict[str, Any]:
    """What a result file says of where it was made. `device`: "cpu" or "cuda:N"."""
    build = tcgemm.build_info()
    facts: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": build.get("commit") or None,
        "build": build,
        "versions": versions(),
        "environment": environment(),
        "cpu": {"name": cpu_name(), "threads": cpu_count(), "load": load()},
    }
    if device != "cpu":
        ordinal = int(device.rpartition(":")[2])
        gpu = next(entry for entry in tcgemm.devices() if entry["ordinal"] == ordinal)
        facts["gpu"] = {key: value for key, value in gpu.items() if key != "ordinal"}
        facts["driver"] = driver_version()
        facts["cublas"] = cublas_version()
        limits = nvidia_smi(["power.limit", "clocks.max.sm", "clocks.max.mem"])
        facts["limits"] = limits[min(ordinal, len(limits) - 1)] if limits else None
    return facts


class Watch:
    """Samples clocks, power and temperature once a second while a benchmark runs."""

    def __init__(self, device: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lines: list[str] = []
        self._ordinal = None if device == "cpu" else device.rpartition(":")[2]

    def __enter__(self) -> Watch:
        if self._ordinal is None or shutil.which("nvidia-smi") is None:
            return self
        command = ["nvidia-smi", f"--query-gpu={','.join(_QUERY)}"]
        command += ["--format=csv,noheader,nounits", "-l", "1", "-i", self._ordinal]
        try:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            return self
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._reader.join(timeout=2)
            if self._process.stdout is not None:
                self._process.stdout.close()

    def summary(self) -> dict[str, Any] | None:
        """[minimum, median, maximum] of each (MHz, MHz, W, degrees C); None without samples."""
        columns: list[list[float]] = [[] for _ in _QUERY]
        for line in self._lines:
            values = line.split(",")
            if len(values) != len(_QUERY):
                continue
            for column, value in zip(columns, values, strict=True):
                try:
                    column.append(float(value))
                except ValueError:  # "[N/A]"
                    continue
        if not any(columns):
            return None
        return {
            name: [min(column), statistics.median(column), max(column)] if column else None
            for name, column in zip(_QUERY, columns, strict=True)
        }
