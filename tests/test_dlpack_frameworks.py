"""Real frameworks: every pair of them, what each can hold that the library refuses, and parity."""

import gc
import warnings
import weakref
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest
import tcgemm
from frameworks import PLACES, Place, each_place, integers


def pairs():
    for first in PLACES:
        for second in PLACES:
            if first[1] == second[1]:
                marks = [pytest.mark.gpu] if first[1] == "cuda" else []
                name = f"{first[0]}-{second[0]}-{first[1]}"
                yield pytest.param(first, second, id=name, marks=marks)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("first", "second"), [*pairs()])
def test_p03_dlpack_matrix(first, second, dtype):
    """Operands of two frameworks on one device: the result is one of the first's."""
    first, second = Place(*first), Place(*second)
    a, b, c = integers((3, 4)), integers((4, 5), 1), integers((5,), 2)
    x, y, z = first.array(a, dtype), second.array(b, dtype), second.array(c, dtype)
    result = tcgemm.gemm(x, y, z, beta=1.0)
    assert first.owns(result)
    assert first.dtype_name(result) == dtype
    np.testing.assert_array_equal(first.to_numpy(result), a @ b + c)
    if second.framework != "jax":
        out = second.empty((3, 5), dtype)
        assert tcgemm.matmul(x, y, out=out) is out
        np.testing.assert_array_equal(second.to_numpy(out), a @ b)


class OnlyDlpack:
    """Another framework's array, with nothing but the protocol."""

    def __init__(self, array):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Versioned(OnlyDlpack):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self._array.__dlpack__(stream=stream, max_version=max_version)


class Legacy(OnlyDlpack):
    def __dlpack__(self, *, stream=None):
        return self._array.__dlpack__(stream=stream)


@each_place()
@pytest.mark.parametrize("wrapper", [Versioned, Legacy])
def test_p03_capsules_of_the_frameworks(place, wrapper):
    a, b = place.array(integers((3, 4))), place.array(integers((4, 5), 1))
    expected = integers((3, 4)) @ integers((4, 5), 1)
    result = tcgemm.matmul(a, wrapper(b))
    np.testing.assert_array_equal(place.to_numpy(result), expected)
    if place.framework != "jax":
        out = place.empty((3, 5))
        target = wrapper(out)
        assert tcgemm.matmul(wrapper(a), wrapper(b), out=target) is target
        place.synchronize()
        np.testing.assert_array_equal(place.to_numpy(out), expected)


class OnlyInterface:
    """A GPU array with nothing but the CUDA Array Interface, version 3."""

    def __init__(self, array, **changes):
        self._array, self._changes = array, changes

    @property
    def __cuda_array_interface__(self):
        return {**self._array.__cuda_array_interface__, "version": 3, **self._changes}


def test_cuda_array_interface_without_a_gpu():
    class Elsewhere:
        __cuda_array_interface__: ClassVar = {
            "shape": (3, 3),
            "typestr": "<f4",
            "data": (256, False),
        }

    words = r"^b (is on cuda:0, but a is|.*0x100 is not in the memory of a CUDA)"
    with pytest.raises(tcgemm.DeviceError, match=words):
        tcgemm.matmul(np.eye(3, dtype=np.float32), Elsewhere())


@pytest.mark.gpu
@each_place(lambda framework, device: device == "cuda" and framework in ("torch", "cupy"))
def test_p03_cuda_array_interface(place):
    a, b = integers((3, 4)), integers((4, 5), 1)
    x, y = place.array(a), place.array(b)
    result = tcgemm.matmul(x, OnlyInterface(y))
    np.testing.assert_array_equal(place.to_numpy(result), a @ b)
    transposed = place.array(b.T).T  # strides in the interface
    out = place.empty((3, 5))
    assert tcgemm.matmul(OnlyInterface(x), OnlyInterface(transposed), out=out) is out
    place.synchronize()
    np.testing.assert_array_equal(place.to_numpy(out), a @ b)
    with pytest.raises(tcgemm.InvalidArgument, match=r"does not know how to make another.*out="):
        tcgemm.matmul(OnlyInterface(x), y)
    address = x.__cuda_array_interface__["data"][0]
    with pytest.raises(tcgemm.LayoutError, match="out is read-only"):
        tcgemm.matmul(y.T, y, out=OnlyInterface(place.empty((5, 5)), data=(address, True)))
    with pytest.raises(tcgemm.DTypeError, match="a has a mask"):
        tcgemm.matmul(OnlyInterface(x, mask=y), y, out=out)


