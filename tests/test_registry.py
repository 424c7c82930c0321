"""The registry: each family takes what is written down, and a forced one is what runs."""

import re

import numpy as np
import pytest
import tcgemm
from harness import (
    FAMILY_MODES,
    HALVES_MODES,
    HALVES_PAY,
    INT8_SCALING_FAMILIES,
    LEAST_CAPABILITY,
    MODES,
    SCALING_FAMILIES,
    Lab,
    data,
    families,
    in_halves,
    round_to,
    scaled,
    takes,
)


def operands(mode, m=64, n=64, k=64):
    return round_to(np.ones((m, k)), mode.operand), round_to(np.ones((k, n)), mode.operand)


def refuses(lab, mode, out_dtype):
    with pytest.raises(tcgemm.NoKernelError) as caught:
        lab.prepare(mode, *operands(mode), out_dtype=out_dtype)
    message = str(caught.value)
    assert f"TCGEMM_FORCE_FAMILY={lab.family}" in message
    # Each reason once, and all of the family's kernels have one.
    given = [line.split(": ", 1) for line in message.split("\n  ")[1:]]
    assert len({reason for _, reason in given}) == len(given), message
    count = 0
    for kernels, _ in given:
        number = re.search(r"\d+(?= more$| of \w+$)", kernels)
        count += int(number[0]) + ("more" in kernels) if number else 1
    assert count == sum(kernel["family"] == lab.family for kernel in tcgemm.kernels()), message


def test_each_family_takes_what_is_written_and_refuses_the_rest(lab):
    for mode in MODES.values():
        for out in mode.outputs:
            if takes(lab.family, mode):
                run = lab.prepare(mode, *operands(mode), out_dtype=out)  # fails where none is found
                assert run.plan.family == lab.family
            else:
                refuses(lab, mode, out)


def test_the_families_of_this_build():
    built = {kernel["family"] for kernel in tcgemm.kernels()}
    expected = set(FAMILY_MODES) if tcgemm.build_info()["cuda_version"] else {"host"}
    assert built == expected
    order = list(dict.fromkeys(kernel["family"] for kernel in tcgemm.kernels()))
    assert order == [family for family in FAMILY_MODES if family in built]


def test_kernel_names_are_unique_and_begin_with_their_family():
    names = [kernel["name"] for kernel in tcgemm.kernels()]
    assert len(set(names)) == len(names)
    for kernel in tcgemm.kernels():
        assert kernel["name"].startswith(kernel["family"])


FP8 = ("float8_e4m3fn", "float8_e5m2")


def test_each_kernel_can_be_forced_by_name(lab, monkeypatch):
    """Every kernel of the family multiplies right, not only those that selection prefers."""
    rng = np.random.default_rng(5)
    ran = set()
    for kernel in lab.force_each(monkeypatch):
        for name in FAMILY_MODES[lab.family]:
            mode = MODES[name]
            for out in mode.outputs:
                for m, n, k in ((1, 1, 1), (64, 48, 64), (129, 257, 65), (300, 70, 1000)):
                    a = round_to(rng.integers(-1, 1, (m, k), endpoint=True), mode.operand)
                    b = round_to(rng.integers(-1, 1, (k, n), endpoint=True), mode.operand)
                    try:
                        done = lab.check(mode, a, b, out_dtype=out, expect="exact")
                    except tcgemm.NoKernelError:
                        continue
                    assert done.kernel == kernel
                    ran.add(kernel)
        for of_a, of_b, out, accumulate, blocks in (
            ("int8", "int8", "float32", None, 0),
            *((x, y, y, "fast", 0) for x in FP8 for y in FP8),
            *((x, y, y, "promoted", blocks) for x in FP8 for y in FP8 for blocks in (0, 3)),
        ):
            a = round_to(rng.integers(-1, 1, (70, 300), endpoint=True), of_a)
            b = round_to(rng.integers(-1, 1, (300, 65), endpoint=True), of_b)
            how = {"out_dtype": out, "accumulate": accumulate}
            if blocks:  # of k
                how["scales"] = {"scale_a": np.full((70, blocks), 0.5, np.float32)}
            try:
                used, _ = scaled.run(lab, a, b, **how)
            except tcgemm.NoKernelError:
                continue
            scaled.check(lab, a, b, **how)
            scaling = INT8_SCALING_FAMILIES if of_a == "int8" else SCALING_FAMILIES
            assert lab.family in scaling
            assert used == kernel
            ran.add(kernel)
    assert ran == {k["name"] for k in tcgemm.kernels() if k["family"] == lab.family}


@pytest.mark.parametrize("mode", MODES.values(), ids=str)
def test_the_first_family_that_takes_a_product_computes_it(mode, monkeypatch):
    """Without force: the order of FAMILY_MODES, on the CPU and, where there is one, the GPU. A
    product as small as this one is not worth being packed into halves, nor TF32 for odd rows."""
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)
    for on_gpu in {family != "host" for family in families.runnable()}:
        monkeypatch.setenv("TCGEMM_DEVICE", "cuda:0" if on_gpu else "cpu")
        candidates = [
            f for f in FAMILY_MODES if f in families.runnable() and (f != "host") == on_gpu
        ]
        expected = next(f for f in candidates if takes(f, mode) and not in_halves(f, mode))
        rng = np.random.default_rng(6)
        k, n = (304, 136) if mode.name == "tf32" else (300, 130)
        a, b = data.signed(rng, mode, (257, k), (k, n))
        # Lab.check fails where the plan's family is another one.
        Lab(tcgemm, expected).check(mode, a, b)


