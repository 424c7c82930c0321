"""PEP 517 backend: scikit-build-core, plus a CUDA compiler from PyPI where the machine has none.

`pip install .` must give the CUDA build with nothing but a C++ compiler and pip. A machine with a
CUDA toolkit must not download a second one (105 MB), so the compiler wheels are requirements only
where no usable nvcc is found.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from typing import Any

from scikit_build_core import build as _backend
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

MINIMUM_CUDA = (12, 4)

# One minor version for all parts: 13.0 has the smallest wheels, and every driver that runs CUDA 13
# takes its PTX.
COMPILER_WHEELS = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
]

Settings = dict[str, Any] | None


def say(message: str) -> None:
    print(f"*** tcgemm: {message}", file=sys.stderr, flush=True)


def cuda_wanted(settings: Settings) -> bool:
    """TCGEMM_CUDA of `--config-settings=cmake.define.TCGEMM_CUDA=`, of the environment, else ON."""
    value = os.environ.get("TCGEMM_CUDA", "ON")
    value = (settings or {}).get("cmake.define.TCGEMM_CUDA", value)
    return str(value).upper() not in {"OFF", "0", "FALSE", "NO", "N"}


def nvcc_version(nvcc: str) -> tuple[int, int] | None:
    try:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"release (\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None


def candidates() -> list[str]:
    """Every nvcc, best first: CUDACXX, CUDA_HOME, PATH, the usual folders, installed wheels."""
    places = [os.environ.get("CUDACXX", "")]
    places += [
        f"{os.environ[name]}/bin/nvcc" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ
    ]
    places.append("nvcc")
    for pattern in ("/usr/local/cuda", "/opt/cuda", "/usr/local/cuda-*", "/opt/cuda-*"):
        places += sorted(glob.glob(f"{pattern}/bin/nvcc"), reverse=True)
    places += [f"{folder}/nvidia/cu13/bin/nvcc" for folder in sys.path]
    return [path for path in map(shutil.which, places) if path]


def find_nvcc() -> str | None:
    named = os.environ.get("CUDACXX")
    if named and not shutil.which(named):
        say(f"CUDACXX={named} is no program: looking elsewhere")
    for nvcc in candidates():
        version = nvcc_version(nvcc)
        if version and version >= MINIMUM_CUDA:
            return nvcc
        shown = ".".join(map(str, version)) if version else "of no known version"
        needed = ".".join(map(str, MINIMUM_CUDA))
        say(f"passing over {nvcc}: CUDA {shown}, and {needed} or newer is needed")
    return None


def compiler_requirements(settings: Settings) -> list[str]:
    if not cuda_wanted(settings):
        return []
    nvcc = find_nvcc()
    if nvcc:
        say(f"using {nvcc}")
        return []
    say("no usable nvcc on this machine: taking CUDA 13's compiler from PyPI for the build")
    say("(CUDACXX or CUDA_HOME names another one; TCGEMM_CUDA=OFF builds for the CPU alone)")
    return COMPILER_WHEELS


def export_nvcc(settings: Settings) -> None:
    """Hands the chosen compiler to CMake, so that CMake does no search of its own."""
    if cuda_wanted(settings):
        nvcc = find_nvcc()
        if not nvcc:
            raise SystemExit(
                "tcgemm: no CUDA compiler. Set CUDACXX or CUDA_HOME to CUDA 12.4 or newer, run "
                f"`pip install {' '.join(COMPILER_WHEELS)}`, or build for the CPU alone with "
                "TCGEMM_CUDA=OFF."
            )
        os.environ["CUDACXX"] = nvcc


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    requires = _backend.get_requires_for_build_wheel(config_settings)
    return requires + compiler_requirements(config_settings)


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    requires = _backend.get_requires_for_build_editable(config_settings)
    return requires + compiler_requirements(config_settings)


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    export_nvcc(config_settings)
    return _backend.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    export_nvcc(config_settings)
    return _backend.build_editable(wheel_directory, config_settings, metadata_directory)
