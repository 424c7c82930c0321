"""The DLPack consumer against producers made by hand: every variant, and each deleter once."""

import gc
import itertools
import weakref

import ml_dtypes
import numpy as np
import producers
import pytest
import tcgemm
from producers import LegacyProducer, OldProducer, Producer

PRODUCERS = (Producer, LegacyProducer, OldProducer)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture
def a():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def b():
    return np.arange(20, dtype=np.float32).reshape(4, 5) - 7


@pytest.mark.parametrize("producer", PRODUCERS)
def test_p03_capsules_of_every_kind(producer, a, b):
    left, right, out = producer(a), producer(b), np.empty((3, 5), np.float32)
    result = tcgemm.matmul(left, right)
    assert isinstance(result, np.ndarray)  # of an unknown framework on the CPU
    np.testing.assert_array_equal(result, a @ b)
    target = producer(out)
    assert tcgemm.matmul(left, right, out=target) is target
    np.testing.assert_array_equal(out, a @ b)
    assert left.streams == [None, None]  # what the CPU takes


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bfloat16"])
def test_p03_dtypes(dtype, a):
    values = a.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    codes = {"dtype": (4, 16, 1)} if dtype == "bfloat16" else {}
    raw = values.view(np.uint16) if dtype == "bfloat16" else values
    result = tcgemm.matmul(Producer(raw, **codes), Producer(raw.T, **codes))
    assert result.dtype == ("int32" if dtype == "int8" else values.dtype)
    np.testing.assert_array_equal(result.astype(np.float64), a @ a.T.astype(np.float64))


def test_byte_offset_is_added(a, b):
    result = tcgemm.matmul(Producer(a, byte_offset=256), Producer(b, byte_offset=64))
    np.testing.assert_array_equal(result, a @ b)


def test_null_strides_are_c_contiguous(a, b):
    for producer in (Producer, LegacyProducer):
        result = tcgemm.matmul(producer(a, null_strides=True), producer(b, null_strides=True))
        np.testing.assert_array_equal(result, a @ b)


def test_b05_size1_strange_strides():
    a, b = np.full((1, 4), 2, np.float32), np.full((4, 1), 3, np.float32)
    for strange in (0, -1, 2**62):
        result = tcgemm.matmul(Producer(a, strides=[strange, 1]), Producer(b, strides=[1, strange]))
        np.testing.assert_array_equal(result, [[24]])
        out = np.zeros((1, 1, 1), np.float32)
        batched = Producer(a[None], strides=[strange, strange, 1])
        tcgemm.matmul(batched, b, out=Producer(out, strides=[strange] * 3))
        assert out.item() == 24


@pytest.mark.parametrize("null_strides", [False, True])
def test_p12_a_null_shape_is_refused(null_strides, a, b):
    class Shapeless(Producer):
        def export(self):
            address = super().export()
            producers.Versioned.from_address(address).tensor.shape = None
            return address

    shapeless = Shapeless(b, null_strides=null_strides)
    with pytest.raises(tcgemm.ShapeError, match=r"^b was exported with 2 dimensions, but without"):
        tcgemm.matmul(a, shapeless)
    assert shapeless.deletions == shapeless.exports == 1
    with pytest.raises(tcgemm.ShapeError, match="b is 0-dimensional"):  # where no shape is needed
        tcgemm.matmul(a, Shapeless(np.array(2, np.float32)))


def test_alignment_counts_after_the_offset(b):
    """An address that is no multiple of the element's size is refused; any multiple works."""
    room = np.zeros(64, np.uint8)
    for offset in (1, 2, 3):
        odd = Producer(np.ndarray((1, 4), np.float32, room, offset))
        with pytest.raises(tcgemm.LayoutError, match=r"a is float32 at an address.*multiple of 4"):
            tcgemm.matmul(odd, b)
    for offset in (4, 8, 12):
        view = np.ndarray((1, 4), np.float32, room, offset)
        view[...] = 1
        np.testing.assert_array_equal(tcgemm.matmul(Producer(view), b), b.sum(0, keepdims=True))


