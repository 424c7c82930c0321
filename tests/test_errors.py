"""Errors in Python: the class, the words, nothing launched, the output untouched."""

import os
import re

import numpy as np
import pytest
import tcgemm
from producers import CUDA, Producer

A = np.ones((3, 4), np.float32)
B = np.ones((4, 5), np.float32)
INT = np.ones((3, 4), np.int8)
BYTES = np.zeros((4, 5), np.uint8)
E4M3_BYTES = {"a_dtype": "float8_e4m3fn", "b_dtype": "float8_e4m3fn"}


class Sparse:
    """As a matrix of SciPy, of which numpy.asarray makes an array of one object."""

    def toarray(self):
        raise AssertionError("the caller decides on so much memory")

    def __repr__(self):  # the name of a test, which all processes find alike
        return "Sparse()"


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("InvalidArgument", (ValueError,)),
        ("ShapeError", (ValueError, tcgemm.InvalidArgument)),
        ("LayoutError", (ValueError, tcgemm.InvalidArgument)),
        ("DTypeError", (TypeError,)),
        ("UnsupportedError", (NotImplementedError,)),
        ("NoKernelError", (RuntimeError,)),
        ("DeviceError", (RuntimeError,)),
        ("CudaError", (RuntimeError,)),
        ("OutOfMemoryError", (MemoryError,)),
    ],
)
def test_each_error_is_also_a_built_in(name, bases):
    error = getattr(tcgemm, name)
    assert issubclass(error, (tcgemm.TcgemmError, *bases)[0])
    for base in bases:
        assert issubclass(error, base)
    assert error.__module__ == "tcgemm"


