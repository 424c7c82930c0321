"""Plans: bound to arrays, executed with the same or with others, and explained."""

import copy
import gc
import inspect
import re
import weakref

import numpy as np
import pytest
import tcgemm
from frameworks import each_place, integers


@each_place()
def test_execute_as_bound(place):
    a, b = integers((3, 4)), integers((4, 5), 1)
    plan = tcgemm.plan(place.array(a), place.array(b))
    first = plan.execute()
    assert place.owns(first)
    np.testing.assert_array_equal(place.to_numpy(first), a @ b)
    second = plan.execute(alpha=2.0)  # a new array: the first stays what it was
    np.testing.assert_array_equal(place.to_numpy(second), 2 * (a @ b))
    np.testing.assert_array_equal(place.to_numpy(first), a @ b)


@each_place(lambda framework, device: framework != "jax")
def test_execute_with_other_arrays(place):
    shapes = {"a": (2, 3, 4), "b": (4, 5), "c": (3, 5), "out": (2, 3, 5)}
    bound = {name: place.array(integers(shape)) for name, shape in shapes.items()}
    plan = tcgemm.plan(**bound, beta=1.0)
    assert plan.execute() is bound["out"]
    others = {name: integers(shape, 7) for name, shape in shapes.items()}
    given = {name: place.array(values) for name, values in others.items()}
    assert plan.execute(**given, alpha=2.0, beta=-1.0) is given["out"]
    expected = 2 * (others["a"] @ others["b"]) - others["c"]
    np.testing.assert_array_equal(place.to_numpy(given["out"]), expected)
    plan.execute(b=given["b"])  # the rest as bound
    expected = integers((2, 3, 4)) @ others["b"] + integers((3, 5))
    np.testing.assert_array_equal(place.to_numpy(bound["out"]), expected)


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("a", np.ones((4, 4), np.float32), r"a is float32 of shape \(4, 4\).*made for.*\(3, 4\)"),
        ("a", np.ones((3, 4), np.float16), "a is float16.*made for float32"),
        (
            "b",
            np.ones((5, 4), np.float32).T,
            r"b is .*strides \(1, 4\).*made for.*strides \(5, 1\)",
        ),
        ("out", np.ones((3, 5), np.float64), "out is float64"),
    ],
)
def test_execute_refuses_arrays_that_differ(name, other, words):
    out = np.zeros((3, 5), np.float32)
    plan = tcgemm.plan(np.ones((3, 4), np.float32), np.ones((4, 5), np.float32), out=out)
    with pytest.raises(tcgemm.LayoutError, match=words):
        plan.execute(**{name: other})
    assert not out.any()


