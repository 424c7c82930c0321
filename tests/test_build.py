"""The C++ side of what was installed: its tests, a program that uses it, and its build."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tcgemm
from tcgemm import _config

ROOT = Path(__file__).parents[1]
PUBLIC = sorted(path.stem for path in (ROOT / "cpp/tests").glob("*.cpp"))
INTERNAL = sorted(path.stem for path in (ROOT / "cpp/tests/internal").glob("*.cpp"))


def run(*command: str | Path) -> str:
    # CMake and Ninja may be those beside this Python, whose environment need not be activated.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout[-8000:]}", pytrace=False)
    return done.stdout


def build(source: Path, folder: Path, *options: str) -> Path:
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options)
    run("cmake", "--build", folder)
    return folder


def ctest(folder: Path, name: str) -> None:
    run("ctest", "--test-dir", folder, "-R", f"^{name}$", "--no-tests=error", "--output-on-failure")


@pytest.fixture(scope="module")
def installed_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """cpp/tests, built against the package that is installed."""
    folder = tmp_path_factory.mktemp("installed")
    return build(ROOT / "cpp/tests", folder, f"-Dtcgemm_DIR={tcgemm.get_cmake_dir()}")


@pytest.fixture(scope="module")
def source_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project built by CMake alone, with benchmarks, for one architecture or as the package."""
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
    has_cuda = nvcc and tcgemm.build_info()["cuda_version"]
    cuda = ["-DCMAKE_CUDA_ARCHITECTURES=90"] if has_cuda else ["-DTCGEMM_CUDA=OFF"]
    return build(ROOT, tmp_path_factory.mktemp("source"), "-DTCGEMM_BUILD_BENCHMARKS=ON", *cuda)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_cpp_tests_pass_on_the_installed_library(installed_tests: Path, name: str) -> None:
    ctest(installed_tests, name)


@pytest.mark.parametrize("name", INTERNAL)
def test_internal_cpp_tests_pass(source_build: Path, name: str) -> None:
    ctest(source_build, name)


def test_a_program_finds_the_installed_package(tmp_path: Path) -> None:
    consumer = ROOT / "cpp/examples/consumer"
    build(consumer, tmp_path, f"-Dtcgemm_DIR={tcgemm.get_cmake_dir()}")
    assert "CPU: right" in run(tmp_path / "consumer")


@pytest.mark.parametrize("library", ["tcgemm", "tcgemm_static"])
def test_a_program_finds_a_cmake_install(source_build: Path, tmp_path: Path, library: str) -> None:
    run("cmake", "--install", source_build, "--prefix", tmp_path / "prefix")
    consumer = tmp_path / "consumer"
    shutil.copytree(ROOT / "cpp/examples/consumer", consumer)
    text = (consumer / "CMakeLists.txt").read_text()
    (consumer / "CMakeLists.txt").write_text(text.replace("tcgemm::tcgemm", f"tcgemm::{library}"))
    build(consumer, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")
    assert "CPU: right" in run(tmp_path / "build/consumer")


def test_a_program_builds_with_the_flags_of_tcgemm_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _config.main(["--cflags", "--ldflags"]) == 0
    flags = shlex.split(capsys.readouterr().out)
    compiler = os.environ.get("CXX", "g++")
    source = ROOT / "cpp/examples/consumer/main.cpp"
    run(compiler, "-std=c++17", source, "-o", tmp_path / "consumer", *flags)
    assert "CPU: right" in run(tmp_path / "consumer")


def test_help_of_tcgemm_config_never_goes_where_flags_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr", None)  # closed
    assert _config.main([]) == 2
    assert capsys.readouterr().out == ""


def test_one_version_everywhere() -> None:
    version = tcgemm.__version__
    assert importlib.metadata.version("tcgemm") == version
    header = Path(tcgemm.get_include(), "tcgemm/version.h").read_text()
    parts = re.findall(r"TCGEMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    assert ".".join(parts) == version
    assert f'TCGEMM_VERSION "{version}"' in header
    cmake = Path(tcgemm.get_cmake_dir(), "tcgemm-config-version.cmake").read_text()
    assert f'set(PACKAGE_VERSION "{version}")' in cmake


def test_pip_builds_of_other_projects_find_the_package() -> None:
    (entry,) = importlib.metadata.entry_points(group="cmake.prefix", name="tcgemm")
    prefix = Path(entry.load().__file__).parent
    assert (prefix / "lib/cmake/tcgemm/tcgemm-config.cmake").is_file()


def test_the_library_links_no_cuda_library() -> None:
    library = Path(_config.get_library_dir(), "libtcgemm.so")
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", library))
    assert needed
    assert not [name for name in needed if "cuda" in name or "cublas" in name]