BAD_CALLS = [
    # arguments of gemm, error, words that name the operand, its value and the fix
    (
        {"b": B.T},
        "ShapeError",
        r"a of shape \(3, 4\) has 4 columns, b of shape \(5, 4\) has 5 rows",
    ),
    ({"trans_a": True}, "ShapeError", r"a of shape \(3, 4\) \(transposed\) has 3 columns"),
    ({"a": np.float32([2])[0]}, "DTypeError", "a is a numpy.float32; pass an array"),
    ({"a": np.array(2, np.float32)}, "ShapeError", "a is 0-dimensional"),
    ({"a": [[1.0]]}, "DTypeError", r"a is a builtins.list.*numpy.asarray\(a\)"),
    ({"a": Sparse()}, "DTypeError", r"a is a \S*Sparse, a sparse matrix; pass a\.toarray\(\)$"),
    ({"b": None}, "DTypeError", "b is a builtins.NoneType"),
    ({"b": "text"}, "DTypeError", "b is a builtins.str"),
    ({"a": A[0], "trans_a": True}, "ShapeError", "trans_a is True, but a of shape"),
    ({"a": np.ones((2, 3, 4), "f4"), "b": np.ones((3, 4, 5), "f4")}, "ShapeError", "2 and 3 must"),
    ({"a": np.ones((1,) * 11, "f4")}, "ShapeError", "a has 11 dimensions; at most 10"),
    (
        {"a": A.astype(np.int64)},
        "DTypeError",
        r"a is int64.*a.astype\(numpy.float32\), or a.astype\(numpy.float64\) for .* 24 bits",
    ),
    ({"a": A.astype(np.longdouble)}, "DTypeError", r"a is \w*.*numpy.float32\), .*numpy.float64\)"),
    ({"a": A.astype(np.uint8)}, "DTypeError", r"a is uint8.*a.astype\(numpy.float32\)$"),
    ({"b": B > 0}, "DTypeError", r"b is bool.*numpy.float32\), or b.astype\(numpy.int8\) for"),
    ({"b": B + 1j}, "DTypeError", r"b is complex64.*b.real"),
    # of which no cast makes a matrix
    *(
        ({"a": np.zeros((3, 4), dtype)}, "DTypeError", r"a is .*; operands are .*: pass numbers$")
        for dtype in ("S4", "U4", "V4", "M8[D]", "m8[s]")
    ),
    (
        {"a": np.zeros((3, 4), "V4,f4")},
        "DTypeError",
        r"a is structured \(.*'f1'.* such as a\['f0'\]$",
    ),
    (
        {"c": np.zeros((3, 5), ">f4")},
        "DTypeError",
        r"c has swapped bytes .*c.astype\(c.dtype.newby",
    ),
    ({"a": INT}, "DTypeError", r"A \(int8\).*B \(float32\).*cast"),
    (
        {"a": A.astype(np.int32)},
        "DTypeError",
        r"^a is int32; operands are .*pass a.astype\(numpy.float32\), or a.astype\(numpy.float64\)",
    ),
    ({"c": np.ones((3, 4), "f4"), "beta": 1.0}, "ShapeError", r"c has shape \(3, 4\).*\(3, 5\)"),
    ({"c": np.ones((2, 3, 5), "f4")}, "ShapeError", r"c has shape \(2, 3, 5\)"),
    (
        {"c": np.ones((3, 5)), "beta": 1.0},
        "DTypeError",
        'c is float64.*out_dtype="float64" .with precision="fp64"',
    ),
    ({"beta": 2.0}, "InvalidArgument", r"beta is 2\.0, but there is no c"),
    ({"c": np.ones((3, 5), "u1")}, "DTypeError", 'c is uint8; pass out_dtype="float8_e4m3fn" or'),
    ({"c": np.ones((3, 5), np.int64)}, "DTypeError", "c is int64; results are .*c converted"),
    # "N" means "not transposed" in BLAS, and is true in Python
    ({"trans_a": "N"}, "InvalidArgument", "trans_a is 'N'; it must be True or False"),
    ({"trans_b": "T"}, "InvalidArgument", "trans_b is 'T'; it must be True or False"),
    ({"trans_b": np.array([True, True])}, "InvalidArgument", "trans_b is array.*True or False"),
    ({"trans_a": None}, "InvalidArgument", "trans_a is None; it must be True or False"),
    ({"alpha": 10**4000}, "InvalidArgument", "alpha is a number beyond the range of a float"),
    ({"beta": -(10**400)}, "InvalidArgument", "beta is a number beyond the range of a float"),
    ({"alpha": 1j}, "DTypeError", "alpha is 1j; it must be a real number"),
    ({"beta": "x"}, "DTypeError", "beta is 'x'"),
    ({"precision": "fp12"}, "InvalidArgument", "precision is 'fp12'.*fp16, bf16, tf32.*or None"),
    ({"precision": 16}, "InvalidArgument", "precision is 16"),
    (
        {"accumulate": "float32"},
        "InvalidArgument",
        "accumulate is 'float32'.*fp32.*None for the default",
    ),
    ({"determinism": "none"}, "InvalidArgument", "determinism is 'none'.*run_to_run"),
    ({"determinism": None}, "InvalidArgument", "determinism is None"),
    (
        {"accumulate": "fp16"},
        "InvalidArgument",
        "accumulate fp16 does not go with precision fp32; it takes fp32 or promoted$",
    ),
    ({"precision": "fp8_e4m3"}, "DTypeError", "takes operands of float8_e4m3fn, but operand A is"),
    ({"precision": "fp8_e5m2"}, "DTypeError", "takes operands of float8_e5m2, but operand A is"),
    (
        {"precision": "fp8"},
        "DTypeError",
        "precision fp8 takes operands of FP8, but operand A .*cast it first$",
    ),
    (
        {"a": BYTES[:3, :4], "b": BYTES[:4], **E4M3_BYTES, "precision": "fp8_e5m2"},
        "DTypeError",
        "but operand A is float8_e4m3fn: name precision fp8, which takes each format$",
    ),
    (
        {"accumulate": "fast"},
        "InvalidArgument",
        "accumulate fast does not go with precision fp32; it takes fp32 or promoted$",
    ),
    ({"out_dtype": "float8_e4m3fn"}, "DTypeError", "D is float8_e4m3fn; .*float32 or float64"),
    (
        {"accumulate": "promoted", "precision": "fp64"},
        "InvalidArgument",
        "accumulate promoted does not go with precision fp64; it takes fp64$",
    ),
    ({"precision": "int8"}, "DTypeError", "precision int8 takes int8 operands"),
    ({"out_dtype": "int64"}, "DTypeError", "out_dtype is int64; results are"),
    ({"out_dtype": "int32"}, "DTypeError", "D is int32"),
    ({"out_dtype": "text"}, "DTypeError", "out_dtype is 'text', which is no dtype"),
    ({"out_dtype": 7}, "DTypeError", "out_dtype is 7"),
    ({"out_dtype": np.float16(1)}, "DTypeError", r"out_dtype is .*, which is no dtype"),
    ({"out_dtype": "(1,"}, "DTypeError", r"out_dtype is '\(1,', which is no dtype"),
    ({"out_dtype": "(-1,)f4"}, "DTypeError", r"out_dtype is '\(-1,\)f4', which is no dtype"),
    ({"out_dtype": np.zeros(2)}, "DTypeError", r"out_dtype is array.*, which is no dtype"),
    ({"out_dtype": ">f4"}, "DTypeError", "out_dtype is >f4; results are .*pass one of them"),
    ({"out_dtype": np.dtype(">f8")}, "DTypeError", "out_dtype is >f8; results are"),
    ({"out_dtype": "fp8"}, "DTypeError", "out_dtype is 'fp8'.*pass 'float8_e4m3fn' or 'float8_e5m"),
    ({"out_dtype": "int8"}, "DTypeError", "D is int8; .*float64: name one of them .*out_dtype"),
    ({"a_dtype": "(1,"}, "DTypeError", r"a_dtype is '\(1,', .*pass 'float8_e4m3fn'"),
    ({"b_dtype": ">f4"}, "DTypeError", "b_dtype is >f4; it must be float8_e4m3fn or float8_e5m2"),
    # the operand's own dtype, and one of one byte
    ({"a_dtype": "float32"}, "DTypeError", "a_dtype is float32; it must be .* leave it out for "),
    ({"b_dtype": np.int8}, "DTypeError", "b_dtype is int8; it must be float8_e4m3fn or"),
    ({"a_dtype": "fp8"}, "DTypeError", "a_dtype is 'fp8'.*pass 'float8_e4m3fn' or 'float8_e5m2'"),
    ({"stream": "s"}, "InvalidArgument", "stream is a .*str.*pass None"),
    ({"stream": True}, "InvalidArgument", "stream is a .*bool"),
    ({"stream": -5}, "InvalidArgument", "stream is -5"),
]