def test_execute_refuses_what_the_plan_was_not_made_for(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(4, dtype=np.float32)
    plan = tcgemm.plan(a, a)
    with pytest.raises(
        tcgemm.InvalidArgument, match=r"beta is 1\.0, but the plan was made without"
    ):
        plan.execute(beta=1.0)
    with pytest.raises(tcgemm.InvalidArgument, match="c is given, but the plan was made without"):
        plan.execute(c=a)
    with pytest.raises(tcgemm.LayoutError, match="out may share memory with a"):
        plan.execute(out=a)
    memory = np.zeros(17, np.float32)
    offset = memory[1:].reshape(4, 4) if memory.ctypes.data % 8 == 0 else memory[:16].reshape(4, 4)
    with pytest.raises(tcgemm.LayoutError, match="aligned to 4 bytes"):
        plan.execute(out=offset)
    np.testing.assert_array_equal(plan.execute(), a)


def test_bound_arrays_that_changed_since(monkeypatch):
    """Other memory of the same layout is computed with; anything else is refused."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a, b, out = torch.eye(4), torch.full((4, 4), 2.0), torch.zeros(4, 4)
    plan = tcgemm.plan(a, b, out=out)
    b.data = torch.full((4, 4), 3.0)
    assert (plan.execute() == 3).all()
    out.fill_(7)
    b.data = out
    with pytest.raises(tcgemm.LayoutError, match="out may share memory with b"):
        plan.execute()
    b.data = torch.ones(4, 4).T
    with pytest.raises(tcgemm.LayoutError, match=r"b is .*strides \(1, 4\).*made for.*\(4, 1\)"):
        plan.execute()
    b.data = torch.ones(2, 2)
    with pytest.raises(tcgemm.LayoutError, match=r"b is .*shape \(2, 2\).*made for.*\(4, 4\)"):
        plan.execute()
    b.data = torch.ones(4, 4)
    b.requires_grad_()
    with pytest.raises(tcgemm.DTypeError, match="b requires a gradient"):
        plan.execute()
    assert (out == 7).all()

    complex_b = torch.ones(4, 4, dtype=torch.complex64)
    imaginary = complex_b.imag
    plan = tcgemm.plan(a, imaginary, out=out)
    imaginary.data = complex_b.conj().imag  # the same memory, negated
    with pytest.raises(tcgemm.DTypeError, match="b has its negative bit set"):
        plan.execute()


def test_execute_stays_on_the_device_of_the_plan(monkeypatch):
    a = np.eye(3, dtype=np.float32)
    plans = {device: tcgemm.plan(a, a) for device in devices_for_host_arrays(monkeypatch)}
    for other in [*plans, "nonsense"]:
        monkeypatch.setenv("TCGEMM_DEVICE", other)
        for device, plan in plans.items():
            assert plan.device == device
            np.testing.assert_array_equal(plan.execute(), a)


def devices_for_host_arrays(monkeypatch):
    for device in ["cpu", *(f"cuda:{row['ordinal']}" for row in tcgemm.devices())]:
        monkeypatch.setenv("TCGEMM_DEVICE", device)
        yield device


def test_python_makes_no_plan():
    plan = tcgemm.plan(np.eye(2), np.eye(2))
    for make in (tcgemm.Plan, lambda: tcgemm.Plan.__new__(tcgemm.Plan), lambda: copy.copy(plan)):
        with pytest.raises(TypeError, match=r"made by tcgemm\.plan|cannot pickle"):
            make()


def test_c_may_be_left_unread():
    """beta = 0 in plan or execute: C is checked, but not read."""
    a = np.eye(4, dtype=np.float32)
    nan = np.full((4, 4), np.nan, np.float32)
    plan = tcgemm.plan(a, a, nan, beta=0.0)
    np.testing.assert_array_equal(plan.execute(), a)
    assert np.isnan(plan.execute(beta=1.0)).all()
    np.testing.assert_array_equal(tcgemm.gemm(nan, nan, a, alpha=0.0, beta=2.0), 2 * a)
    np.testing.assert_array_equal(tcgemm.plan(nan, nan, a, alpha=0.0, beta=2.0).execute(), 2 * a)


def test_a_plan_tells_what_it_does(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(4, dtype=np.float32)
    plan = tcgemm.plan(a, a, precision="fp16", out_dtype="float64")
    assert (plan.family, plan.precision, plan.accumulate) == ("host", "fp16", "fp32")
    assert (plan.out_dtype, plan.device) == ("float64", "cpu")
    assert plan.kernel.startswith("host_")
    assert plan.split_k == 1
    assert plan.workspace_bytes >= 0
    assert plan.kernel in str(plan)
    assert plan.kernel in repr(plan)
    assert tcgemm.plan(a, a).precision == "fp32"
    asked = tcgemm.plan(a, a, accumulate="promoted", determinism="batch_invariant")
    assert asked.accumulate == "promoted"
    assert "batch_invariant" in str(asked)
    assert "batch_invariant" not in str(plan)
    described = inspect.signature(tcgemm.Plan.execute).parameters.keys() - {"self"}
    documented = tcgemm.Plan.execute.__doc__.partition("Raises")[0]
    assert described == {*"abc", "out", "scale_a", "scale_b", "scale_d", "alpha", "beta", "stream"}
    for name in described:
        assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", documented, re.MULTILINE), name


def test_a_plan_is_made_by_plan():
    for arguments in ((), (np.eye(4),) * 2):
        with pytest.raises(TypeError, match=r"made by tcgemm\.plan\(\)"):
            tcgemm.Plan(*arguments)
    with pytest.raises(TypeError, match=r"made by tcgemm\.plan\(\)"):
        tcgemm.Plan(a=np.eye(4))


def test_explain_lists_every_kernel(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    a = np.eye(4, dtype=np.float32)
    rows = tcgemm.explain(a, a)
    assert [row["name"] for row in rows] == [row["name"] for row in tcgemm.kernels()]
    accepting = [row["name"] for row in rows if not row["reason"]]
    assert tcgemm.plan(a, a).kernel in accepting
    assert len(accepting) < len(rows)


@pytest.mark.gpu
@each_place(lambda framework, device: device == "cuda")
def test_p08_a_plan_keeps_its_workspace(place):
    """FP32 operands rounded to FP16 are packed: the plan has the memory for that from the start."""
    a = integers((256, 256))
    plan = tcgemm.plan(place.array(a), place.array(a), precision="fp16")
    for scale in (1, 2, 3):
        result = plan.execute(a=place.array(scale * a))
        np.testing.assert_array_equal(place.to_numpy(result), scale * (a @ a))


def test_a_plan_in_a_cycle_is_collected():
    class Array(np.ndarray):
        """An array that takes attributes."""

    a = np.ones((4, 4), np.float32).view(Array)
    a.plan = tcgemm.plan(a, a)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("rows", [2, 0])
def test_factors_that_no_execute_takes_are_refused_at_once(rows):
    a, b = np.ones((rows, 3), np.int8), np.ones((3, 4), np.int8)
    c = np.ones((rows, 4), np.int32)
    for factors in ({"alpha": 0.5}, {"alpha": 1, "beta": 0.25}):
        with pytest.raises(tcgemm.InvalidArgument, match=r"whole numbers.*out_dtype"):
            tcgemm.plan(a, b, c, **factors)
        with pytest.raises(tcgemm.InvalidArgument, match=r"whole numbers.*out_dtype"):
            tcgemm.gemm(a, b, c, **factors)
