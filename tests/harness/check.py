"""The one entry of every numeric test: place operands, run, look at the guards, judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import cuda, oracle
from .formats import FORMATS, Array, bits_of, format_of
from .layout import ROW, Layout
from .memory import BAND, Guarded
from .modes import Mode


@dataclass(frozen=True)
class Evidence:
    """What a run gave, and how near it came to its limits."""

    family: str
    kernel: str
    split_k: int
    out: Array
    of_hard: float = 0.0  # largest error / hard bound
    of_gate: float | None = None  # largest error / gate, on U(0, 1) data

    @property
    def bits(self) -> Array:
        return bits_of(self.out)


@dataclass
class Worst:
    """The largest ratios seen for one family and mode in a session."""

    checks: int = 0
    elements: int = 0
    of_hard: float = 0.0
    of_gate: float = 0.0
    kernels: set[str] = field(default_factory=set)


WORST: dict[tuple[str, str], Worst] = {}


@dataclass
class Run:
    """Guarded operands and the plan bound to them: may be executed again and again."""

    lab: Lab
    plan: Any
    operands: dict[str, Guarded]
    transposed: dict[str, bool]

    def execute(self, *, guards: bool = True, **changes: Any) -> Array:
        """Runs, then checks every guard. Returns D, packed. guards: False looks only at D's."""
        self.operands["out"].refill()
        self.plan.execute(**changes)
        return self.collect(guards=guards)

    def collect(self, *, guards: bool = True) -> Array:
        if self.lab.on_gpu:
            cuda.synchronize()
        out = self.operands["out"].read("out")
        if guards:
            for name, operand in self.operands.items():
                if name != "out":
                    operand.read(name)
        missed = self.operands["out"].unwritten(out)
        assert missed == 0, f"{self.plan.kernel}: {missed} of {out.size} elements not written"
        return out