def test_p03_out_must_be_writable_memory_of_its_own(a, b):
    out = np.zeros((3, 5), np.float32)
    with pytest.raises(tcgemm.LayoutError, match="out is read-only"):
        tcgemm.matmul(a, b, out=Producer(out, flags=producers.READ_ONLY))
    with pytest.raises(tcgemm.LayoutError, match="out was exported as a copy"):
        tcgemm.matmul(a, b, out=Producer(out, flags=producers.IS_COPIED))
    assert not out.any()
    for flags in (producers.READ_ONLY, producers.IS_COPIED):  # both are fine to read
        np.testing.assert_array_equal(tcgemm.matmul(Producer(a, flags=flags), b), a @ b)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"dtype": (2, 32, 2)}, tcgemm.DTypeError, "lanes"),
        ({"dtype": (17, 4, 1)}, tcgemm.DTypeError, "4 bits .packed.*cast"),
        ({"dtype": (17, 4, 1), "flags": producers.SUBBYTE_PADDED}, tcgemm.DTypeError, "padded"),
        ({"dtype": (5, 64, 1)}, tcgemm.DTypeError, "complex64.*a.real"),
        ({"dtype": (6, 8, 1)}, tcgemm.DTypeError, r"bool.*a.astype\(numpy.float32\)"),
        ({"dtype": (1, 8, 1)}, tcgemm.DTypeError, r"uint8.*a_dtype=.*a.astype\(numpy.float32\)"),
        ({"dtype": (0, 64, 1)}, tcgemm.DTypeError, "int64"),
        ({"dtype": (8, 8, 1)}, tcgemm.DTypeError, "float8_e4m3;"),  # with Inf
        ({"dtype": (99, 8, 1)}, tcgemm.DTypeError, "code 99"),
        ({"version": (2, 0)}, tcgemm.UnsupportedError, "DLPack 2.0"),
        ({"device": (producers.ROCM, 0)}, tcgemm.DeviceError, "type 10"),
        ({"device": (producers.CUDA, -1)}, tcgemm.DeviceError, "CUDA device -1; .* from 0"),
        ({"shape": (3, -4)}, tcgemm.ShapeError, r"shape \(3, -4\); sizes are 0 or more"),
        ({"ndim": -1}, tcgemm.ShapeError, "-1 dimensions"),
    ],
)
def test_p12_what_is_refused(changes, error, words, a, b):
    out = np.full((3, 5), 7, np.float32)
    with pytest.raises(error, match=f"a .*{words}"):
        tcgemm.matmul(Producer(a, **changes), b, out=out)
    assert (out == 7).all()
    with pytest.raises(error, match=r"^b "):
        tcgemm.matmul(a.T, Producer(a, **changes), out=np.empty((4, 4), np.float32))


def test_p12_what_an_operand_of_less_than_8_bits_may_become():
    int8 = np.ones((4, 4), np.int8)
    for operand, advice in (
        ("scale_a", "scales are float32: cast it to float32"),
        ("c", "pass c converted to the result's dtype"),
        ("out", "pass an out of the result's dtype"),
    ):
        few_bits = Producer(np.full((4, 4), 7, np.float32), dtype=(17, 4, 1))
        with pytest.raises(tcgemm.DTypeError, match=rf"^{operand} .*4 bits .*\); {advice}$"):
            tcgemm.gemm(int8, int8, **{operand: few_bits})
        assert (few_bits.values == 7).all()


@pytest.mark.parametrize("answer", [(), (1,), ("cpu", 0), (1, 0, 0), (2**70, 0), (1.5, 0), None, 1])
def test_a_malformed_dlpack_device_is_named(answer, a, b):
    producer = Producer(a)
    producer.__class__ = type("Odd", (Producer,), {"__dlpack_device__": lambda _: answer})
    with pytest.raises(
        tcgemm.DTypeError, match=r"^a .*Odd\): __dlpack_device__ returned .*pair of"
    ):
        tcgemm.matmul(producer, b)
    assert producer.exports == 0


def test_classes_of_no_module_are_taken(a, b):
    odd = type("Odd", (Producer,), {"__module__": None})
    np.testing.assert_array_equal(tcgemm.matmul(odd(a), b), tcgemm.matmul(a, b))
    with pytest.raises(tcgemm.DTypeError, match=r"^a is a None\.Empty"):
        tcgemm.matmul(type("Empty", (), {"__module__": None})(), b)


def test_a_class_is_not_kept_alive(a, b):
    def one_of_its_own():
        its = type("Own", (Producer,), {})
        tcgemm.matmul(its(a), b)
        return weakref.ref(its)

    classes = [one_of_its_own() for _ in range(20)]
    gc.collect()
    assert not any(each() for each in classes)


def test_pinned_host_memory_counts_as_the_cpu(a, b):
    pinned = Producer(a, device=(producers.CUDA_HOST, 0))
    np.testing.assert_array_equal(tcgemm.matmul(pinned, b), a @ b)
    assert pinned.streams == [None]


def saying(device, producer=Producer):
    """A producer whose `__dlpack_device__` says `device`, wherever its DLTensor is."""
    return type("Saying", (producer,), {"__dlpack_device__": lambda _: device})


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize(
    ("device", "words"),
    [
        ((producers.CUDA, 0), "is on cpu by its __dlpack_device__, but on cuda:0 by what"),
        ((producers.ROCM, 0), "is on a device of DLPack type 10"),
    ],
)
def test_p12_the_device_of_a_capsule_is_not_another(producer, device, words, a, b):
    """Memory of a GPU must not be read as the host's."""
    elsewhere = saying((producers.CPU, 0), producer)(b, device=device)
    with pytest.raises(tcgemm.DeviceError, match=f"^b .*{words}"):
        tcgemm.matmul(a, elsewhere)
    assert elsewhere.deletions == elsewhere.exports == 1