def test_p03_read_only_numpy_through_dlpack():
    a = np.eye(3, dtype=np.float32)
    a.flags.writeable = False
    np.testing.assert_array_equal(tcgemm.matmul(Versioned(a), a), a)
    with pytest.raises(tcgemm.LayoutError, match="out is read-only"):
        tcgemm.matmul(np.ones((3, 3), np.float32), a, out=Versioned(a))


@each_place(lambda framework, device: framework == "torch")
def test_p12_torch(place):
    torch = place.module
    a = place.array(integers((4, 4)))

    def refused(x, error, words, **changes):
        with pytest.raises(error, match=words):
            tcgemm.matmul(x, changes.get("b", a))
        with pytest.raises(error, match=words.replace("a", "b", 1)):
            tcgemm.matmul(a, x)

    refused(a.clone().requires_grad_(), TypeError, r"a requires a gradient.*\.detach\(\)")
    refused(torch.nn.Parameter(a.clone()), TypeError, r"a requires a gradient.*\.detach\(\)")
    complex_one = torch.ones(4, 4, dtype=torch.complex64, device=place.device)
    refused(complex_one, TypeError, r"a is complex64.*resolve_conj\(\)")
    refused(complex_one.conj(), TypeError, r"a is complex64.*resolve_conj\(\)")
    refused(complex_one.conj().imag, TypeError, r"a has its negative bit set.*resolve_neg\(\)")
    refused(a.to(torch.bool), TypeError, r"a is bool.*\.to\(torch\.float32\)")
    refused(a.to(torch.int64), TypeError, r"a is int64.*\.to\(torch\.float32\)")
    refused(a.to(torch.float8_e4m3fnuz), TypeError, r"a .*(float8_e4m3fnuz|can't be exported)")
    refused(a.to_sparse(), ValueError, r"a has the layout torch\.sparse_coo.*to_dense\(\)")
    refused(
        torch.empty(4, 4, device="meta"),
        TypeError,
        r"a is on the device meta.*; pass \w on another",
    )
    with warnings.catch_warnings(action="ignore"):  # that both may change or go
        quantized = torch.quantize_per_tensor(a, 0.1, 0, torch.qint8)
        layouts = (torch.strided, torch.jagged)
        nested = [torch.nested.nested_tensor([a, a[:3]], layout=layout) for layout in layouts]
    for each in nested:
        refused(each, TypeError, r"a is nested: .*; pass \w\.unbind\(\)\[0\]")
    refused(quantized, TypeError, r"a is quantized; pass \w\.dequantize\(\)$")
    for transform in (
        torch.func.vmap,
        torch.func.grad,
        lambda f: lambda x: torch.func.jvp(f, (x,), (x,)),
    ):
        words = r"^b has no memory .*torch\.func; call tcgemm outside"
        with (
            warnings.catch_warnings(action="ignore"),  # of what PyTorch itself does
            pytest.raises(tcgemm.DTypeError, match=words),
        ):
            transform(lambda x: tcgemm.matmul(a, x).sum())(a)
    with pytest.raises(tcgemm.DTypeError, match=r"out_dtype is tensor.*, which is no dtype"):
        tcgemm.matmul(a, a, out_dtype=torch.tensor(1.0))
    # Detached, the same values are fine.
    result = tcgemm.matmul(a.clone().requires_grad_().detach(), a)
    np.testing.assert_array_equal(place.to_numpy(result), integers((4, 4)) @ integers((4, 4)))


