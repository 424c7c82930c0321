"""What the package says of itself: versions, kernels, devices, the table of precisions, folders."""

import inspect
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import tcgemm
from harness.families import runs_on
from interpreter import python
from tcgemm import _config, _core


def test_versions_agree():
    assert tcgemm.__version__ == _core.__version__ == tcgemm.build_info()["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", tcgemm.__version__)


def test_build_info():
    info = tcgemm.build_info()
    assert {"version", "cuda_version", "compiler", "build_type", "architectures", "commit"} <= {
        *info
    }
    assert info["compiler"]
    assert bool(info["cuda_version"]) == bool(info["architectures"])


def test_devices_and_the_reason_why_there_is_none():
    devices = tcgemm.devices()
    assert bool(tcgemm.cuda_unavailable_reason()) == (not devices)
    for ordinal, row in enumerate(devices):
        assert row["ordinal"] == ordinal
        assert row["name"]
        assert row["compute_capability"] >= (5, 0)
        assert row["sm_count"] > 0
        assert row["memory_bytes"] > 1 << 28


def test_kernels():
    rows = tcgemm.kernels()
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
    for row in rows:
        assert row["name"].startswith(row["family"])
        assert bool(row["architectures"]) == (row["family"] != "host")
        assert re.fullmatch(r"(\d+x\d+x\d+)?", row["tile"])
        asks_for_shared = row["family"] not in ("simt", "host") or any(
            part in row["name"] for part in ("_whole_k_", "_outer_")
        )
        assert (row["dynamic_shared_bytes"] > 0) == asks_for_shared


def test_supports_on_the_cpu_has_every_precision_there_is():
    a = np.ones((1, 1), np.float32)
    with pytest.raises(tcgemm.InvalidArgument) as refused:
        tcgemm.plan(a, a, precision="none of them")
    (named,) = re.findall("must be one of (.*), or None", str(refused.value))
    there_are = {*named.split(", ")}
    assert there_are == {*get_args(tcgemm.typing.Precision)}
    rows = tcgemm.supports()
    assert {row["precision"] for row in rows} == there_are
    for row in rows:
        assert row["family"] == "host"
        assert row["kernel"]
        assert not row["reason"]


def test_supports_tells_why_there_is_no_kernel():
    for cc in (None, (9, 0)):
        for shape in ((0, 4, 4), (4, 0, 4)):
            assert {row["reason"] for row in tcgemm.supports(cc, shape)} == {
                "a result without elements needs no kernel"
            }
    assert all(row["kernel"] for row in tcgemm.supports(None, (4, 4, 0)))
    for row in tcgemm.supports((6, 0)):
        assert row["reason"] == "the oldest GPU that tcgemm has kernels for is sm_70"


@pytest.mark.parametrize("cc", [90, "9.0", (9,), (9, 0, 0), ("9", "0"), (9, 0.5)])
def test_supports_takes_a_pair(cc):
    with pytest.raises(tcgemm.InvalidArgument, match=r"cc is .*; it must be a pair"):
        tcgemm.supports(cc)


def test_supports_names_the_kernel_of_a_shape():
    """What a plan takes follows the shape and the number of multiprocessors, not the name."""
    built = tcgemm.build_info()["architectures"]
    if not built:
        pytest.skip("a host-only build")
    # A build for few architectures may have no code for an A100.
    cards = {(8, 0): 108, (9, 0): 132}
    shapes = ((64, 64, 64), (8192, 8192, 8192))
    served = [cc for cc in cards if any(row["kernel"] for row in tcgemm.supports(cc, shapes[0]))]
    if not served:
        pytest.skip("a build for other cards")
    for cc in served:
        few, large = (tcgemm.supports(cc, shape) for shape in shapes)
        kernels = [(a["kernel"], b["kernel"]) for a, b in zip(few, large, strict=True)]
        assert any(small != big for small, big in kernels)
        assert tcgemm.supports(cc, shapes[0], sm_count=cards[cc]) == few


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("shape", bad) for bad in (5, (1, 2), (1, 2, -3), (1, 2, 3.0), (1, 2, 1 << 63))),
        *(("sm_count", bad) for bad in (0, -1, 2.5, "8", 1 << 31)),
    ],
)
def test_supports_refuses_what_is_no_product(name, bad):
    with pytest.raises(tcgemm.InvalidArgument, match=rf"{name} is .*; it must be"):
        tcgemm.supports((8, 0), **{name: bad})


def test_supports_takes_integers_of_numpy():
    cc, shape, sm_count = np.array([8, 0]), np.array([64, 96, 128]), np.int64(108)
    assert tcgemm.supports(cc, shape, sm_count) == tcgemm.supports((8, 0), (64, 96, 128), 108)