@pytest.mark.parametrize(("changes", "error", "words"), BAD_CALLS, ids=lambda x: str(x)[:50])
def test_e01_bad_calls(changes, error, words):
    out = np.full((3, 5), 7, np.float32)
    arguments = {"a": A, "b": B, **changes}
    expected = getattr(tcgemm, error)
    with pytest.raises(expected, match=words) as raised:
        tcgemm.gemm(**arguments, **({} if "out_dtype" in changes else {"out": out}))
    assert raised.type is expected
    assert (out == 7).all()
    with pytest.raises(expected, match=words):
        tcgemm.plan(**arguments)
    if {*changes} <= {"a", "b", "precision", "accumulate", "determinism", "out_dtype", "stream"}:
        with pytest.raises(expected, match=words):
            tcgemm.matmul(arguments.pop("a"), arguments.pop("b"), **arguments)


@pytest.mark.parametrize("operand", ["c", "out"])
def test_an_out_dtype_is_advised_where_the_product_takes_it(operand):
    """As out_dtype, the dtype of what does not fit is another error for some."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    eight, narrow = INT[:3, :3], np.ones((3, 3), ml_dtypes.float8_e4m3fn)
    square = np.ones((3, 3), np.float32)
    for a, other, advice in (
        (square, np.float64, "float64"),
        (square, narrow.dtype, None),
        (eight, np.float16, "float16"),
        (eight, np.float64, "float64"),
        (eight, narrow.dtype, None),
        (narrow, narrow.dtype, "float8_e4m3fn"),
        (narrow, np.float64, None),
    ):
        wrong = square.astype(other)
        with pytest.raises(tcgemm.DTypeError, match=f"{operand} is {wrong.dtype}") as raised:
            tcgemm.gemm(a, a, **{operand: wrong})
        message = str(raised.value)
        assert ("out_dtype=" in message) == (advice is not None), message
        if advice is not None:
            named = dict(re.findall(r'(out_dtype|precision)="(\w+)"', message))
            assert named["out_dtype"] == advice
            assert tcgemm.gemm(a, a, **{operand: wrong}, **named).dtype == other


def test_dtypes_are_not_known_by_what_they_are_equal_to():
    class One:  # a dtype to NumPy, and equal to 1
        dtype = np.dtype("float16")

        def __eq__(self, other):
            return other == 1

        def __hash__(self):
            return hash(1)

    assert tcgemm.matmul(A, B, out_dtype=One()).dtype == np.float16
    for number in (1, True, 1.0):
        with pytest.raises(tcgemm.DTypeError, match=f"out_dtype is {number}, which is no dtype"):
            tcgemm.matmul(A, B, out_dtype=number)


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        (np.zeros((3, 4), "f4"), "ShapeError", r"out has shape \(3, 4\).*\(3, 5\)"),
        (np.zeros((1, 3, 5), "f4"), "ShapeError", r"out has shape \(1, 3, 5\)"),
        (np.zeros((3, 5)), "DTypeError", 'out is float64.*out_dtype="float64"'),
        (np.zeros((3, 5), np.int64), "DTypeError", "out is int64; results are .*pass an out of"),
        (np.zeros((3, 5), "u1"), "DTypeError", 'out is uint8; pass out_dtype="float8_e4m3fn" or'),
        # What is converted is not the array that the caller looks at.
        (np.zeros((3, 5)), "DTypeError", 'pass an out of float32, or out_dtype="float64"$'),
        (np.zeros((3, 5), np.int32), "DTypeError", "out is int32, .*; pass an out of float32$"),
        (np.zeros((3, 5), "V4,f4"), "DTypeError", r"structured .*; pass an out of the result's dt"),
        (
            np.zeros((3, 5), ">f4"),
            "DTypeError",
            r"\(>f4\); pass an out in the machine's byte order$",
        ),
        (
            np.zeros(61, "u1")[1:].view("f4").reshape(3, 5),
            "LayoutError",
            "pass an out at a multiple$",
        ),
        (
            np.zeros((3, 5), "f4,i2")["f0"],
            "LayoutError",
            "pass an out whose strides are multiples$",
        ),
        (np.broadcast_to(np.float32(0), (3, 5)), "LayoutError", "out is read-only"),
        ([[0.0] * 5] * 3, "DTypeError", "out is a builtins.list"),
    ],
)
def test_e01_bad_outputs(out, error, words):
    with pytest.raises(getattr(tcgemm, error), match=words):
        tcgemm.matmul(A, B, out=out)
    assert not np.asarray(out).tobytes().strip(b"\0")


def test_e02_size_overflow():
    """Shapes that NumPy can hold by stride 0, and whose product has no size in 64 bits."""
    tall = np.broadcast_to(np.float32(1), (2**40, 1))
    wide = np.broadcast_to(np.float32(1), (1, 2**40))
    with pytest.raises(tcgemm.ShapeError, match="64 bits"):
        tcgemm.matmul(tall, wide)
    far = Producer(np.ones((2, 2), np.float32), strides=[2**62, 1])
    ones = np.ones((2, 2), np.float32)
    with pytest.raises(tcgemm.ShapeError, match=r"spans more than 2\^62 bytes"):
        tcgemm.matmul(far, ones)
    for stride in (2**61, -(2**63)):
        out = Producer(np.zeros((2, 2), np.float32), strides=[stride, 1])
        with pytest.raises(tcgemm.ShapeError, match=r"spans more than 2\^62 bytes"):
            tcgemm.matmul(ones, ones, out=out)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_e04_no_memory_for_the_result(framework, monkeypatch):
    """2^54 bytes are more than any machine can address."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    tall, wide = np.ones((2**26, 0), np.float32), np.ones((0, 2**26), np.float32)
    if framework == "torch":
        torch = pytest.importorskip("torch")
        tall, wide = torch.from_numpy(tall), torch.from_numpy(wide)
    words = r"float32 of shape \(67108864, 67108864\): 18014398509481984 bytes on cpu"
    with pytest.raises(tcgemm.OutOfMemoryError, match=words):
        tcgemm.matmul(tall, wide)