@each_place(lambda framework, device: framework == "torch")
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_torch_tensors_are_taken_where_gradients_are_disabled(place, mode):
    torch = place.module

    class Named(torch.Tensor):  # asked through __dlpack__, as all tensors before PyTorch 2.10
        pass

    x, values = place.array(integers((3, 4))), integers((4, 5), 1)
    weight = torch.nn.Parameter(place.array(values.T))
    leaf = place.array(values.T).requires_grad_()
    out = place.empty((3, 5)).requires_grad_()
    plan = tcgemm.plan(x, weight.detach().T)
    for each in (weight, leaf, leaf.as_subclass(Named)):
        with pytest.raises(tcgemm.DTypeError, match=r"b requires a gradient.*torch\.no_grad\(\)"):
            tcgemm.matmul(x, each.T)
        with getattr(torch, mode)():
            results = (
                tcgemm.matmul(x, each.T),
                tcgemm.matmul(each, x.T).T,
                plan.execute(b=each.T),
            )
            with pytest.raises(tcgemm.DTypeError, match=r"out requires a gradient.*out\.detach"):
                tcgemm.matmul(x, each.T, out=out)
            tcgemm.matmul(x, each.T, out=out.detach())
        for result in results:
            np.testing.assert_array_equal(place.to_numpy(result), integers((3, 4)) @ values)


@each_place(lambda framework, device: framework == "torch")
def test_torch_notices_that_out_is_written(place):
    """What autograd has saved of it is no longer what backward() would need."""
    torch = place.module
    a, saved = place.array(integers((3, 3))), place.array(integers((3, 3), 1))
    calls = (
        lambda: tcgemm.matmul(a, a, out=saved),
        lambda: tcgemm.gemm(a, a, saved, out=saved),
        lambda: tcgemm.plan(a, a, out=saved).execute(),
    )
    for call in calls:
        weight = place.array(integers((3, 3), 2)).requires_grad_()
        loss = (weight * saved).sum()
        call()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    with torch.inference_mode():  # whose tensors have no versions
        out = place.empty((3, 3))
        assert tcgemm.matmul(a, a, out=out) is out


@each_place(lambda framework, device: framework == "torch")
def test_torch_subclasses(place):
    torch = place.module

    class Named(torch.Tensor):
        pass

    a = place.array(integers((4, 4)))
    expected = integers((4, 4)) @ integers((4, 4))
    frozen = torch.nn.Parameter(a.clone(), requires_grad=False)
    for x in (frozen, a.as_subclass(Named)):
        np.testing.assert_array_equal(place.to_numpy(tcgemm.matmul(x, a)), expected)


@each_place(lambda framework, device: framework in ("jax", "cupy", "numpy"))
def test_p12_other_frameworks(place):
    a = place.array(integers((4, 4)))
    for dtype in ("complex64", "bool", "uint8", "int32", "int16"):
        with pytest.raises(TypeError, match=rf"(a|A) is {dtype}"):
            tcgemm.matmul(place.array(integers((4, 4)), dtype), a)
    module = {"jax": "jax.numpy"}.get(place.framework, place.framework)
    with pytest.raises(TypeError, match=rf"b\.astype\({module}\.float32\)"):
        tcgemm.matmul(a, place.array(integers((4, 4)), "uint8"))


@each_place(lambda framework, device: framework == "jax")
def test_jax_arrays_without_memory(place):
    jax, a = place.module, place.array(integers((4, 4)))
    deleted, donated = a + 1, a + 1
    deleted.delete()
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
    for gone in (deleted, donated):
        with pytest.raises(
            tcgemm.DTypeError, match=r"^b was deleted, or donated to .*; pass b as copied"
        ):
            tcgemm.matmul(a, gone)