@pytest.mark.parametrize("cc", [(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0)])
def test_supports_of_a_card_agrees_with_the_families(cc):
    built = {row["family"]: row["architectures"] for row in tcgemm.kernels()}
    rows = {(r["precision"], r["operands"], r["accumulate"]): r for r in tcgemm.supports(cc)}
    fp16 = rows["fp16", "float16", "fp32"]
    fp64 = rows["fp64", "float64", "fp64"]
    if runs_on(built.get("simt", ""), cc):
        on_tensor_cores = cc >= (8, 0) and runs_on(built.get("sm80_mma", ""), cc)
        assert fp64["family"] == ("sm80_mma" if on_tensor_cores else "simt")
        assert fp16["kernel"]
        int8 = [r["family"] for r in rows.values() if r["precision"] == "int8"]
        if (7, 0) <= cc < (8, 0):
            assert set(int8) == {"sm70_wmma" if cc == (7, 5) else "simt"}
    else:
        assert not fp16["kernel"]
        assert fp16["reason"]
    assert all(row["family"] != "host" for row in rows.values())


def test_folders_hold_what_they_should():
    for function in (tcgemm.get_include, tcgemm.get_cmake_dir, tcgemm.get_library_dir):
        assert Path(function()).is_absolute()
    if not Path(tcgemm.get_include()).is_dir():
        pytest.skip("not an installed package")
    assert (Path(tcgemm.get_include()) / "tcgemm" / "tcgemm.hpp").is_file()
    assert (Path(tcgemm.get_cmake_dir()) / "tcgemm-config.cmake").is_file()
    assert list(Path(tcgemm.get_library_dir()).glob("libtcgemm.so*"))
    assert (Path(tcgemm.__file__).parent / "py.typed").is_file()


def test_tcgemm_config_prints_what_the_package_says(capsys):
    assert _config.main(["--includedir", "--libdir", "--cmakedir", "--version"]) == 0
    said = (tcgemm.get_include(), tcgemm.get_library_dir(), tcgemm.get_cmake_dir())
    assert capsys.readouterr().out.strip() == " ".join((*said, tcgemm.__version__))


def test_tcgemm_config_without_arguments_shows_an_example(capsys):
    assert _config.main([]) == 2
    output = capsys.readouterr()
    assert "example: g++ -std=c++17 main.cpp $(tcgemm-config --cflags" in output.err
    assert not output.out


def test_public_names_are_documented():
    for name in tcgemm.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(tcgemm, name)), name
    assert {*tcgemm.__all__} <= {*dir(tcgemm)}


def test_the_four_products_take_the_same_keywords():
    gemm = inspect.signature(tcgemm.gemm).parameters
    assert gemm == inspect.signature(tcgemm.plan).parameters
    assert gemm == inspect.signature(tcgemm.explain).parameters
    matmul = inspect.signature(tcgemm.matmul).parameters
    keywords = [name for name, p in matmul.items() if p.kind is p.KEYWORD_ONLY]
    assert keywords == [name for name in gemm if name in keywords]


def test_docstring_examples_are_true():
    import doctest

    from tcgemm import _api, _info

    for module, least in ((_api, 10), (_info, 2)):
        result = doctest.testmod(module)
        assert result.attempted > least
        assert result.failed == 0


def test_the_stub_names_what_the_module_has():
    stub = (Path(tcgemm.__file__).parent / "_core.pyi").read_text()
    named = set(re.findall(r"^(?:def|class) (\w+)|^(\w+):", stub, re.M))
    named = {a or b for a, b in named} - {"_OfProduct"}  # a type of functions
    real = {name for name in dir(_core) if not name.startswith("_")} | {"__version__"}
    assert named == real
    methods = set(
        re.findall(r"^    def (\w+)", stub.split("class Plan")[1].split("\ndef ")[0], re.M)
    )
    assert methods == {name for name in dir(_core.Plan) if not name.startswith("_")}


def test_p01_import_loads_no_framework():
    script = """
        import sys, tcgemm
        loaded = {"torch", "jax", "cupy", "ml_dtypes"} & set(sys.modules)
        assert not loaded, loaded
        tcgemm.kernels(), tcgemm.build_info(), tcgemm.supports((9, 0))
    """
    python(script)


def test_unused_memory_is_given_back():
    tcgemm.release_unused_memory()
    for device in ("0", True, -1, 1.0):
        with pytest.raises(tcgemm.InvalidArgument, match="it must be the number of a GPU"):
            tcgemm.release_unused_memory(device)
    if not tcgemm.devices():
        with pytest.raises(tcgemm.DeviceError, match="cuda:0 does not exist"):
            tcgemm.release_unused_memory(0)
        return
    a = np.ones((1024, 1024), np.float32)
    tcgemm.matmul(a, a)
    tcgemm.release_unused_memory(0)
    assert tcgemm.matmul(a, a)[0, 0] == 1024
    with pytest.raises(tcgemm.DeviceError, match="cuda:63 does not exist"):
        tcgemm.release_unused_memory(63)
