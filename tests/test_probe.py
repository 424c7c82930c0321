"""The probe of the tensor cores: on sums made in known ways, and on the GPU at hand."""

import math

import numpy as np
import pytest
from harness import cuda, round_to, wide
from tcgemm import _core
from tcgemm._cli import main, probe, verify

NAMES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}


def tensor_core(precision, addends, fraction_bits, rounding=math.trunc, flush=False):
    """A model of one: steps of aligned sums, cut to so many bits, the accumulator among them."""

    def multiply(a, b, c):
        dtype = NAMES[precision]
        a, b = wide(round_to(a, dtype)), wide(round_to(b, dtype))
        if flush:
            smallest = {"fp16": 2.0**-14, "fp8_e4m3": 2.0**-6, "fp8_e5m2": 2.0**-14}
            least = smallest.get(precision, 2.0**-126)
            a, b = (np.where(abs(x) < least, 0, x) for x in (a, b))
        result = []
        for row_a, row_b, total in zip(a, b, c, strict=True):
            total = 0.0 if flush and abs(total) < 2.0**-126 else float(total)
            for start in range(0, len(row_a), addends):
                terms = [total, *(row_a * row_b)[start : start + addends]]
                largest = max(abs(t) for t in terms)
                if largest == 0:
                    continue
                unit = max(2.0 ** (math.floor(math.log2(largest)) - fraction_bits), 2.0**-149)
                total = sum(rounding(t / unit) for t in terms) * unit
                step = 2.0 ** (math.floor(math.log2(abs(total))) - 23) if total else 1.0
                total = rounding(total / max(step, 2.0**-149)) * max(step, 2.0**-149)
            result.append(total)
        return np.array(result)

    return multiply


@pytest.mark.parametrize("precision", NAMES)
@pytest.mark.parametrize(("addends", "bits"), [(4, 23), (8, 24), (4, 25), (8, 13)])
def test_n24_hw_probe_of_known_sums(precision, addends, bits):
    k = 8 if precision == "tf32" else 16
    seen = probe.Probe(tensor_core(precision, addends, bits), precision, k).measure()
    assert (seen.fraction_bits, seen.addends) == (bits, addends)
    assert seen.with_accumulator
    assert seen.rounding == "toward zero"
    assert seen.subnormal_inputs
    assert seen.subnormal_sums


def test_n24_hw_probe_of_steps_that_are_not_neighbours():
    """As where an instruction is made of others that take every second k."""
    inner = tensor_core("fp8_e4m3", 8, 25)
    order = np.argsort(np.arange(16) % 2, kind="stable")
    seen = probe.Probe(lambda a, b, c: inner(a[:, order], b[:, order], c), "fp8_e4m3", 16).measure()
    assert (seen.fraction_bits, seen.addends) == (25, 8)


@pytest.mark.parametrize(
    ("rounding", "name"), [(math.floor, "down"), (math.ceil, "up"), (round, "to nearest")]
)
def test_n24_hw_probe_tells_roundings_apart(rounding, name):
    seen = probe.Probe(tensor_core("fp16", 8, 23, rounding), "fp16", 16)
    assert seen._rounding(1, 23) == name


def test_n24_hw_probe_sees_what_is_flushed():
    seen = probe.Probe(tensor_core("fp16", 8, 24, flush=True), "fp16", 16).measure()
    assert not seen.subnormal_inputs
    assert not seen.subnormal_sums


def test_n24_hw_probe_warns_of_a_gpu_that_differs():
    found = {"mma_fp16": probe.Findings(8, 24, True, "toward zero", True, True)}
    assert probe.differences(found, 8) == []
    assert "8 addends" in probe.differences(found, 7)[0]


@pytest.mark.parametrize("json", [[], ["--json", "-"]], ids=["table", "json"])
@pytest.mark.parametrize(("major", "status"), [(8, 0), (7, 1)])
def test_n24_hw_probe_of_a_gpu_that_differs_fails(capsys, monkeypatch, json, major, status):
    found = {"mma_fp16": probe.Findings(8, 24, True, "toward zero", True, True)}
    gpu = {"ordinal": 0, "name": "a GPU", "compute_capability": (major, 0)}
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")  # main() sets it: here it is restored
    monkeypatch.setattr(verify, "gpu_of", lambda backend: gpu)
    monkeypatch.setattr(verify.machine, "describe", lambda device: {})
    monkeypatch.setattr(probe, "measure", lambda ordinal: found)
    assert main(["verify", "--probe", *json]) == status
    assert ("known: 4 and 23" in capsys.readouterr().out) == bool(status)


@pytest.mark.gpu
def test_n24_hw_probe_of_this_gpu():
    found = probe.measure(0)
    assert set(found) == {name for name, _, _ in _core.mma_instructions(0)}
    assert probe.differences(found, cuda.compute_capability()[0]) == []
    for name, seen in found.items():
        assert seen.rounding == "toward zero", name
        assert seen.subnormal_inputs, name
        assert seen.subnormal_sums, name