def test_n08_fp32_operands_are_never_rounded_unasked(monkeypatch):
    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)
    for family in families.runnable():
        lab = Lab(tcgemm, "simt" if family != "host" else "host")
        monkeypatch.setenv("TCGEMM_DEVICE", "cuda:0" if lab.on_gpu else "cpu")
        for value in (1024.5, 1 + 2.0**-20, 1 + 2.0**-23):
            a = np.full((300, 256), np.float32(value))
            got = lab.check(MODES["fp32"], a, np.eye(256, dtype=np.float32), expect="exact").out
            assert (got == np.float32(value)).all()


def test_an_unknown_forced_name_is_an_error(monkeypatch):
    a, b = operands(MODES["fp32"])
    for variable, names in (
        ("TCGEMM_FORCE_FAMILY", "host"),
        ("TCGEMM_FORCE_KERNEL", "kernels"),
    ):
        monkeypatch.setenv(variable, "sm99_none")
        with pytest.raises(tcgemm.InvalidArgument, match=f"(?s){variable}.*sm99_none.*{names}"):
            tcgemm.matmul(a, b)
        monkeypatch.delenv(variable)
    for name, value in (
        ("TCGEMM_FORCE_KERNAL", "host_float32"),
        ("TCGEMM_FORCE_", "x"),
        ("TCGEMM_FORCE_X", "="),
    ):
        monkeypatch.setenv(name, value)
        with pytest.raises(tcgemm.InvalidArgument, match=f"^{name} is set.*_FORCE_KERNEL"):
            tcgemm.matmul(a, b)
        monkeypatch.delenv(name)


def test_explain_agrees_with_the_table(monkeypatch):
    """What each kernel says of a problem, on the CPU and where there is one on the GPU."""
    for family in families.runnable():
        lab = Lab(tcgemm, family)
        monkeypatch.setenv("TCGEMM_DEVICE", "cuda:0" if lab.on_gpu else "cpu")
        for mode in MODES.values():
            a, b = (lab.place(x).array for x in operands(mode))
            verdicts = tcgemm.explain(a, b, precision=mode.precision, accumulate=mode.accumulate)
            accepted = {v["family"] for v in verdicts if not v["reason"]}
            assert (family in accepted) == takes(family, mode), (family, mode.name)
            for verdict in verdicts:
                if verdict["family"] not in accepted:
                    assert len(verdict["reason"]) > 10, verdict


def test_e06_unsupported_sm(lab, monkeypatch):
    """A family that the device can't run is refused, with the reason."""
    a, b = operands(MODES["fp16"])
    if lab.family == "host":
        # Host memory under a forced GPU family, and the other way round: refused, not computed.
        for family in {kernel["family"] for kernel in tcgemm.kernels()} - {"host"}:
            monkeypatch.setenv("TCGEMM_FORCE_FAMILY", family)
            with pytest.raises(tcgemm.NoKernelError, match="GPU memory"):
                tcgemm.matmul(a, b)
    else:
        monkeypatch.setenv("TCGEMM_FORCE_FAMILY", "host")
        arrays = [lab.place(x).array for x in (a, b)]
        out = lab.place_output((64, 64), "float16")
        with pytest.raises(tcgemm.NoKernelError, match="host memory"):
            tcgemm.matmul(*arrays, out=out.array)
        assert out.unwritten(out.read("out")) == 64 * 64


@pytest.mark.parametrize("capability", [(6, 1), (7, 0), (7, 5), (8, 0), (8, 9), (9, 0), (12, 0)])
def test_e06_support_table_of_cards_that_are_not_here(capability):
    """For each row the first family whose code runs on the card, or a reason."""
    architectures = {k["family"]: k["architectures"] for k in tcgemm.kernels()}
    natural = {"float16": "fp16", "bfloat16": "bf16", "int8": "int8", "float64": "fp64"}
    natural |= {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}
    sums = {"float64": "fp64", "int8": "int32"}
    modes = {
        (
            m.operand,
            m.precision or natural.get(m.operand, "fp32"),
            m.accumulate or sums.get(m.compute, "promoted" if m.is_fp8 else "fp32"),
            m.default_output,
        ): m.name
        for m in MODES.values()
    }
    rows = tcgemm.supports(capability)
    found = {
        (row["operands"], row["precision"], row["accumulate"], row["out"]): row for row in rows
    }
    assert set(found) >= set(modes) - {("float64", "fp32", "fp32", "float64")}
    scaling = {
        ("int8", "int8", "int32", "float32"): INT8_SCALING_FAMILIES,
        ("float8_e4m3fn", "fp8", "promoted", "float8_e4m3fn"): SCALING_FAMILIES,
    }
    assert set(found) >= set(scaling)
    for key, row in found.items():
        expected = [
            family
            for family in FAMILY_MODES
            if family in architectures
            and family != "host"
            and (family in scaling[key] if key in scaling else takes(family, MODES[modes[key]]))
            and families.runs_on(architectures[family], capability)
            and capability >= LEAST_CAPABILITY.get((family, modes.get(key, key[1])), (0, 0))
            and (
                modes.get(key) not in HALVES_MODES.get(family, ())
                or capability in HALVES_PAY[family]
            )
        ]
        assert row["family"] == (expected[0] if expected else ""), row
        assert bool(row["reason"]) == (not expected), row
