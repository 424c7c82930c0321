"""What a type checker knows of the products: the names of modes, numbers, and results."""

import re
import typing

import numpy as np
import pytest
import tcgemm
import tcgemm.typing

ACCEPTED = """
    import numpy as np
    from numpy.typing import NDArray
    import tcgemm
    from tcgemm.typing import Determinism, Precision

    class Tensor:
        '''Of another framework.'''

    def of_numpy(a: NDArray[np.float16], how: Precision) -> NDArray[np.float32]:
        return tcgemm.matmul(a, a, out_dtype="float32", precision=how)

    def of_others(x: Tensor, a: NDArray[np.float32], how: Determinism) -> Tensor:
        tensors: list[Tensor] = [
            tcgemm.matmul(x, a, determinism=how),
            tcgemm.gemm(a, a, alpha=np.float32(2), beta=np.int64(0), scale_a=np.float32(1), out=x),
            tcgemm.plan(x, a).execute(a=x, alpha=np.float32(2)),
            tcgemm.plan(a, a, out=x).execute(),
            tcgemm.plan(a, a).execute(out=x),
            tcgemm.plan(a, a).execute(a, a, None, x),
        ]
        return tensors[0]

    def of_plans(plan: tcgemm.Plan, a: NDArray[np.float32]) -> NDArray[np.float32]:
        tcgemm.matmul(a, a, precision=plan.precision, accumulate=plan.accumulate)
        return tcgemm.plan(a, a).execute()
"""
REFUSED = (
    'tcgemm.matmul(a, a, precision="half")',
    'tcgemm.gemm(a, a, determinism="yes")',
    'tcgemm.plan(a, a, overflow="inf")',
    'tcgemm.explain(a, a, accumulate="float32")',
    "tcgemm.gemm(a, a, alpha=2j)",
    "tcgemm.plan(a, a).execute(beta='x')",
    "tcgemm.matmul(a, a, alpha=2.0)",
    "text: str = tcgemm.matmul(a, a)",
)


def test_mypy_takes_what_runs_and_refuses_what_does_not(tmp_path):
    api = pytest.importorskip("mypy.api")
    accepted = [line.removeprefix("    ") for line in ACCEPTED.splitlines()]
    refused = [f"    {call}" for call in REFUSED]
    code = [*accepted, "def refused(a: NDArray[np.float32]) -> None:", *refused]
    source = tmp_path / "user.py"
    source.write_text("\n".join(code))
    report, _, _ = api.run(
        ["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(source)]
    )
    wrong = {int(line) for line in re.findall(r"user\.py:(\d+): error", report)}
    assert wrong == set(range(len(code) - len(refused) + 1, len(code) + 1)), report


@pytest.mark.parametrize("argument", ["precision", "accumulate", "determinism", "overflow"])
def test_the_names_of_modes_are_those_that_are_taken(argument):
    a = np.eye(2, dtype=np.float32)
    with pytest.raises(tcgemm.InvalidArgument) as raised:
        tcgemm.gemm(a, a, **{argument: "none of them"})
    names = (
        str(raised.value).partition("must be one of ")[2].removesuffix(", or None for the default")
    )
    assert list(typing.get_args(getattr(tcgemm.typing, argument.capitalize()))) == names.split(", ")


def test_annotations_can_be_evaluated():
    arrays = {"a", "b", "out", "return"}
    options = {*typing.get_type_hints(tcgemm.typing.MatmulOptions)}
    assert typing.get_type_hints(tcgemm.matmul).keys() == arrays | options
    options |= {*typing.get_type_hints(tcgemm.typing.GemmOptions)}
    for call in (tcgemm.gemm, tcgemm.plan, tcgemm.explain):
        assert typing.get_type_hints(call).keys() == arrays | {"c"} | options
    hints = typing.get_type_hints(tcgemm.plan)
    assert hints["return"] == tcgemm.Plan[typing.Any]
    assert hints["precision"] == tcgemm.typing.Precision | None