@pytest.mark.parametrize("producer", PRODUCERS)
def test_kinds_of_host_memory_are_one_device(producer, a, b):
    kinds = (producers.CPU, 0), (producers.CUDA_HOST, 0), (producers.CPU, 1)
    for said, device in itertools.product(kinds, kinds):
        host = saying(said, producer)(b, device=device)
        np.testing.assert_array_equal(tcgemm.matmul(a, host), a @ b)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_p04_dlpack_deleter_once(producer, a, b):
    left, right = producer(a), producer(b)
    out = producer(np.empty((3, 5), np.float32))
    # Success; an error in the consumer after, and while, it takes the capsules over.
    tcgemm.matmul(left, right, out=out)
    with pytest.raises(tcgemm.ShapeError):
        tcgemm.matmul(left, left, out=out)
    wrong = producer(a, dtype=(2, 32, 3))
    with pytest.raises(tcgemm.DTypeError):
        tcgemm.matmul(left, wrong)
    # A capsule that nobody takes.
    left.capsule()
    gc.collect()
    for each in (left, right, out, wrong):
        assert each.exports > 0
        assert each.deletions == each.exports
    assert left.exports == 5


def test_p04_deleter_once_where_the_other_version_is_refused(a, b):
    left = Producer(a, version=(3, 1))
    with pytest.raises(tcgemm.UnsupportedError):
        tcgemm.matmul(left, b)
    assert (left.exports, left.deletions) == (1, 1)


def test_p04_a_plan_keeps_arrays_but_no_capsules(a, b):
    left = Producer(a)
    plan = tcgemm.plan(left, b)
    assert left.deletions == left.exports
    plan.execute()
    plan.execute()
    assert left.exports == 3
    assert left.deletions == 3


def test_p04_deleter_once_where_the_producer_raises(a, b):
    class Broken(Producer):
        def __dlpack__(self, **_):
            raise BufferError("this array is elsewhere")

    left = Producer(a)
    with pytest.raises(
        tcgemm.DTypeError, match=r"b .*Broken.* can't be exported.*this array is elsewhere"
    ):
        tcgemm.matmul(left, Broken(b))
    gc.collect()
    assert left.deletions == left.exports


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("method", ["__dlpack__", "__dlpack_device__"])
def test_what_does_not_speak_of_the_array_stays_what_it_is(error, method, a, b):
    def raises(*_, **__):
        raise error

    interrupted = type("Interrupted", (Producer,), {method: raises})
    with pytest.raises(error) as raised:
        tcgemm.matmul(interrupted(a), b)
    assert raised.type is error


def test_only_a_refused_argument_is_asked_without_it(a, b):
    class Counting(Producer):
        calls = 0

        def __dlpack__(self, **_):
            type(self).calls += 1
            return self.export_or_raise()

    class Plain(Counting):
        def export_or_raise(self):
            raise TypeError("no such thing")

    class Recursive(Counting):
        def export_or_raise(self):
            if self.calls > 6:
                raise BufferError("this array is elsewhere")
            return tcgemm.matmul(self, b)

    for kind, calls in ((Plain, 1), (Recursive, 7)):
        with pytest.raises(tcgemm.DTypeError, match=r"^a .*(no such thing|is elsewhere)$"):
            tcgemm.matmul(kind(a), b)
        assert kind.calls == calls


def test_one_object_of_a_class_may_take_what_another_refuses(a, b):
    """A proxy in front of an old library's array, then in front of a read-only one of NumPy."""

    class Proxy:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    frozen = a.copy()
    frozen.flags.writeable = False
    for array in (frozen, OldProducer(a), frozen, OldProducer(a)):
        np.testing.assert_array_equal(tcgemm.matmul(Proxy(array), b), a @ b)


def test_an_array_may_change_its_class_when_it_is_asked(a, b):
    """As lazy ones do: the class that it had may end then."""

    class Ready(Producer):
        pass

    def lazy():
        class Lazy(Producer):
            def __dlpack_device__(self):
                self.__class__ = Ready
                gc.collect()
                return Producer.__dlpack_device__(self)

        return Lazy(a)

    for _ in range(20):
        np.testing.assert_array_equal(tcgemm.matmul(lazy(), b), a @ b)