@each_place(only=lambda framework, device: framework == "torch")
def test_p12_torch_has_fp8(place):
    """Whether or not its DLPack does."""
    torch = place.module
    a = place.array(integers((4, 6))).to(torch.float8_e4m3fn)
    b = place.array(integers((6, 5))).to(torch.float8_e5m2)
    want = place.to_numpy(a.float()) @ place.to_numpy(b.float())
    result = tcgemm.matmul(a, b)
    assert result.dtype == torch.float32
    np.testing.assert_array_equal(place.to_numpy(result), want)
    scales = torch.full((4, 1), 0.125, device=a.device)
    narrow = tcgemm.gemm(a, b, scale_a=scales, out_dtype=torch.float8_e5m2)
    assert narrow.dtype == torch.float8_e5m2
    rounded = torch.from_numpy(0.125 * want).to(torch.float8_e5m2)
    np.testing.assert_array_equal(place.to_numpy(narrow.float()), rounded.double().numpy())
    raw = [x.view(torch.uint8) for x in (a, b)]
    named = tcgemm.gemm(*raw, a_dtype=torch.float8_e4m3fn, b_dtype="float8_e5m2")
    np.testing.assert_array_equal(place.to_numpy(named), want)


def test_p12_numpy_of_ml_dtypes():
    a = integers((4, 4)).astype(ml_dtypes.bfloat16)
    result = tcgemm.matmul(a, a)
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(
        result.astype(np.float32), (a.astype(np.float32) @ a.astype(np.float32))
    )
    for name in ("float8_e4m3fn", "float8_e5m2"):
        narrow = a.astype(getattr(ml_dtypes, name))
        np.testing.assert_array_equal(tcgemm.matmul(narrow, narrow), result.astype(np.float32))
        with pytest.raises(tcgemm.DTypeError, match=f"A \\({name}\\) and B .bfloat16. mix FP8"):
            tcgemm.matmul(narrow, a)
    with pytest.raises(tcgemm.DTypeError, match="a is float8_e4m3fnuz; operands are"):
        tcgemm.matmul(a.astype(ml_dtypes.float8_e4m3fnuz), a)
    with pytest.raises(tcgemm.DTypeError, match="int4"):
        tcgemm.matmul(np.zeros((4, 4), ml_dtypes.int4), a)


@each_place()
def test_p04_operands_are_let_go(place):
    """The call keeps no reference: an operand dies with its last owner."""
    a = place.array(integers((4, 4)))
    result = tcgemm.matmul(a, a)
    values = place.to_numpy(result)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(values, integers((4, 4)) @ integers((4, 4)))


@each_place()
def test_results_outlive_their_operands(place):
    results = []
    for seed in range(20):
        a = place.array(integers((64, 64), seed))
        results.append(tcgemm.matmul(a, a))
        del a
    for seed, result in enumerate(results):
        values = integers((64, 64), seed)
        np.testing.assert_array_equal(place.to_numpy(result), values @ values)


