"""The cases of `python -m tcgemm bench`: suites, operands, peers and the check of every form."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from tcgemm._cli import accuracy, main, timing
from tcgemm._cli import measure as measuring
from tcgemm._cli.backends import NumpyBackend
from tcgemm._cli.cases import Case, load_suite, parse_sizes, suite_names
from tcgemm._cli.measure import measure
from tcgemm._cli.modes import Mode, bounds
from tcgemm._cli.operands import Operands, Pool
from tcgemm._cli.peers import peers
from tcgemm._cli.report import UsageError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


# One of every form that a case can have.
FORMS = [
    Case(33, 20, 17, "float16", "tt", padding=3, offset=1, beta=1.0),
    Case(20, 9, 50, "float16", "nt", out_dtype="float32", beta=1.0, in_place=True),
    Case(20, 9, 50, "float16", beta=-1.0, in_place=True),
    Case(16, 16, 16, batch=7, broadcast="b"),
    Case(16, 12, 10, "float16", "nt", batch=40, broadcast="a", beta=2.0),
    Case(16, 12, 10, "float64", "tn", batch=3, padding=1),
    Case(1, 1024, 1024, "float32", "nt"),
    Case(20, 9, 50, "int8", precision="fp32", beta=1.0),
    Case(20, 9, 50, "int8", precision="bf16"),
    Case(20, 9, 50, "int8", precision="fp64"),
]
# NumPy has no such product.
SCALED = [
    Case(20, 200, 300, "float8_e4m3fn", "nt", out_dtype="bfloat16", scales="blocks"),
    Case(20, 200, 300, "float8_e5m2", out_dtype="float32", scales="columns"),
    Case(200, 20, 300, "float8_e5m2", out_dtype="float32", scales="rows"),
    Case(200, 20, 300, "float8_e4m3fn", "nt", out_dtype="bfloat16", scales="matrices"),
]


@pytest.mark.parametrize("case", FORMS, ids=lambda case: f"{case.size} {case.form}")
def test_every_form_is_measured_and_checked(case):
    row = measure(Pool(NumpyBackend()), case, 0.01)
    assert row["kept"]
    assert row["elements_checked"] > 0
    assert row["peer"] == "numpy"
    assert row["peers"]["numpy"]["error_over_bound"] <= 1
    assert Case(**row["case"]) == case


@pytest.mark.parametrize("case", SCALED, ids=lambda case: case.form)
def test_scaled_products_are_measured_and_checked(case):
    row = measure(Pool(NumpyBackend()), case, 0.01)
    assert row["kept"]
    assert row["elements_checked"] > 0
    assert row["peers"] == {}
    assert Case(**row["case"]) == case


@pytest.mark.parametrize("case", [*FORMS, *SCALED], ids=lambda case: f"{case.size} {case.form}")
@pytest.mark.usefixtures("damaged")
def test_one_wrong_element_is_found_in_every_form(case):
    assert not measure(Pool(NumpyBackend()), case, 0.01, with_peers=False)["kept"]


def test_operands_have_the_form_of_the_case():
    case = Case(5, 6, 7, "float32", "nt", padding=3, offset=1, batch=2, beta=1.0)
    operands = Operands(Pool(NumpyBackend()), case, 3)
    each = operands.sets[1]
    assert (each.a.shape, each.b.shape, each.c.shape) == ((2, 5, 7), (2, 7, 6), (2, 5, 6))
    assert [stride // 4 for stride in each.a.strides] == [50, 10, 1]
    assert [stride // 4 for stride in each.b.strides] == [60, 1, 10]  # column-major
    assert [stride // 4 for stride in each.d.strides] == [45, 9, 1]
    assert all(x.ctypes.data % 16 == 4 for x in (each.a, each.b, each.c, each.d))
    for place, x in enumerate(arrays := [x for s in operands.sets for x in (s.a, s.b, s.c, s.d)]):
        assert not any(np.may_share_memory(x, other) for other in arrays[:place])


def test_what_the_batch_shares_is_there_once():
    operands = Operands(Pool(NumpyBackend()), Case(4, 4, 4, batch=3, broadcast="b"), 1)
    assert operands.sets[0].b.shape == (4, 4)
    assert operands.sets[0].d.shape == (3, 4, 4)


def test_all_contenders_read_the_same_numbers():
    pool, case = Pool(NumpyBackend()), Case(8, 8, 8, "float16")
    ours, theirs = Operands(pool, case, 2), Operands(pool, replace(case, out_dtype="float32"), 2)
    assert np.shares_memory(ours.sets[1].b, theirs.sets[1].b)
    assert not np.shares_memory(ours.sets[1].d, theirs.sets[1].d)
    assert abs(float(ours.sets[0].a.std()) - 1) < 0.5


def test_results_in_place_begin_as_c():
    operands = Operands(Pool(NumpyBackend()), Case(8, 8, 8, beta=1.0, in_place=True), 2)
    each = operands.sets[1]
    assert each.c is each.d
    each.d[...] = 0
    operands.reset()
    assert np.array_equal(each.d, operands.initial_c(1))
    apart = Operands(Pool(NumpyBackend()), Case(8, 8, 8, beta=1.0), 1)
    assert np.isnan(apart.sets[0].d).all()


def test_bytes_and_operations_of_a_case():
    case = Case(2, 3, 4, "float16")
    assert (case.operations, case.bytes) == (48, 2 * (8 + 12 + 6))
    assert replace(case, beta=1.0).bytes == case.bytes + 2 * 6
    assert replace(case, batch=5).bytes == 5 * case.bytes
    assert replace(case, batch=5, broadcast="b").bytes == 2 * (5 * 8 + 12 + 5 * 6)
    assert replace(case, out_dtype="float32").bytes == case.bytes + 2 * 6
    assert replace(case, batch=5).operations == 5 * 48


@pytest.mark.parametrize("fault", ["product", "addend", "row"])
def test_the_reference_has_batch_and_c(rng, fault):
    a, b = rng.standard_normal((40, 70, 9)), rng.standard_normal((9, 8))
    c = 10 * rng.standard_normal((40, 70, 8))
    a, b, c = (x.astype(np.float32) for x in (a, b, c))
    mode = Mode("float32")
    reference = accuracy.Reference(NumpyBackend(), a, b, mode, c=c, beta=2.0, rows=64)
    d = (a.astype(np.float64) @ b + 2.0 * c).astype(np.float32)
    assert reference.judge(d, mode, bounds(mode, 9)).kept
    if fault == "product":
        d[-1] = a[-1] @ b + c[-1]
    elif fault == "addend":
        d += c / 1000
    else:
        d[:, -1] = 0
    assert not reference.judge(d, mode, bounds(mode, 9)).kept


def test_the_library_is_its_own_peer():
    case = Case(32, 32, 32, "float32", precision="fp16", against={"dtype": "float16"})
    row = measure(Pool(NumpyBackend()), case, 0.01)
    assert row["peer"] == "tcgemm:float16"
    assert row["peers"]["tcgemm:float16"]["kernel"].startswith("host")
    assert row["peers"]["tcgemm:float16"]["call_ratio"]


def test_another_size_is_compared_by_speed(monkeypatch):
    works = []

    def ratio(peer, ours, work):
        works.append(work)
        return [1.0, 1.0, 1.0]

    monkeypatch.setattr(timing, "ratio", ratio)
    measure(Pool(NumpyBackend()), Case(64, 64, 64, against={"m": 128}), 0.01)
    assert works == [0.5, 0.5]  # of kernels and of calls: the peer has twice as much to do


def test_the_fastest_fair_peer_counts(monkeypatch):
    def with_others(backend, case):
        (fair,) = peers(backend, case)

        def slow(operands):
            prepared = fair.prepare(operands)

            def work():
                time.sleep(2e-3)
                prepared.kernels[0]()

            return replace(prepared, kernels=[work], calls=[work])

        def refuse(operands):
            raise RuntimeError("too small\nor so")

        return [
            replace(fair, name="slow", prepare=slow),
            fair,
            replace(fair, name="unfair", fair=False, prepare=lambda o: fair.prepare(o)),
            replace(fair, name="refusing", prepare=refuse),
        ]

    monkeypatch.setattr(measuring, "peers", with_others)
    row = measure(Pool(NumpyBackend()), Case(8, 8, 8), 0.05)
    assert row["peer"] == "numpy"
    assert row["ratio"] == row["peers"]["numpy"]["ratio"][1] < row["peers"]["slow"]["ratio"][1]
    assert row["peers_refused"] == {"refusing": "too small"}


def test_few_rows_are_compared_with_a_copy():
    row = measure(Pool(NumpyBackend()), Case(1, 1024, 1024), 0.01)
    assert "copy" in row["peers"]
    assert "error" not in row["peers"]["copy"]
    assert row["peer"] == "numpy"


def test_a_copy_begins_at_whole_pages_of_memory():
    case, backend = Case(1, 1025, 1027), NumpyBackend()
    (copy,) = (peer for peer in peers(backend, case) if peer.name == "copy")
    works = copy.prepare(Operands(Pool(backend), case, 3)).kernels
    for places in zip(*(work.args for work in works), strict=True):
        first = places[0].ctypes.data
        assert [(place.ctypes.data - first) % 4096 for place in places] == [0, 0, 0]


def test_every_suite_loads_and_names_its_groups():
    assert set(suite_names()) >= {"foundation", "quick", "cpu"}
    for name in suite_names():
        suite = load_suite(name)
        assert suite.cases
        assert suite.description
        assert all(case.group and case.m > 0 and len(case.layout) == 2 for case in suite.cases)


# The suites that the Hopper kernels are measured with, and a row that each must have.
AGREED = {
    "aligned": Case(16384, 16384, 16384, "float16"),
    "layouts": Case(4096, 4096, 4096, "float16", "tt"),
    "odd": Case(16383, 16383, 16383, "float16"),
    "odd_results": Case(4095, 4095, 4095, "float16", beta=1.0),
    "decode": Case(1, 28672, 8192, "float16", "nt"),
    "long_k": Case(64, 64, 1048576, "float16"),
    "output": Case(4096, 4096, 4096, "float16", beta=1.0),
    "batched": Case(32, 32, 32, "float16", batch=4096),
    "batch_invariant": Case(
        16, 8192, 8192, "bfloat16", "nt", determinism="batch_invariant",
        against={"determinism": "run_to_run"},
    ),
    "modes_few": Case(16, 4096, 4096, "float8_e4m3fn", "nt", out_dtype="bfloat16"),
    "promoted_small": Case(16, 4096, 4096, "float16", "nt", accumulate="promoted"),
    "short_k": Case(65536, 67, 1, "float32"),
    "rank_k": Case(
        8192, 8192, 128, "float16", "nt", out_dtype="float32", beta=1.0, in_place=True
    ),
    "tall": Case(131072, 256, 256, "bfloat16", "nt"),
    "fp8_results": Case(
        4096, 4096, 4096, "float8_e4m3fn", "nt", accumulate="fast", out_dtype="float8_e4m3fn"
    ),
    "small": Case(31, 31, 31, "float16", batch=4096),
    "few_rows": Case(8, 8191, 8191, "float16", "nt"),
    "cuda_cores": Case(128, 8192, 8192, "float32", "nt", family="simt"),
    "uneven": Case(264, 8192, 8192, "float16", "nt"),
    "padded": Case(1536, 1536, 1536, "float16", "nn", padding=16),
    "scaled": Case(
        4096, 4096, 7168, "float8_e4m3fn", "nt", out_dtype="bfloat16", scales="blocks"
    ),
    "converted": Case(
        8192, 8192, 8192, "float32", precision="fp16",
        against={"dtype": "float16", "out_dtype": "float32"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AGREED)
def test_the_agreed_suites_have_their_rows(name):
    cases = [replace(case, group="") for case in load_suite(name).cases]
    assert AGREED[name] in cases
    assert len({repr(case) for case in cases}) == len(cases)  # none twice
    assert len(cases) <= 80  # about two minutes on a GPU


def test_foundation_has_what_was_agreed():
    cases = load_suite("foundation").cases
    for family, dtype, precision in [
        ("sm70_wmma", "float16", None),
        ("sm70_wmma", "float32", "fp16"),
        ("simt", "float32", None),
    ]:
        rows = [
            case
            for case in cases
            if (case.family, case.dtype, case.precision) == (family, dtype, precision)
        ]
        squares = {case.m for case in rows if case.square}
        assert squares >= {256, 512, 1024, 2048, 4096, 8192, 16384, 255, 1023, 4097}
        assert any(min(case.m, case.n) <= 64 for case in rows)


def test_sizes_are_lists_and_ranges():
    assert parse_sizes("256", "--m") == [256]
    assert parse_sizes("256,512", "--m") == [256, 512]
    assert parse_sizes("1:9:4", "--m") == [1, 5, 9]
    assert parse_sizes("8,1:3", "--m") == [8, 1, 2, 3]
    for wrong in ("", "0", "-1", "a", "4:1", "1:4:0", "1:2:3:4", "1:99999999999", f"{2**52 + 1}"):
        with pytest.raises(UsageError, match="--m"):
            parse_sizes(wrong, "--m")


@pytest.mark.parametrize("field", ["shapes = [[1, 1, {0}]]", "sizes = [1]\npadding = {0}"])
def test_sizes_of_a_suite_have_an_end(tmp_path, field):
    file = tmp_path / "mine.toml"
    file.write_text(f'[[groups]]\ntitle = "x"\n{field.format(10**400)}\n')
    with pytest.raises(UsageError, match=r"'x': sizes, .* are up to 2\^52"):
        load_suite(str(file))


def test_what_no_memory_holds_is_not_run():
    """Beyond the limits of NumPy, which tells of them by ValueErrors, as well as within."""
    for size in (2**52, 60_000_000):
        row = measure(Pool(NumpyBackend()), Case(size, size, size), 0.01)
        assert "2^52" in row["not_run"] or "allocate" in row["not_run"]


def test_lists_in_a_suite_stand_for_each_of_their_values(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[groups]]\ntitle = "x"\ndtype = ["float16", "float32"]\npadding = [0, 1]\n'
        "rows = [1, 2]\nweights = [[30, 20]]\nshapes = [[5, 6, 7, 8]]\n"
    )
    cases = load_suite(str(file)).cases
    assert len(cases) == 2 * 2 * 3
    assert cases[0] == Case(6, 7, 8, "float16", batch=5, group="x")
    assert cases[1] == Case(1, 30, 20, "float16", group="x")
    assert cases[-1] == Case(2, 30, 20, "float32", padding=1, group="x")


NAMED = '[[groups]]\ntitle = "x"\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("groups = 3", "it needs [[groups]]"),
        ('description = "x"', "it needs [[groups]], each with a title"),
        ("groups = []", "it has no case"),
        (NAMED + "sizes = [1]\ndtype = []", "it has no case"),
        ("not toml", "line 1"),
        ("[[groups]]\nsizes = [1]", "the group of sizes has no title"),
        ("[[groups]]\nsizes = [1]\ntitle = 3", "of sizes, title: title is 3; expected str"),
        (NAMED, "neither sizes, shapes nor rows with weights"),
        (NAMED + "shape = [1]", "no field is called 'shape'; there are title, accumulate"),
        (NAMED + "sizes = [1]\nm = 3", "no field is called 'm'"),
        (NAMED + "sizes = 8", "sizes is 8; expected a list of integers N"),
        (NAMED + "sizes = [true]", "sizes is [True]; expected a list of integers N"),
        (NAMED + "shapes = [[true, 2, 3]]", "expected a list of integers [M, N, K]"),
        (NAMED + "shapes = [[1, 2]]", "expected a list of integers [M, N, K] or [batch, M, N, K]"),
        (NAMED + "rows = [1]\nweights = [2]", "expected a list of integers [N, K]"),
        (NAMED + 'sizes = [1]\nlayout = ["nx"]', "layout 'nx' is not in"),
        (NAMED + 'sizes = [1]\ndtype = "float31"', "dtype 'float31' is not in"),
        (NAMED + 'sizes = [1]\nout_dtype = "float31"', "out_dtype 'float31' is not in"),
        (NAMED + 'sizes = [1]\nprecision = "fp17"', "precision 'fp17' is not in"),
        (NAMED + 'sizes = [1]\npadding = "a"', "padding is 'a'; expected int"),
        (NAMED + "sizes = [1]\npadding = true", "padding is True; expected int"),
        (NAMED + "sizes = [1]\nbeta = true", "beta is True; expected float"),
        (NAMED + "sizes = [1]\nin_place = 1", "in_place is 1; expected bool"),
        (NAMED + 'sizes = [1]\nbeta = "a"', "beta is 'a'; expected float"),
        (NAMED + "sizes = [0]", "sizes and batch start at 1"),
        (NAMED + "sizes = [1]\nagainst = { padding = -1 }", "padding at 0"),
        (NAMED + "sizes = [1]\nagainst = { paddings = 1 }", "no field is called 'paddings'"),
        (NAMED + "sizes = [1]\nagainst = 3", "against is 3; expected dict"),
    ],
)
def test_a_suite_that_is_none(capsys, tmp_path, text, named):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert main(["bench", "--suite", str(file)]) == 2
    error = capsys.readouterr().err
    assert f"--suite {file}: not a suite: " in error
    assert named in error


def test_a_suite_is_utf8(capsys, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_bytes(NAMED.encode() + b"sizes = [1] # \xff")
    assert main(["bench", "--suite", str(file)]) == 2
    assert f"--suite {file}: not a suite: 'utf-8' codec can't decode" in capsys.readouterr().err