def test_what_is_no_capsule_is_refused(a, b):
    class Strange(Producer):
        answer = None

        def __dlpack__(self, **_):
            return self.answer

    strange = Strange(a)
    with pytest.raises(tcgemm.DTypeError, match="no DLPack capsule"):
        tcgemm.matmul(strange, b)
    used = Producer(a)
    strange.answer = used.capsule()
    np.testing.assert_array_equal(tcgemm.matmul(strange, b), a @ b)
    with pytest.raises(tcgemm.DTypeError, match="used before"):
        tcgemm.matmul(strange, b)
    del strange
    assert used.deletions == used.exports == 1


@pytest.mark.parametrize("attribute", ["__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"])
def test_exchange_api(attribute, a, b):
    array_type = producers.exchange_type(producers.exchange_table(), attribute)
    left, right = array_type(a), array_type(b)
    result = tcgemm.matmul(left, right)
    assert isinstance(result, producers.ExchangeArray)  # made by the type's own allocator
    np.testing.assert_array_equal(result.values, a @ b)
    out = array_type(np.empty((3, 5), np.float32))
    assert tcgemm.matmul(left, right, out=out) is out
    np.testing.assert_array_equal(out.values, a @ b)
    with pytest.raises(tcgemm.ShapeError):
        tcgemm.matmul(left, left)
    for each in (left, right, out, result):
        assert each.deletions == each.exports


def test_exchange_api_of_another_version(a, b):
    """A table of a later major version leads to an earlier one, or else is left alone."""
    newer = producers.exchange_table(major=2)
    with pytest.raises(tcgemm.DTypeError, match="exchange API was not used"):
        tcgemm.matmul(producers.exchange_type(newer)(a), b)
    import ctypes

    newer = producers.exchange_table(major=2, previous=ctypes.pointer(producers.exchange_table()))
    result = tcgemm.matmul(producers.exchange_type(newer)(a), b)
    np.testing.assert_array_equal(result.values, a @ b)


def test_exchange_api_flags_are_heeded(a, b):
    array_type = producers.exchange_type(producers.exchange_table())
    out = array_type(np.zeros((3, 5), np.float32), flags=producers.READ_ONLY)
    with pytest.raises(tcgemm.LayoutError, match="read-only"):
        tcgemm.matmul(a, b, out=out)
    assert out.deletions == out.exports


def test_exchange_api_is_asked_once(a, b):
    array_type = producers.exchange_type(producers.exchange_table())
    left, right, out = array_type(a), array_type(b), array_type(np.empty((3, 5), np.float32))
    tcgemm.matmul(left, right, out=out)
    plan = tcgemm.plan(left, right, out=out)
    plan.execute()
    plan.execute(a=left)
    for each in (left, right, out):
        assert each.exports == each.deletions == 4


def test_exchange_api_that_fails(a, b):
    """What an exporter raises is the reason in our error, and what was exported is let go."""
    made = producers.exchange_type(producers.exchange_table())

    class Elsewhere(producers.ExchangeArray):
        __dlpack_c_exchange_api__ = producers.failing_exchange_api(producers.exchange_table())

        def __bool__(self):  # what the table's exporter asks
            raise BufferError("this array is elsewhere")

    class Interrupted(Elsewhere):
        def __bool__(self):
            raise KeyboardInterrupt

    left, out = made(a), np.full((3, 5), 7, np.float32)
    with pytest.raises(tcgemm.DTypeError, match=r"^b .*Elsewhere.*this array is elsewhere$"):
        tcgemm.matmul(left, Elsewhere(b), out=out)
    with pytest.raises(tcgemm.DTypeError, match=r"^out .*this array is elsewhere"):
        tcgemm.plan(left, made(b)).execute(out=Elsewhere(out))
    with pytest.raises(KeyboardInterrupt):
        tcgemm.matmul(left, Interrupted(b), out=out)
    assert left.deletions == left.exports == 4
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"version": (2, 0)}, tcgemm.UnsupportedError, "came as DLPack 2.0"),
        ({"device": (producers.ROCM, 0)}, tcgemm.DeviceError, "type 10"),
        ({"device": (producers.CUDA, -1)}, tcgemm.DeviceError, "CUDA device -1; .* from 0"),
        ({"device": (producers.CUDA, 0)}, tcgemm.DeviceError, "on cuda:0, but a is on cpu"),
        ({"dtype": (5, 64, 1)}, tcgemm.DTypeError, "complex64"),
        ({"ndim": -1}, tcgemm.ShapeError, "-1 dimensions"),
    ],
)
def test_exchange_api_tensors_that_are_refused(changes, error, words, a, b):
    array_type = producers.exchange_type(producers.exchange_table())
    left, right = array_type(a), array_type(b, **changes)
    out = np.full((3, 5), 7, np.float32)
    with pytest.raises(error, match=f"^b .*{words}"):
        tcgemm.matmul(left, right, out=out)
    for each in (left, right):
        assert each.deletions == each.exports == 1
    assert (out == 7).all()