def test_trans_takes_every_kind_of_bool():
    for flag in (True, 1, np.True_):
        assert tcgemm.gemm(A.T, B, trans_a=flag).shape == (3, 5)
    for flag in (False, 0, np.False_):
        assert tcgemm.gemm(A, B, trans_a=flag, trans_b=flag).shape == (3, 5)


def test_p07_device_mismatch():
    """Without a GPU too: the devices are compared before any is touched."""
    on_gpu = Producer(A, device=(CUDA, 0))
    on_second = Producer(B, device=(CUDA, 1))
    with pytest.raises(tcgemm.DeviceError, match=r"b is on cpu, but a is on cuda:0.*move one"):
        tcgemm.matmul(on_gpu, B)
    with pytest.raises(tcgemm.DeviceError, match="b is on cuda:1, but a is on cuda:0"):
        tcgemm.matmul(on_gpu, on_second)
    with pytest.raises(tcgemm.DeviceError, match="out is on cuda:0, but a is on cpu"):
        tcgemm.matmul(A, B, out=on_gpu)
    assert on_gpu.exports == on_second.exports == 0


@pytest.mark.skipif(bool(tcgemm.devices()), reason="this machine has a GPU")
def test_gpu_arrays_without_a_gpu_are_refused_with_the_reason():
    with pytest.raises(tcgemm.DeviceError, match="cuda:0 does not exist"):
        tcgemm.matmul(Producer(A, device=(CUDA, 0)), Producer(B, device=(CUDA, 0)))


