"""What the plots of `python -m tcgemm` show: lines, axes and legends, not their looks."""

from __future__ import annotations

import pytest
import tcgemm
from tcgemm._cli import main

pytest.importorskip("matplotlib")
from tcgemm._cli import plot

pytestmark = pytest.mark.usefixtures("on_the_cpu", "without_rests")


@pytest.fixture
def panels(monkeypatch):
    """The panels that were drawn."""
    drawn = []
    monkeypatch.setattr(plot, "save", lambda figure, path: drawn.extend(figure.axes))
    return drawn


@pytest.mark.parametrize("command", [["verify"], ["bench", "--sizes", "16"]])
@pytest.mark.parametrize("name", ["a.xyz", "a"])
def test_a_plot_of_no_known_kind_is_refused_at_once(capsys, tmp_path, monkeypatch, command, name):
    monkeypatch.setattr(tcgemm, "plan", None)  # nothing is multiplied
    assert main([*command, "--plot", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert f"{name}: expected a name that ends in one of" in error
    assert ".png" in error


def test_errors_that_keep_the_promise_are_below_the_bound_that_is_drawn(panels):
    modes = "fp32,fp16,fp8-to-fp8,fp16-sum-fp16"
    arguments = ["--k", "16,256", "--modes", modes, "--framework", "numpy", "--peers"]
    assert main(["verify", *arguments, "--plot", "a.png"]) == 0
    assert len(panels) == 6  # of which two are empty
    for panel in panels[:4]:
        lines = {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in panel.lines}
        for data in ("U(0,1)", "U(-1,1)", "wide"):
            for k, error in lines[data].items():
                assert 0 < error <= lines["hard bound"][k], panel.get_title(loc="left")


def test_results_without_error_are_drawn_and_explained(panels):
    """A sum of 4096 numbers from U(0,1) is beyond E4M3, and so is its exact value: both are 448."""
    assert main(["verify", "--k", "16,4096", "--modes", "fp8-to-fp8", "--plot", "a.png"]) == 0
    (panel,) = panels
    triangles = [line for line in panel.lines if line.get_marker() == "v"]
    assert 4096 in {k for line in triangles for k in line.get_xdata()}
    assert "triangles: no error: all results saturate at 448" in panel.get_xlabel()


SQUARES = ["bench", "--seconds", "0.02", "--sizes", "32,64,128,45", "--plot", "a.png"]


def test_squares_are_drawn_in_operations_a_second(panels):
    """Few operations a byte, and yet no memory that a copy would measure: they are in the cache."""
    assert main([*SQUARES, "--dtype", "float32,int8"]) == 0
    assert [panel.get_ylabel() for panel in panels[::2]] == ["GFLOP/s", "GOP/s"]


def test_the_speed_axis_ends_at_what_is_drawn(panels):
    """A row of another shape is in the bars alone, and the copy beside it nowhere."""
    assert main([*SQUARES, "--m", "1", "--n", "2048", "--k", "2048"]) == 0
    speeds, bars = panels
    fastest = max(value for line in speeds.lines for value in line.get_ydata())
    assert speeds.get_ylim() == (0, pytest.approx(1.06 * fastest))
    assert "other shapes: on the right" in speeds.get_xlabel()
    assert len(bars.get_yticks()) == 5


def test_colours_tell_who_and_dashes_tell_what(panels):
    assert main([*SQUARES, "--layout", "nn,tt"]) == 0
    legend = panels[0].get_legend()
    key = {
        text.get_text(): line
        for text, line in zip(legend.texts, legend.legend_handles, strict=True)
    }
    assert [*key] == ["tcgemm", "numpy", "nn", "tt"]
    assert key["tcgemm"].get_color() != key["numpy"].get_color()
    assert key["nn"].get_linestyle() != key["tt"].get_linestyle()
    assert 45 in panels[0].get_xticks()


def test_rows_of_a_large_matrix_are_drawn_in_bytes_a_second(panels):
    shapes = ["--m", "1,2", "--n", "2048", "--k", "2048"]
    assert main(["bench", "--seconds", "0.02", *shapes, "--plot", "a.png"]) == 0
    assert panels[0].get_ylabel() == "GB/s"
