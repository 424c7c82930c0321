"""What the plots of `python -m tcgemm` show: lines, axes and legends, not their looks."""

from __future__ import annotations

import pytest
import tcgemm
from tcgemm._cli import main

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)


@pytest.mark.parametrize("command", [["verify"], ["bench", "--sizes", "16"]])
@pytest.mark.parametrize("name", ["a.xyz", "a"])
def test_a_plot_of_no_known_kind_is_refused_at_once(capsys, tmp_path, monkeypatch, command, name):
    monkeypatch.setattr(tcgemm, "plan", None)  # nothing is multiplied
    assert main([*command, "--plot", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert f"{name}: expected a name that ends in one of" in error
    assert ".png" in error
