"""The README says what is: its Python runs, its support table is the registry's."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import tcgemm
from tcgemm.__main__ import main

README = Path(__file__).parents[1] / "README.md"
RELEASED = {"70", "75", "80", "89", "90", "90a", "90-virtual"}  # architectures of the wheel


def test_the_python_examples_run(monkeypatch):
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)
    start, scales = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    printed = io.StringIO()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed):
        exec(start, names)
    assert printed.getvalue().strip() in {kernel["name"] for kernel in tcgemm.kernels()}
    assert names["d"].dtype == "float16"
    assert names["e"].dtype == names["g"].dtype == names["h"].dtype == "float32"
    pytest.importorskip("ml_dtypes")
    exec(scales, names)
    assert names["s"].dtype == "bfloat16"


def test_the_support_table_is_the_registrys(capsys):
    if set(tcgemm.build_info()["architectures"].split(";")) != RELEASED:
        pytest.skip("this build has other architectures than the released wheel")
    assert main(["info", "--support"]) == 0
    table = capsys.readouterr().out.strip()
    assert table in README.read_text()