@pytest.mark.parametrize(
    "value", ["gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "cuda:99999", "cuda:01"]
)
def test_tcgemm_device_must_be_a_device(value, monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", value)
    with pytest.raises(tcgemm.InvalidArgument, match=f'TCGEMM_DEVICE is "{value}"; it must be cpu'):
        tcgemm.matmul(A, B)


def test_tcgemm_device_must_exist(monkeypatch):
    monkeypatch.setenv("TCGEMM_DEVICE", "cuda:63")
    words = (
        r'^TCGEMM_DEVICE is "cuda:63", but device cuda:63 does not exist: .*; unset it, or .* cpu'
    )
    with pytest.raises(tcgemm.DeviceError, match=words):
        tcgemm.matmul(A, B)
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    assert tcgemm.plan(A, B).device == "cpu"


@pytest.mark.parametrize("variable", ["TCGEMM_FORCE_FAMILY", "TCGEMM_FORCE_KERNEL"])
def test_forcing_what_is_not_there_is_an_error(variable, monkeypatch):
    monkeypatch.setenv(variable, "no_such_thing")
    with pytest.raises(tcgemm.TcgemmError, match="no_such_thing"):
        tcgemm.matmul(A, B)


@pytest.mark.parametrize("variable", ["FORCE_FAMILY", "FORCE_KERNEL", "HOST_ISA", "NUM_THREADS"])
def test_a_wrong_environment_is_an_error_of_every_call(variable, monkeypatch):
    """Also of one that has nothing to multiply, and would not ask."""
    monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    empty = A[:0]
    before = tcgemm.plan(empty, B)
    monkeypatch.setenv(f"TCGEMM_{variable}", "0")
    for call in (tcgemm.matmul, tcgemm.gemm, tcgemm.plan, tcgemm.explain):
        for a in (A, empty):
            with pytest.raises(tcgemm.InvalidArgument, match=f"TCGEMM_{variable}.*0"):
                call(a, B)
    if variable in ("HOST_ISA", "NUM_THREADS"):  # a plan keeps its kernel
        with pytest.raises(tcgemm.InvalidArgument, match=f"TCGEMM_{variable}.*0"):
            before.execute()
    monkeypatch.setenv(f"TCGEMM_{variable}", "")
    assert before.execute().shape == tcgemm.matmul(empty, B).shape == (0, B.shape[1])


@pytest.mark.parametrize(
    "variable",
    ["DEVICE", "FORCE_FAMILY", "FORCE_KERNEL", "HOST_ISA", "NUM_THREADS"],
)
def test_bytes_that_are_not_utf8_can_be_told_of(variable, monkeypatch):
    if variable != "DEVICE":
        monkeypatch.setenv("TCGEMM_DEVICE", "cpu")
    monkeypatch.setenv(f"TCGEMM_{variable}", os.fsdecode(b"\xff"))
    with pytest.raises(tcgemm.TcgemmError, match=rf"TCGEMM_{variable}.*\\xff"):
        tcgemm.matmul(A, B)


def test_text_that_utf8_has_no_bytes_for_can_be_told_of():
    class Refuses(Producer):
        def __dlpack__(self, **_):
            raise BufferError("no \udc80")

    with pytest.raises(tcgemm.DTypeError, match=r"can't be exported through DLPack: no \\udc80"):
        tcgemm.matmul(Refuses(A), B)
    with pytest.raises(tcgemm.InvalidArgument, match=r"precision is '\\udc80'"):
        tcgemm.matmul(A, B, precision="\udc80")


@pytest.mark.parametrize(("a", "b"), [((2**62, 1), (1, 0)), ((0, 2**30, 1), (1, 2**31))], ids=str)
def test_an_empty_result_that_numpy_cannot_make_is_told(a, b):
    one = np.int8(1)
    words = r"^the result, int32 of shape \(.*\), spans more bytes than 64 bits can count; multiply"
    with pytest.raises(tcgemm.ShapeError, match=words):
        tcgemm.matmul(np.broadcast_to(one, a), np.broadcast_to(one, b))


def test_elements_without_memory_are_refused():
    with pytest.raises(tcgemm.LayoutError, match=r"^b has \d+ elements, but no memory"):
        tcgemm.matmul(A, Producer(B, data=None))
    empty = np.empty((B.shape[1], 0), np.float32)
    assert tcgemm.matmul(B, Producer(empty, data=None)).shape == (B.shape[0], 0)


def test_an_empty_array_may_lie_anywhere():
    memory = np.zeros(64, np.uint8)
    empty = np.ndarray((0, A.shape[1]), np.float32, memory[1:])
    assert tcgemm.matmul(empty, A.T.copy()).shape == (0, A.shape[0])


def test_numbers_that_only_ml_dtypes_has_are_numbers():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.int4):
        with pytest.raises(tcgemm.DTypeError, match=r"a.astype\(numpy.float32\)"):
            tcgemm.matmul(A.astype(dtype), B)


def test_a_mixed_product_is_told_a_precision_that_takes_it():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = A.astype(ml_dtypes.float8_e4m3fn), B.astype(ml_dtypes.bfloat16)
    with pytest.raises(tcgemm.DTypeError, match="name fp16, or cast it"):
        tcgemm.matmul(a, b, precision="bf16")
    assert tcgemm.matmul(a, b, precision="fp16").shape == (3, 5)