PARITY_CALLS = {
    "matrices": lambda x: tcgemm.matmul(x((5, 6)), x((6, 7))),
    "vectors": lambda x: tcgemm.matmul(x((5,)), x((5,))),
    "batches": lambda x: tcgemm.matmul(x((2, 1, 5, 6)), x((3, 6, 7))),
    "empty": lambda x: tcgemm.matmul(x((5, 0)), x((0, 7))),
    "no rows": lambda x: tcgemm.matmul(x((0, 5)), x((5, 7))),
    "gemm": lambda x: tcgemm.gemm(
        x((6, 5)), x((7, 6)), x((7,)), alpha=2.0, beta=3.0, trans_a=True, trans_b=True
    ),
    "fp16": lambda x: tcgemm.matmul(x((5, 6)), x((6, 7)), precision="fp16"),
    "bf16 out": lambda x: tcgemm.matmul(x((5, 6)), x((6, 7)), out_dtype="bfloat16"),
    "float64": lambda x: tcgemm.matmul(x((5, 6), "float64"), x((6, 7), "float64")),
    "int8": lambda x: tcgemm.matmul(x((5, 6), "int8"), x((6, 7), "int8")),
    "float16": lambda x: tcgemm.matmul(x((5, 6), "float16"), x((6, 7), "float16")),
    "bfloat16": lambda x: tcgemm.matmul(x((5, 6), "bfloat16"), x((6, 7), "bfloat16")),
    "views": lambda x: tcgemm.matmul(x((10, 12))[::2, ::-2], x((7, 6)).T),
    "strided out": lambda x: tcgemm.matmul(x((5, 6)), x((6, 7)), out=x((10, 14))[::2, ::2]),
    "in place": lambda x: (lambda c: tcgemm.gemm(x((5, 6)), x((6, 7)), c, beta=2.0, out=c))(
        x((5, 7))
    ),
    "plan": lambda x: tcgemm.plan(x((5, 6)), x((6, 7))).execute(alpha=3.0),
    "bad shapes": lambda x: tcgemm.matmul(x((5, 6)), x((5, 6))),
    "bad dtype": lambda x: tcgemm.matmul(x((5, 6), "int16"), x((6, 7))),
    "bad out": lambda x: tcgemm.matmul(x((5, 6)), x((6, 7)), out=x((5, 7), "float64")),
    "no such precision": lambda x: tcgemm.matmul(x((5, 6)), x((6, 7)), precision="int8"),
    "overlap": lambda x: (lambda a: tcgemm.matmul(a, a, out=a))(x((6, 6))),
    "half a scalar": lambda x: tcgemm.gemm(x((5, 6), "int8"), x((6, 7), "int8"), alpha=0.5),
}


def outcome(call):
    try:
        result = call(
            lambda shape, dtype="float32": Place("numpy", "cpu").array(integers(shape), dtype)
        )
    except tcgemm.TcgemmError as error:
        return type(error), str(error)
    return result.shape, result.dtype, result.astype(np.float64).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("name", PARITY_CALLS)
def test_p11_cpu_gpu_parity(name, monkeypatch):
    """Shapes, dtypes, exact values and errors do not tell where host arrays were computed."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cuda:0")
    on_gpu = outcome(PARITY_CALLS[name])
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    assert outcome(PARITY_CALLS[name]) == on_gpu


@pytest.mark.parametrize("name", PARITY_CALLS)
def test_p11_calls_do_on_the_cpu_what_they_say(name, monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    result = outcome(PARITY_CALLS[name])
    is_error = isinstance(result[0], type)
    assert is_error == name.startswith(("bad", "no such", "overlap", "half")), result


@pytest.mark.gpu
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_cpu_arrays_of_every_framework_are_staged(framework, monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cuda:0")
    place = Place(framework, "cpu")
    a = place.array(integers((40, 40)))
    plan = tcgemm.plan(a, a)
    assert plan.device == "cuda:0"
    for result in (tcgemm.matmul(a, a), plan.execute()):
        assert place.owns(result)
        np.testing.assert_array_equal(
            place.to_numpy(result), integers((40, 40)) @ integers((40, 40))
        )


@pytest.mark.gpu
def test_tcgemm_device_chooses(monkeypatch):
    a = np.eye(4, dtype=np.float32)
    monkeypatch.delenv("TCGEMM_DEVICE", raising=False)
    assert tcgemm.plan(a, a).device == "cuda:0"
    for value, device in (("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0")):
        monkeypatch.setenv("TCGEMM_DEVICE", value)
        assert tcgemm.plan(a, a).device == device
    monkeypatch.setenv("TCGEMM_DEVICE", f"cuda:{len(tcgemm.devices())}")
    with pytest.raises(tcgemm.DeviceError, match="does not exist"):
        tcgemm.matmul(a, a)