@dataclass
class Lab:
    """A family under test. `library` is tcgemm, or a stand-in for it in the harness's own tests."""

    library: Any
    family: str
    record: bool = True  # whether the summary of the session counts its checks

    @property
    def on_gpu(self) -> bool:
        return self.family != "host"

    def force_each(self, monkeypatch: Any) -> Iterator[str]:
        """Forces the kernels of the family one after the other; yields their names."""
        monkeypatch.delenv("TCGEMM_FORCE_FAMILY")
        for kernel in self.library.kernels():
            if kernel["family"] == self.family:
                monkeypatch.setenv("TCGEMM_FORCE_KERNEL", kernel["name"])
                yield kernel["name"]

    def place(
        self,
        values: Array,
        layout: Layout = ROW,
        *,
        band: int = BAND,
        is_output: bool = False,
        filler: int | None = None,
    ) -> Guarded:
        return Guarded(
            values.shape,
            format_of(values),
            layout,
            on_gpu=self.on_gpu,
            values=values,
            is_output=is_output,
            band=band,
            filler=filler,
        )

    def place_output(
        self, shape: Sequence[int], dtype: str, layout: Layout = ROW, *, band: int = BAND
    ) -> Guarded:
        return Guarded(
            tuple(shape),
            FORMATS[dtype],
            layout,
            on_gpu=self.on_gpu,
            is_output=True,
            band=band,
        )

    def prepare(
        self,
        mode: Mode,
        a: Array,
        b: Array,
        c: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        out_dtype: str | None = None,
        layouts: dict[str, Layout] | None = None,
        trans_a: bool = False,
        trans_b: bool = False,
        band: int = BAND,
        filler: int | None = None,
        determinism: str = "run_to_run",
    ) -> Run:
        """Operands by value: `a` is m x k and `b` k x n, whatever trans_a and trans_b say; where
        they are set, the transposed matrix is what is stored and handed over. C is NaN where none
        is given and beta = 0."""
        out_dtype = out_dtype or mode.default_output
        layouts = layouts or {}
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])

        def put(name: str, values: Array, transpose: bool) -> Guarded:
            stored = np.swapaxes(values, -1, -2) if transpose else values
            return self.place(stored, layouts.get(name, ROW), band=band, filler=filler)

        operands = {"a": put("a", a, trans_a), "b": put("b", b, trans_b)}
        if beta == 0.0 and c is None:
            # NaN everywhere: one that is read shows in the result.
            c_guarded = self.place_output(shape, out_dtype, layouts.get("c", ROW), band=band)
            c_guarded.is_output = False
            operands["c"] = c_guarded
        elif c is not None:
            operands["c"] = put("c", c, False)
        operands["out"] = self.place_output(shape, out_dtype, layouts.get("out", ROW), band=band)
        plan = self.library.plan(
            operands["a"].array,
            operands["b"].array,
            operands["c"].array if "c" in operands else None,
            alpha=alpha,
            beta=beta,
            trans_a=trans_a,
            trans_b=trans_b,
            out=operands["out"].array,
            out_dtype=out_dtype,
            precision=mode.precision,
            accumulate=mode.accumulate,
            determinism=determinism,
        )
        expected = self.family if np.prod(shape) else "none"  # an empty product needs no kernel
        assert plan.family == expected, (
            f"{plan.family} was planned ({plan.kernel}) where {self.family} was forced"
        )
        assert plan.kernel.startswith(expected), plan.kernel
        return Run(self, plan, operands, {"a": trans_a, "b": trans_b})

    def check(
        self,
        mode: Mode,
        a: Array,
        b: Array,
        c: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        expect: str = "bound",
        rows: Sequence[int] | None = None,
        **how: Any,
    ) -> Evidence:
        """Runs once and judges the result.

        expect: "bound" (hard bound), "gate" (hard bound, and the gate: positive data only) or
        "exact" (bit-equal to the exact result rounded once). rows: judge only these rows of D;
        guards and unwritten elements are looked at everywhere. The rest as for `prepare`.
        """
        run = self.prepare(mode, a, b, c, alpha=alpha, beta=beta, **how)
        got = run.execute()
        if rows is None:
            judged, a_rows, c_rows = got, a, c
        else:
            judged, a_rows = got[..., rows, :], a[..., rows, :]
            c_rows = None if c is None else c[..., rows, :]
        want = oracle.exact(mode, a_rows, b, c_rows, alpha, beta)
        k = 0 if alpha == 0 else a.shape[-1]
        if expect == "exact":
            verdict = oracle.judge_exact(mode, judged, want)
        else:
            promise = mode.of_family(self.family)
            verdict = oracle.judge(promise, judged, want, alpha=alpha, k=k, gate=expect == "gate")
        self._record(mode, run.plan.kernel, verdict)
        where = (
            f"{run.plan.kernel}: {mode.name} {tuple(a.shape)} x {tuple(b.shape)} -> "
            f"{format_of(got).name}, alpha={alpha}, beta={beta}, {how}"
        )
        assert verdict.of_hard <= 1, (
            f"{where}: error {verdict.of_hard:.3g} x the hard bound ({expect}); "
            f"{oracle.worst_places(judged, want)}"
        )
        assert verdict.of_gate is None or verdict.of_gate <= 1, (
            f"{where}: error {verdict.of_gate:.3g} x the gate; {oracle.worst_places(judged, want)}"
        )
        return Evidence(
            run.plan.family,
            run.plan.kernel,
            run.plan.split_k,
            got,
            verdict.of_hard,
            verdict.of_gate,
        )

    def _record(self, mode: Mode, kernel: str, verdict: oracle.Verdict) -> None:
        if not self.record:
            return
        worst = WORST.setdefault((self.family, mode.name), Worst())
        worst.checks += 1
        worst.elements += verdict.elements
        worst.of_hard = max(worst.of_hard, verdict.of_hard)
        worst.of_gate = max(worst.of_gate, verdict.of_gate or 0.0)
        worst.kernels.add(kernel)
